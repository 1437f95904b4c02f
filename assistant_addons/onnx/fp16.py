"""Converts models from FP32 to FP16: what fits is converted, what does not stays FP32, and each choice has a reason."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from onnx import ModelProto

from assistant_addons.onnx.answers import Fp16Summary, Kept
from assistant_addons.onnx.defects import to_keep
from assistant_addons.onnx.fp16_policy import (
    LARGEST,
    OPERATORS,
    Constants,
    Slots,
    bound,
    outside,
    precise,
    reason_to_keep,
    slots,
    where_given_fp32,
)
from assistant_addons.onnx.inputs import Feeds, Inputs
from assistant_addons.onnx.insert_casts import Writer
from assistant_addons.onnx.program import FLOAT, Program, Step, Value, attribute, program
from assistant_addons.onnx.proof import Measured, Proof, measure

Calibrate = Literal["auto", "always", "never"]

# How far below FP16's largest number the estimate must stay. It takes the strongest channel at six standard deviations.
CALM = 2.0
TINY_EPSILON = 1e-7  # FP16's smallest number is 6e-8, beside which a smaller epsilon is nothing


def to_fp16(
    model: ModelProto,
    *,
    keep_io_types: bool = True,
    calibrate: Calibrate = "auto",
    samples: Sequence[Feeds] = (),
    keep: Iterable[str] = (),
) -> ModelProto:
    """Convert a model to FP16 and return the new one; `model` stays as it is.

    Weights beyond FP16's range, values that a run shows beyond it and what would be lost below it stay FP32. `samples`
    are inputs to calibrate with, made up where there are none. With "auto" the run is left out for a network whose
    weights show that nothing grows. `keep` names nodes or operators that stay FP32.
    """
    return convert_to_fp16(model, keep_io_types=keep_io_types, calibrate=calibrate, samples=samples, keep=keep)[0]


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Collect no garbage: among many small objects that are none it would take a third of the time (measured)."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@_uncollected()
def convert_to_fp16(
    model: ModelProto,
    *,
    keep_io_types: bool = True,
    calibrate: Calibrate = "auto",
    samples: Sequence[Feeds] = (),
    keep: Iterable[str] = (),
) -> tuple[ModelProto, Fp16Summary]:
    """Convert as `to_fp16` does, and return how it went as well."""
    return convert_program(program(model), keep_io_types=keep_io_types, calibrate=calibrate, samples=samples, keep=keep)


@_uncollected()
def convert_program(
    source: Program,
    *,
    keep_io_types: bool,
    calibrate: Calibrate,
    samples: Sequence[Feeds],
    keep: Iterable[str],
    careful: bool = False,
) -> tuple[ModelProto, Fp16Summary]:
    """Convert a program as `to_fp16` does a model, and return how it went as well.

    With `careful` it goes round all known defects of runtimes, also those that few models come upon.
    """
    constants = Constants()
    why = _by_definition(source, frozenset(keep)) | precise(source)
    calm = calibrate == "auto" and not samples and bound(source, constants) * CALM < LARGEST
    measured = Measured() if calm or calibrate == "never" else measure(source, Inputs(source), samples)
    why |= dict.fromkeys(measured.crowded, "sums")
    converted = _chosen(source, outside(source, constants) | measured.outside, why, careful=careful)
    proved = measured.ran and not measured.obstacle
    if proved:
        left = dict.fromkeys(Proof(source, constants, measured.runs).improve(converted), "rounding")
    else:
        left = _unseen(source) if measured.ran else {}
    for step in converted.keys() & left.keys():
        why[step] = left[step]
        del converted[step]
    result = Writer(source, converted, constants, keep_io_types=keep_io_types).write()
    kept = tuple(Kept(node=step.node.name, op=step.op, why=text) for step, text in why.items() if any(step.floats()))
    return result, Fp16Summary(
        converted=len(converted),
        kept=kept,
        calibration="run" if measured.ran else "weights" if calm else "none",
        proved=proved,
        obstacle=measured.obstacle,
    )


def _by_definition(source: Program, asked: frozenset[str]) -> dict[Step, str]:
    """Find what stays FP32 by its name, its definition or its attributes."""
    found = {}
    for step in source.steps():
        epsilon = attribute(step.node, "epsilon") if "Norm" in step.op else None
        if asked.intersection((step.node.name, step.op, step.node.op_type)):
            found[step] = "asked"
        elif isinstance(epsilon, float) and epsilon < TINY_EPSILON:
            found[step] = "epsilon"
        elif why := reason_to_keep(step):
            found[step] = why
    return found


def _unseen(source: Program) -> dict[Step, str]:
    """Find the steps of subgraphs, whose values no run shows."""
    return {step: "unseen" for step in source.steps() if step.scope is not source.main}


def _chosen(source: Program, wide: set[Value], why: dict[Step, str], *, careful: bool) -> dict[Step, Slots]:
    """Choose the steps that compute in FP16; the reasons for the others are added to `why`."""
    converted: dict[Step, Slots] = {}
    for step in source.steps():
        part = slots(step)
        if step in why or not (part.inputs or part.outputs):
            continue
        touched = [step.inputs[index] for index in part.inputs] + [step.outputs[index] for index in part.outputs]
        if wide.intersection(touched):
            why[step] = "beyond"
        else:
            converted[step] = part
    for step, reason in _left_out(source, converted, careful=careful):
        why[step] = reason
        del converted[step]
    return converted


def _left_out(source: Program, converted: dict[Step, Slots], *, careful: bool) -> Iterator[tuple[Step, str]]:
    """Yield the steps that stay FP32 for the sake of those around them, while they are taken out of `converted`."""
    for step in to_keep(source, converted, all_of_them=careful):
        yield step, "crash"
    for step in [*converted, *reversed(converted)]:
        if step in converted and step.op in OPERATORS.moves and _between(step, converted):
            yield step, "between"
    for step in source.steps():
        for one, reason in where_given_fp32(step):
            if one in converted and step.inputs[0] is not None and step.inputs[0].maker not in converted:
                yield one, reason


def _between(step: Step, converted: Mapping[Step, Slots]) -> bool:
    """Return whether a step only moves values from FP32 steps to FP32 steps."""
    makers = [value.maker for value in step.inputs if value is not None and value.kind == FLOAT and not value.tensor]
    takers = [taker for value in step.outputs if value is not None for taker in value.takers]
    ends = any(value is not None and value.output for value in step.outputs)
    around = [*makers, *takers]
    return not ends and bool(makers and takers) and all(one is not None and one not in converted for one in around)

"""Converts models from FP32 to FP16: what fits is converted, what does not stays FP32, and each choice has a reason."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from onnx import ModelProto, TensorProto

from assistant.onnx.answers import Fp16Summary, Kept
from assistant.onnx.calibrate import Measured, measure
from assistant.onnx.defects import to_keep
from assistant.onnx.fp16_policy import OPERATORS, Slots, reason_to_keep, slots
from assistant.onnx.inputs import Feeds, Inputs
from assistant.onnx.insert_casts import Writer
from assistant.onnx.program import FLOAT, Program, Step, Value, attribute, program
from assistant.onnx.proof import Proof
from assistant.onnx.value_ranges import LARGEST, Constants, bound, outside

Calibrate = Literal["auto", "always", "never"]

# How far below FP16's largest number the estimate must stay. It takes the strongest channel at six standard deviations.
CALM = 2.0
TINY_EPSILON = 1e-7  # FP16's smallest number is 6e-8, beside which a smaller epsilon is nothing
ARITHMETIC = OPERATORS.moves | OPERATORS.arithmetic
FIXED = "tensor(float)"
INTEGER_KINDS = {
    TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT16, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64,
    TensorProto.UINT32, TensorProto.UINT64,
}  # fmt: skip


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
    why = _by_definition(source, frozenset(keep)) | _phases(source) | _exact(source)
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


def _exact(source: Program) -> dict[Step, str]:
    """Find the arithmetic behind integers, sizes and thresholds, which must not round."""
    todo = [value for step in source.steps() for value in (*_exact_inputs(step), *_conditions(step))]
    found: dict[Step, str] = {}
    while todo:
        step = todo.pop().maker
        if step is not None and step not in found and step.op in ARITHMETIC:
            found[step] = "exact"
            deciding = {FLOAT, TensorProto.BOOL}
            todo.extend(value for value in step.inputs if value is not None and value.kind in deciding)
    return found


def _phases(source: Program) -> dict[Step, str]:
    """Find what a sine's or cosine's argument is computed with from positions or from an input, and the sine itself.

    FP16 counts to 2,048 and has no fractions from 1,024 on, where a period has 6.28: rotary positions and time steps.
    What a layer has learned to put into a sine is as small as it has learned.
    """
    counts: set[Value] = set()
    for step in source.steps():
        if step.op == "Range" or (step.op == "Cast" and step.inputs[0] and step.inputs[0].kind in INTEGER_KINDS):
            counts.update(value for value in step.outputs if value is not None)
        elif step.op in ARITHMETIC | OPERATORS.outer:
            given = {value for value in step.inputs if value and value.kind == FLOAT and _is_given(value)}
            if given or counts.intersection(step.inputs):
                counts |= given
                counts.update(value for value in step.outputs if value is not None)
    found: dict[Step, str] = {}
    todo = [step for step in source.steps() if step.op in OPERATORS.periodic and counts.intersection(step.inputs)]
    while todo:
        step = todo.pop()
        found[step] = "phase"
        makers = {value.maker for value in step.inputs if value in counts and value is not None}
        todo.extend(maker for maker in makers if maker is not None and maker not in found)
    return found


def _is_given(value: Value) -> bool:
    return value.maker is None and value.tensor is None


def _conditions(step: Step) -> Iterator[Value]:
    """Yield what decides which branch is taken or how long a loop runs."""
    decider = {"If": 0, "Loop": 1}.get(step.op)
    if decider is not None and (value := step.inputs[decider]) is not None:
        yield value
    if step.op == "Loop":
        yield from (scope.find(scope.graph.output[0].name) for scope in step.inner)


def _exact_inputs(step: Step) -> Iterator[Value]:
    """Yield the inputs that must be exact: those that are FP32 by definition, and what becomes an integer."""
    form, made = step.signature, step.outputs[0] if step.outputs else None
    if form is None or not (any(kind == FIXED for _name, kind in form.inputs) or step.op in {"Range", "Cast"}):
        return
    whole = step.op == "Range" or (step.op == "Cast" and made is not None and made.kind in INTEGER_KINDS)
    for index, value in enumerate(step.inputs):
        if value is not None and value.kind == FLOAT and (whole or form.input(index) == FIXED):
            yield value


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
        for one, reason in _precise(step):
            if one in converted and step.inputs[0] is not None and step.inputs[0].maker not in converted:
                yield one, reason


def _precise(step: Step) -> Iterator[tuple[Step, str]]:
    """Yield the steps that stay FP32 where they are given FP32, which costs no Cast more, each with the reason.

    They subtract the largest number from the others, or decide between numbers that may lie close together.
    """
    if step.op in {"LogSoftmax", "Softmax"}:
        yield step, "difference"
    largest = step.inputs[1].maker if step.op == "Sub" and step.inputs[1] is not None else None
    if largest is not None and largest.op == "ReduceMax" and largest.inputs[0] is step.inputs[0]:
        yield from ((step, "difference"), (largest, "difference"))
    if not any(value is not None and value.kind == FLOAT for value in step.outputs):
        yield step, "exact"


def _between(step: Step, converted: Mapping[Step, Slots]) -> bool:
    """Return whether a step only moves values from FP32 steps to FP32 steps."""
    makers = [value.maker for value in step.inputs if value is not None and value.kind == FLOAT and not value.tensor]
    takers = [taker for value in step.outputs if value is not None for taker in value.takers]
    ends = any(value is not None and value.output for value in step.outputs)
    around = [*makers, *takers]
    return not ends and bool(makers and takers) and all(one is not None and one not in converted for one in around)

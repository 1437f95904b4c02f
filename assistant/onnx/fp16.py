"""Converts models from FP32 to FP16: what fits is converted, what does not stays FP32, and each choice has a reason."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from onnx import ModelProto, TensorProto

from assistant.onnx.answers import Fp16Summary, Kept
from assistant.onnx.calibrate import Feeds, is_small, measure
from assistant.onnx.fp16_policy import OPERATORS, Slots, reason_to_keep, slots
from assistant.onnx.insert_casts import Writer
from assistant.onnx.parity import rehearse
from assistant.onnx.program import FLOAT, Program, Step, Value, attribute, program
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
    source: Program, *, keep_io_types: bool, calibrate: Calibrate, samples: Sequence[Feeds], keep: Iterable[str]
) -> tuple[ModelProto, Fp16Summary]:
    """Convert a program as `to_fp16` does a model, and return how it went as well."""
    constants = Constants()
    why = _by_definition(source, frozenset(keep)) | _exact(source)
    wide = outside(source, constants)
    calibration: Literal["run", "weights", "none"] = "none"
    if calibrate == "auto" and not samples and bound(source, constants) * CALM < LARGEST:
        calibration = "weights"
    elif calibrate != "never" and (measured := measure(source, samples)) is not None:
        calibration = "run"
        wide |= measured.outside
        why |= dict.fromkeys(measured.crowded, "sums")
        why |= _unseen(source, measured.seen)
    converted = _chosen(source, wide, why)
    rehearsed = is_small(source) and rehearse(source, converted, why, constants, samples)
    result = Writer(source, converted, constants, keep_io_types=keep_io_types).write()
    kept = tuple(Kept(node=step.node.name, op=step.op, why=text) for step, text in why.items() if any(step.floats()))
    return result, Fp16Summary(converted=len(converted), kept=kept, calibration=calibration, rehearsed=rehearsed)


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


def _unseen(source: Program, seen: set[Value]) -> dict[Step, str]:
    """Find the steps of subgraphs that are too large to be rehearsed and whose values no run has shown."""
    if is_small(source):
        return {}
    return {
        step: "unseen"
        for step in source.steps()
        if step.scope is not source.main and not seen.issuperset(value for value in step.outputs if value is not None)
    }


def _chosen(source: Program, wide: set[Value], why: dict[Step, str]) -> dict[Step, Slots]:
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
    for step in [*converted, *reversed(converted)]:
        if step in converted and step.op in OPERATORS.moves and _between(step, converted):
            why[step] = "between"
            del converted[step]
    for step in source.steps():
        for one in _differing(step):
            if one in converted and step.inputs[0] is not None and step.inputs[0].maker not in converted:
                why[one] = "difference"
                del converted[one]
    return converted


def _differing(step: Step) -> tuple[Step, ...]:
    """Return the steps that subtract the largest number from the others, a difference that rounding would lose.

    They stay FP32 where they are given FP32, which costs no Cast more.
    """
    if step.op in {"LogSoftmax", "Softmax"}:
        return (step,)
    largest = step.inputs[1].maker if step.op == "Sub" and step.inputs[1] is not None else None
    same = largest is not None and largest.op == "ReduceMax" and largest.inputs[0] is step.inputs[0]
    return (step, largest) if largest is not None and same else ()


def _between(step: Step, converted: dict[Step, Slots]) -> bool:
    """Return whether a step only moves values from FP32 steps to FP32 steps."""
    makers = [value.maker for value in step.inputs if value is not None and value.kind == FLOAT and not value.tensor]
    takers = [taker for value in step.outputs if value is not None for taker in value.takers]
    ends = any(value is not None and value.output for value in step.outputs)
    around = [*makers, *takers]
    return not ends and bool(makers and takers) and all(one is not None and one not in converted for one in around)

"""Converts models from FP32 to FP16: what fits is converted, what does not stays FP32, and each choice has a reason."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from onnx import ModelProto, TensorProto

from assistant.onnx.answers import Half, Kept
from assistant.onnx.calibrate import Feeds, evaluate, evaluate_on_runtime, feeds, is_small, measure
from assistant.onnx.casts import Writer
from assistant.onnx.halves import MOVES, Slots, kept_op, slots
from assistant.onnx.ranges import LARGEST, Constants, bound, outside
from assistant.onnx.rehearse import CLOSE, CLOSE_WIDE, blamed, differs
from assistant.onnx.values import FLOAT, Program, Step, Value, attribute, program

Calibrate = Literal["auto", "always", "never"]

CALM = 2.0  # room left above the estimate, which takes the strongest channel at six standard deviations
TINY_EPSILON = 1e-7  # a smaller epsilon is nothing in FP16
ROUNDS = 8  # of rehearsal, until conversion and original agree
REHEARSED_SIZES = (3, 8, 1)  # tried in turn for sizes that the model leaves open
DRAWS = 2  # of numbers: what lies close to a threshold shows in one or the other
# From an integer, a size, a threshold or a condition back to what it is computed from, through these.
ARITHMETIC = MOVES | {
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "ConstantOfShape", "CumSum", "Div", "Equal", "Exp", "Floor", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow", "Range",
    "Reciprocal", "ReduceMax", "ReduceMin", "ReduceSum", "Round", "Sigmoid", "Sign", "Sqrt", "Sub", "Sum",
    "Tanh", "Where",
}  # fmt: skip
DECIDES = {FLOAT, TensorProto.BOOL}
FIXED = "tensor(float)"
INTEGER_KINDS = {2, 3, 4, 5, 6, 7, 12, 13}  # TensorProto's


def to_fp16(
    model: ModelProto,
    *,
    keep_io_types: bool = True,
    calibrate: Calibrate = "auto",
    samples: Sequence[Feeds] = (),
    keep: Iterable[str] = (),
) -> ModelProto:
    """Convert a model to FP16 and answer the new one; `model` stays as it is.

    Weights beyond FP16's range, values that a run shows beyond it and what would be lost below it stay FP32. `samples`
    are inputs to calibrate with, made up where there are none. With "auto" the run is left out for a network whose
    weights show that nothing grows. `keep` names nodes or operators that stay FP32.
    """
    return convert_to_fp16(model, keep_io_types=keep_io_types, calibrate=calibrate, samples=samples, keep=keep)[0]


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Collect no rubbish: among many small objects that are none it would take a third of the time."""
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
) -> tuple[ModelProto, Half]:
    """Convert as `to_fp16` does, and tell how it went."""
    source, constants = program(model), Constants()
    why = _by_definition(source, frozenset(keep)) | _exact(source)
    wide = outside(source, constants)
    measured = None
    calibration: Literal["run", "weights", "none"] = "none"
    if calibrate != "never":
        calm = calibrate == "auto" and not samples and _calm(source, constants)
        measured = None if calm else measure(source, samples)
        calibration = "weights" if calm else "none" if measured is None else "run"
    if measured is not None:
        wide |= measured.outside
        why |= dict.fromkeys(measured.crowded, "sums")
        why |= _unseen(source, measured.seen)
    halves = _chosen(source, wide, why)
    rehearsed = is_small(source) and _rehearsed(source, halves, why, constants, samples)
    result = Writer(source, halves, constants, keep_io_types=keep_io_types).write()
    kept = tuple(Kept(node=step.node.name, op=step.op, why=text) for step, text in why.items() if any(step.floats()))
    return result, Half(converted=len(halves), kept=kept, calibration=calibration, rehearsed=rehearsed)


def _by_definition(source: Program, asked: frozenset[str]) -> dict[Step, str]:
    """Find what stays FP32 by its name, its definition or its attributes."""
    found = {}
    for step in source.steps():
        epsilon = attribute(step.node, "epsilon") if "Norm" in step.op else None
        if asked.intersection((step.node.name, step.op, step.node.op_type)):
            found[step] = "asked"
        elif isinstance(epsilon, float) and epsilon < TINY_EPSILON:
            found[step] = "epsilon"
        elif why := kept_op(step):
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
            todo.extend(value for value in step.inputs if value is not None and value.kind in DECIDES)
    return found


def _conditions(step: Step) -> Iterator[Value]:
    """Give what decides which branch is taken or how long a loop runs."""
    decider = {"If": 0, "Loop": 1}.get(step.op)
    if decider is not None and (value := step.inputs[decider]) is not None:
        yield value
    if step.op == "Loop":
        yield from (scope.find(scope.graph.output[0].name) for scope in step.inner)


def _exact_inputs(step: Step) -> Iterator[Value]:
    form, made = step.signature, step.outputs[0] if step.outputs else None
    if form is None or not (any(kind == FIXED for _name, kind in form.inputs) or step.op in {"Range", "Cast"}):
        return
    whole = step.op == "Range" or (step.op == "Cast" and made is not None and made.kind in INTEGER_KINDS)
    for index, value in enumerate(step.inputs):
        if value is not None and value.kind == FLOAT and (whole or form.input(index) == FIXED):
            yield value


def _calm(source: Program, constants: Constants) -> bool:
    largest = bound(source, constants)
    return largest is not None and largest * CALM < LARGEST


def _unseen(source: Program, seen: frozenset[Value]) -> dict[Step, str]:
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
    halves: dict[Step, Slots] = {}
    for step in source.steps():
        part = slots(step)
        if step in why or not (part.inputs or part.outputs):
            continue
        touched = [step.inputs[index] for index in part.inputs] + [step.outputs[index] for index in part.outputs]
        if wide.intersection(touched):
            why[step] = "beyond"
        else:
            halves[step] = part
    for step in [*halves, *reversed(halves)]:
        if step in halves and step.op in MOVES and _between(step, halves):
            why[step] = "between"
            del halves[step]
    for step in source.steps():
        for one in _differing(step):
            if one in halves and step.inputs[0] is not None and step.inputs[0].maker not in halves:
                why[one] = "difference"
                del halves[one]
    return halves


def _differing(step: Step) -> tuple[Step, ...]:
    """Give the steps that take the largest number from the others: among large ones rounding would eat the difference.

    They stay FP32 where they are given FP32, which costs no Cast more.
    """
    if step.op in {"LogSoftmax", "Softmax"}:
        return (step,)
    largest = step.inputs[1].maker if step.op == "Sub" and step.inputs[1] is not None else None
    same = largest is not None and largest.op == "ReduceMax" and largest.inputs[0] is step.inputs[0]
    return (step, largest) if largest is not None and same else ()


def _between(step: Step, halves: dict[Step, Slots]) -> bool:
    """Tell whether a step only moves values from FP32 steps to FP32 steps."""
    makers = [value.maker for value in step.inputs if value is not None and value.kind == FLOAT and not value.tensor]
    takers = [taker for value in step.outputs if value is not None for taker in value.takers]
    ends = any(value is not None and value.output for value in step.outputs)
    around = [*makers, *takers]
    return not ends and bool(makers and takers) and all(one is not None and one not in halves for one in around)


def _rehearsed(
    source: Program, halves: dict[Step, Slots], why: dict[Step, str], constants: Constants, samples: Sequence[Feeds]
) -> bool:
    """Run original and conversion, rounding at every node; keep in FP32 what parts them; tell whether they agree."""
    limits = [CLOSE] * (len(samples) or DRAWS) + [CLOSE_WIDE] * (not samples)
    for run in (evaluate, evaluate_on_runtime):
        with contextlib.suppress(Exception):  # their errors share no base: what neither can run is not rehearsed
            pairs = _performed(run, source, samples)
            for _round in range(ROUNDS if pairs else 0):
                writer = Writer(source, halves, constants)
                written = writer.write()
                found_now = [run(written, given) for given, _made in pairs]
                runs = [(pair[1], found, limit) for pair, found, limit in zip(pairs, found_now, limits, strict=True)]
                blame = blamed(source, halves, writer.names, runs)
                if not blame:
                    return True
                for step in [step for step in halves if step in blame]:
                    why[step] = "rehearsal"
                    del halves[step]
            if pairs:
                break
    return False


def _performed(
    run: Callable[[ModelProto, Feeds], Feeds], source: Program, samples: Sequence[Feeds]
) -> list[tuple[Feeds, Feeds]]:
    """Give inputs that the original takes, each with all the values it has then; none where it cannot be run so.

    Nor where ONNX Runtime gives something else: the evaluator computes some operators by another definition.
    """
    original = source.filled()
    for size in REHEARSED_SIZES[: 1 if samples else None]:
        with contextlib.suppress(Exception):
            pairs = [(given, run(original, given)) for given in samples or feeds(source, size, DRAWS)]
            return [] if run is evaluate and _denied(original, *pairs[0]) else pairs
    return []


def _denied(original: ModelProto, given: Feeds, made: Feeds) -> bool:
    """Tell whether ONNX Runtime gives other results than the evaluator; it need not be able to run the model."""
    with contextlib.suppress(Exception):
        found = evaluate_on_runtime(original, given)
        return any(differs(found[info.name], made.get(info.name)) for info in original.graph.output)
    return False

"""Which steps stay FP32 for what is computed from their results: integers, conditions, phases, and constants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import TensorProto

from assistant.onnx.fp16_policy import OPERATORS
from assistant.onnx.program import FLOAT, Program, Step, Value

ARITHMETIC = OPERATORS.moves | OPERATORS.arithmetic
FIXED = "tensor(float)"
INTEGER_KINDS = {
    TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT16, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64,
    TensorProto.UINT32, TensorProto.UINT64,
}  # fmt: skip


def precise(source: Program) -> dict[Step, str]:
    """Find the steps that FP16 would spoil, whatever the sizes of their values, each with the key of the reason."""
    return _from_constants(source) | _spectra(source) | _phases(source) | _exact(source)


def _from_constants(source: Program) -> dict[Step, str]:
    """Find what is computed from constants alone: a runtime does that once, and it costs nothing in FP32.

    Filters and windows are made so, by sines of large numbers and small differences.
    """
    made: set[Value] = set()
    found: dict[Step, str] = {}
    for step in source.steps():
        inputs = [value for value in step.inputs if value is not None]
        if not inputs or step.inner or not all(value.tensor is not None or value in made for value in inputs):
            continue
        made.update(value for value in step.outputs if value is not None)
        if step.op not in OPERATORS.moves | {"ConstantOfShape"}:
            found[step] = "constant"
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


def _spectra(source: Program) -> dict[Step, str]:
    """Find what makes the logarithm of a spectrum from an input: rounded, a faint part is lost beside a loud one.

    How large an input is, such as sound in 16 bits, is nobody's to know, and its powers are as large as its square.
    """
    found: dict[Step, str] = {}
    for step in source.main.steps:
        if step.op != "Log":
            continue
        after = _back([step], OPERATORS.gathers_powers)
        squares = [one for one in _makers(after) if one.op in OPERATORS.powers or _is_square(one)]
        before = _back(squares, OPERATORS.linear)
        if any(_is_given(value) for one in before for value in one.inputs if value is not None and value.kind == FLOAT):
            found |= dict.fromkeys((*after, *before), "dynamics")
    return found


def _back(steps: list[Step], ops: frozenset[str]) -> dict[Step, None]:
    """Return steps and what leads to them through these operators and through what only moves numbers."""
    found, todo = dict.fromkeys(steps), list(steps)
    while todo:
        new = [one for one in _makers([todo.pop()]) if one.op in ops | OPERATORS.moves and not _is_square(one)]
        todo += [one for one in new if one not in found]
        found |= dict.fromkeys(new)
    return found


def _makers(steps: Iterable[Step]) -> Iterator[Step]:
    for step in steps:
        yield from (value.maker for value in step.inputs if value is not None and value.maker and value.kind == FLOAT)


def _is_square(step: Step) -> bool:
    return step.op == "Mul" and step.inputs[0] is step.inputs[1]


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


def where_given_fp32(step: Step) -> Iterator[tuple[Step, str]]:
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

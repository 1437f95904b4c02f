"""What FP16 can hold: the operators that compute in it, the steps that it would spoil, the values beyond its range."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Iterator
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from assistant.api import Record
from assistant.api.records import from_plain
from assistant_addons.onnx.program import FLOAT, NO_TENSOR, UNKNOWN, Program, Step, Value, attribute

Names = frozenset[str]


class Operators(Record, frozen=True):
    """Sets of operators by what they do with numbers; `data/fp16.toml` says what each set means."""

    as_of: str
    moves: Names
    reorders: Names
    follows: Names
    chooses_type: Names
    arithmetic: Names
    runtime: Names
    carries_large: Names
    carries_tiny: Names
    averages: Names
    adds: Names
    keeps_size: Names
    bounded: Names
    periodic: Names
    linear: Names
    powers: Names
    gathers_powers: Names
    outer: Names
    weighted: Names
    sums_squares: Names
    sums: Names
    stays_fp32: dict[str, str]
    divides_by: dict[str, int]


_TABLE = (files(__package__) / "data" / "fp16.toml").read_text(encoding="utf-8")
OPERATORS = from_plain(tomllib.loads(_TABLE), Operators, "fp16.toml")

ARITHMETIC = OPERATORS.moves | OPERATORS.arithmetic
FIXED = "tensor(float)"
INTEGER_KINDS = {
    TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT16, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64,
    TensorProto.UINT32, TensorProto.UINT64,
}  # fmt: skip
LARGEST = 65504.0  # of FP16
ROUNDED_AWAY = 6e-7  # below, rounding to FP16 changes a number by more than 5 %
SIGNIFICANT = 2.0**-10  # of a tensor's largest: what is smaller does not count beside it

CARRIES_LARGE = OPERATORS.moves | OPERATORS.carries_large
CARRIES_TINY = OPERATORS.moves | OPERATORS.carries_tiny
AVERAGES = OPERATORS.moves | OPERATORS.averages
KEEPS_SIZE = OPERATORS.moves | OPERATORS.keeps_size

PEAK = 6.0  # the largest of a million normally distributed numbers, in standard deviations, and some more
HALVED = 0.5**0.5  # what is left of a signal's root mean square when its negative half is cut off
EPSILON = 1e-5  # BatchNormalization's default


class Slots(Record, frozen=True):
    """The inputs and outputs, by position, that become FP16 when a step does."""

    inputs: frozenset[int] = frozenset()
    outputs: frozenset[int] = frozenset()


def reason_to_keep(step: Step) -> str:
    """Return the key of the reason for which a step stays FP32 whatever its values are; "" where there is none."""
    values = (*step.inputs, *step.outputs)
    reasons = (
        ("sequence", any(value is not None and value.kind == NO_TENSOR for value in values)),
        ("subgraph", bool(step.inner)),
        ("threshold", step.op.startswith("ai.onnx.ml.")),
        (OPERATORS.stays_fp32.get(step.op, ""), step.op in OPERATORS.stays_fp32),
        ("scatter", step.op.startswith("Scatter") and attribute(step.node, "reduction", b"none") != b"none"),
        # The running mean and variance, which training updates.
        ("outputs", step.op == "BatchNormalization" and any(value is not None for value in step.outputs[1:])),
        ("quantised", any(map(_is_dequantized, step.inputs))),
    )
    return next((why for why, holds in reasons if holds), "")


def slots(step: Step) -> Slots:
    """Return which inputs and outputs become FP16; none where the operator's definition does not allow it."""
    if step.op in OPERATORS.chooses_type:
        return Slots(outputs=frozenset({0} if _kind(step.outputs[0]) == FLOAT else ()))
    if step.op in OPERATORS.follows:
        return Slots()
    form = step.signature
    if form is None:
        return _runtime_slots(step)
    taken = [(index, form.input(index), value.kind) for index, value in enumerate(step.inputs) if value is not None]
    made = [(index, form.output(index), value.kind) for index, value in enumerate(step.outputs) if value is not None]
    bound = {name for _index, name, kind in taken if kind == FLOAT} & form.halves
    bound -= {name for _index, name, kind in taken if kind == UNKNOWN}
    absent = {name for _input, name in form.inputs} - {name for _index, name, _kind in taken}
    if any(kind == FLOAT and name in absent for _index, name, kind in made):
        return (
            Slots()
        )  # LinearAttention without a state to start from: runtimes disagree on the type of the one it makes
    return Slots(
        inputs=frozenset(index for index, name, _kind in taken if name in bound),
        outputs=frozenset(index for index, name, kind in made if name in bound and kind == FLOAT),
    )


def _runtime_slots(step: Step) -> Slots:
    """Return the slots of an operator that ONNX Runtime defines, ONNX does not, and `data/fp16.toml` lists."""
    known = step.node.domain == "com.microsoft" and step.node.op_type in OPERATORS.runtime
    if not known or any(_kind(value) == UNKNOWN for value in step.inputs if value is not None) or len(step.outputs) > 1:
        return Slots()
    inputs, outputs = (
        frozenset(index for index, value in enumerate(side) if _kind(value) == FLOAT)
        for side in (step.inputs, step.outputs)
    )
    return Slots(inputs=inputs, outputs=outputs)


def _kind(value: Value | None) -> int:
    return UNKNOWN if value is None else value.kind


def _is_dequantized(value: Value | None) -> bool:
    """Return whether a value is an activation, no weight, that was quantised: runtimes fuse its taker as it stands."""
    maker = value.maker if value is not None else None
    source = maker.inputs[0] if maker is not None and maker.op == "DequantizeLinear" else None
    return source is not None and source.tensor is None and source.maker is not None


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


class Constant:
    """A constant's numbers in FP16 (`half`), whether they are too large or too tiny, and how it scales a signal."""

    def __init__(self, tensor: TensorProto) -> None:
        self.full: NDArray[np.float32] = numpy_helper.to_array(tensor)
        self.peak = _peak(self.full)
        self.large = self.peak > LARGEST
        within = self.full
        if self.large:
            within = np.where(np.isfinite(within), np.clip(within, -LARGEST, LARGEST), within)
        self.half: NDArray[np.float16] = within.astype(np.float16)
        self.tiny = False
        least = self.peak * SIGNIFICANT
        if 0 < least < ROUNDED_AWAY:
            sizes = np.abs(self.full)
            self.tiny = bool(((sizes >= least) & (sizes > 0) & (sizes < ROUNDED_AWAY)).any())

    @property
    def vanishes(self) -> bool:
        """Whether a number becomes zero that was none: nothing may be divided by it."""
        return bool(((self.half == 0) & (self.full != 0)).any())

    def growth(self) -> tuple[float, float]:
        """Return how a product by it lets a signal grow: on average over its rows, and at most; of a matrix the worse.

        For a batch normalisation's or another elementwise factor see `peak`.
        """
        rows = self.full.reshape(len(self.full), -1) if self.full.ndim > 1 else self.full.reshape(1, -1)
        lengths = [np.einsum("ij,ij->i", rows, rows)] + [np.einsum("ij,ij->j", rows, rows)] * (self.full.ndim == 2)  # noqa: PLR2004
        means, most = [float(x.mean()) for x in lengths], [float(x.max(initial=0)) for x in lengths]
        return math.sqrt(max(means)), math.sqrt(max(most))


class Constants(dict[Value, Constant]):
    """The FP32 constants of a program, read when first asked for."""

    def __missing__(self, value: Value) -> Constant:
        if value.tensor is None:
            raise KeyError(value.name)
        self[value] = Constant(value.tensor)
        return self[value]

    def of(self, value: Value | None) -> Constant | None:
        """Return a value's constant; None where it is none, or not FP32."""
        return self[value] if value is not None and value.tensor is not None and value.kind == FLOAT else None


def outside(program: Program, constants: Constants) -> set[Value]:
    """Return the values that FP16 cannot hold, as far as the constants tell: beyond its range, or lost below it."""
    found: set[Value] = set()
    for name in program.defaults:
        value = program.main.values[name]
        if value.kind == FLOAT and ((known := Constant(program.weights[name])).large or known.tiny):
            found.add(value)
    for scope in program.scopes():
        for step in scope.steps:
            _mark(step, constants, found)
    return found


def _mark(step: Step, constants: Constants, found: set[Value]) -> None:
    for index, value in enumerate(step.inputs):
        known = constants.of(value)
        if known is None or value is None:
            continue
        # A bound for Clip beyond FP16 bounds nothing, so that the largest number will do.
        is_limit = step.op == "Clip" and index > 0
        is_bias = step.op in OPERATORS.weighted and index > 1
        is_addend = is_bias or step.op in OPERATORS.adds or step.op == "BatchNormalization"
        if (known.large or (step.op == "Div" and index and known.vanishes)) and not is_limit:
            found.add(value)
        elif known.tiny and (known.full.size == 1 or not is_addend):
            found.add(value)
            if step.op in OPERATORS.adds:
                for other in step.inputs:
                    _mark_summed(other, found)
    if step.op == "ConstantOfShape" and (_fill_value(step) > LARGEST or 0 < _fill_value(step) < ROUNDED_AWAY):
        found.update(value for value in step.outputs if value is not None)
    taken = [value for value in step.inputs if value in found]
    carried = any(value is not None and _carries(step, value, constants) for value in taken)
    if carried:
        found.update(value for value in step.outputs if value is not None and value.kind == FLOAT)


def _carries(step: Step, value: Value, constants: Constants) -> bool:
    known = constants.of(value)
    if known is not None:
        return step.op in (CARRIES_LARGE if known.large else CARRIES_TINY)
    return step.op in CARRIES_LARGE & CARRIES_TINY or step.op in {"Sqrt", "Reciprocal"}


def _mark_summed(value: Value | None, found: set[Value]) -> None:
    """Mark a sum or mean that is as small as what is added to it, and what it was made from."""
    while value is not None and value.tensor is None and value not in found:
        found.add(value)
        maker = value.maker
        value = maker.inputs[0] if maker is not None and maker.op in AVERAGES and maker.inputs else None


def bound(program: Program, constants: Constants) -> float:
    """Estimate the largest value from the weights, taking signals as independent; infinite where that is impossible."""
    if any(step.inner for step in program.main.steps):
        return math.inf
    sizes: dict[Value, float] = {}  # root mean squares
    largest = 0.0
    for step in program.main.steps:
        if not any(value is not None and value.kind == FLOAT for value in step.outputs):
            continue
        found = _size(step, sizes, constants)
        if found is None:
            return math.inf
        sizes.update((value, found[0]) for value in step.outputs if value is not None)
        largest = max(largest, found[1])
    return largest * PEAK


def _size(  # noqa: PLR0911 - a case per kind of operator
    step: Step, sizes: dict[Value, float], constants: Constants
) -> tuple[float, float] | None:
    """Estimate the root mean square of a step's output, and that of its strongest channel."""
    if step.op in {"Constant", "ConstantOfShape"}:
        known = constants.of(step.outputs[0])
        size = known.peak if known is not None else _fill_value(step)
        return size, size
    if step.op in OPERATORS.bounded:
        return 1.0, 1.0
    inputs = [
        known.peak if (known := constants.of(value)) is not None else sizes.get(value, 1.0)
        for value in step.inputs
        if value is not None and value.kind == FLOAT
    ]
    if step.op in KEEPS_SIZE:
        size = math.sqrt(sum(one * one for one in inputs) / max(1, len(inputs))) * (HALVED if step.op == "Relu" else 1)
        return size, max(inputs, default=0.0)
    if step.op in {"Add", "Sub", "Sum"}:
        size = math.hypot(*inputs)
        return size, size
    constant = [value for value in step.inputs if value is not None and _is_weight(value)]
    if step.op == "Mul" and constant:
        size = math.prod(inputs)
        return size, size
    if step.op in OPERATORS.weighted and len(step.inputs) > 1 and step.inputs[1] in constant:
        mean, most = _growth(step.inputs[1], constants)
        return inputs[0] * mean + sum(inputs[2:]), inputs[0] * most + sum(inputs[2:])
    if step.op == "BatchNormalization" and len(constant) == 4:  # noqa: PLR2004 - scale, shift, mean, variance
        return _normalised(step, inputs[0], constants)
    return None


def _is_weight(value: Value) -> bool:
    """Return whether a value is a constant, or made as one number repeated."""
    if value.maker is not None and value.maker.op in OPERATORS.moves and value.maker.inputs[0] is not None:
        return _is_weight(value.maker.inputs[0])
    return value.tensor is not None or (value.maker is not None and value.maker.op == "ConstantOfShape")


def _fill_value(step: Step | None) -> float:
    """Return the number that a step fills a tensor with."""
    content = attribute(step.node, "value") if step is not None else None
    if not isinstance(content, TensorProto):
        return 0.0
    return content.float_data[0] if content.float_data else float(numpy_helper.to_array(content).ravel()[0])


def _growth(value: Value | None, constants: Constants) -> tuple[float, float]:
    known = constants.of(value)
    if known is not None:
        return known.growth()
    if value is None or value.maker is None or not value.shape or None in value.shape:
        return math.inf, math.inf
    length = _fill_value(value.maker) * math.sqrt(math.prod(size or 1 for size in value.shape[1:]))
    return length, length


def _normalised(step: Step, size: float, constants: Constants) -> tuple[float, float]:
    """Estimate a batch normalisation from its channels' slopes."""
    scale, shift, mean, variance = (
        np.abs(known.full) if (known := constants.of(value)) is not None else np.float32(_fill_value(value.maker))
        for value in step.inputs[1:5]
        if value is not None and (value.tensor is not None or value.maker is not None)
    )
    given = attribute(step.node, "epsilon")
    epsilon = given if isinstance(given, float) else EPSILON
    channels = (size**2 + mean**2) * scale**2 / (variance + epsilon) + shift**2
    return math.sqrt(float(np.mean(channels))), math.sqrt(float(np.max(channels)))


def _peak(numbers: NDArray[np.float32]) -> float:
    """Return the largest size among the finite numbers; infinities and NaN are the same in FP16."""
    if not numbers.size:
        return 0.0
    high = max(float(numbers.max()), -float(numbers.min()))  # no copy, as weights may be as large as memory
    if math.isfinite(high):
        return high
    finite = np.abs(numbers[np.isfinite(numbers)])
    return float(finite.max(initial=0))

"""Which values do not fit into FP16: weights too large or too small, and what follows from them without a run."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from assistant.onnx.fp16_policy import OPERATORS
from assistant.onnx.program import FLOAT, Program, Step, Value, attribute

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

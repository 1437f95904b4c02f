"""Runs original and conversion in an evaluator that rounds at every node, and finds the steps where they part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assistant.onnx.values import Program, Step, Value

CLOSE = 4e-3  # of the largest number: what an output may differ by
CLOSE_WIDE = 5e-2  # the same for inputs that are there to find what overflows
PARTED = 2e-3  # of its own largest: from here on a value inside counts as having gone astray
MOST_CHANGED = 0.005  # of integers and truths, which change as a whole


def differs(expected: Any, found: Any, limit: float = CLOSE, least: float = 1.0) -> bool:  # noqa: ANN401 - arrays, lists
    """Tell whether two results differ: in shape, in NaN or infinity, or by more than `limit` of the largest number."""
    if isinstance(expected, list) and isinstance(found, list):
        pairs = zip(expected, found, strict=False)
        return len(expected) != len(found) or any(differs(one, other, limit, least) for one, other in pairs)
    if expected is None or found is None or isinstance(expected, dict):
        return False
    one, other = np.asarray(expected), np.asarray(found)
    if one.shape != other.shape:
        return True
    if one.dtype.kind not in "fc" or other.dtype.kind not in "fc":
        return bool(one.size) and float(np.mean(one != other)) > MOST_CHANGED
    return _far(one.astype(np.float64), other.astype(np.float64), limit, least)


def _far(one: NDArray[np.float64], other: NDArray[np.float64], limit: float, least: float) -> bool:
    if (np.isnan(one) != np.isnan(other)).any() or (np.isinf(one) != np.isinf(other)).any():
        return True
    finite = np.isfinite(one) & np.isfinite(other)
    if not finite.any():
        return False
    scale = max(least, float(np.abs(one[finite]).max()))
    return float(np.abs(one[finite] - other[finite]).max()) > limit * scale


def blamed(
    program: Program,
    halves: Mapping[Step, object],
    names: Mapping[Value, str],
    runs: list[tuple[dict[str, Any], dict[str, Any], float]],
) -> set[Step]:
    """Give the FP16 steps to keep in FP32 after all, from runs of original and conversion.

    A run is what both gave and how far they may differ. Where all agree nothing is blamed; else those steps that stray
    though what they take did not, then whatever made their inputs, then everything that leads to a wrong output.
    """
    outputs = [info.name for info in program.model.graph.output]
    wrong = {
        name
        for expected, found, limit in runs
        for name in outputs
        if differs(expected.get(name), found.get(name), limit)
    }
    if not wrong:
        return set()
    steps: set[Step] = set()
    for expected, found, _limit in runs:
        steps |= _astray(program, halves, names, expected, found)
    return steps or _leading_to(program, wrong, halves)


def _astray(
    program: Program,
    halves: Mapping[Step, object],
    names: Mapping[Value, str],
    expected: dict[str, Any],
    found: dict[str, Any],
) -> set[Step]:
    strayed = {
        value
        for step in program.main.steps
        for value in step.outputs
        if value is not None and value.name in expected
        and differs(expected[value.name], found.get(names.get(value, value.name)), PARTED, 1e-30)
    }  # fmt: skip
    steps: set[Step] = set()
    for step in program.main.steps:
        if strayed.intersection(step.outputs) and not strayed.intersection(step.inputs):
            steps |= set(step.within())
            if step not in halves:
                steps |= {value.maker for value in step.inputs if value is not None and value.maker is not None}
    return steps & halves.keys()


def _leading_to(program: Program, wrong: set[str], halves: Mapping[Step, object]) -> set[Step]:
    todo = [program.main.values[name].maker for name in wrong if name in program.main.values]
    found: set[Step] = set()
    while todo:
        step = todo.pop()
        if step is None or step in found:
            continue
        inside = set(step.within())
        found |= inside
        todo.extend(value.maker for one in inside for value in one.inputs if value is not None)
    return found & halves.keys()

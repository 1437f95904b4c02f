"""How far results lie apart: floats by their largest difference, other types by how many changed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# Chosen on the models of tests/onnx_traps.py and on onnx's own test models.
CLOSE = 4e-3  # of the largest number: what an output may differ by
SMALLEST_SCALE = 1e-3  # outputs that are all smaller count as this large: their last digits are noise
MOST_CHANGED = 0.005  # of integers and truths, which change as a whole


def distance(expected: Any, found: Any) -> float:  # noqa: ANN401 - arrays, and numbers
    """Return how far an array is from the one that was expected.

    Of floats it is the largest difference, relative to the largest number expected or to `SMALLEST_SCALE`; of
    other types the share that changed. It is infinite where the shapes, or the places of NaN or infinity, are others.
    """
    one, other = np.asarray(expected), np.asarray(found)
    if one.shape != other.shape:
        return math.inf
    if not _are_floats(one, other):
        return float(np.mean(one != other)) if one.size else 0.0
    one, other = one.astype(np.float64), other.astype(np.float64)
    if (np.isnan(one) != np.isnan(other)).any() or (np.isinf(one) != np.isinf(other)).any():
        return math.inf
    finite = np.isfinite(one)
    one, other = one[finite], other[finite]
    return float(np.abs(one - other).max(initial=0)) / max(SMALLEST_SCALE, float(np.abs(one).max(initial=0)))


def differs(expected: Any, found: Any, limit: float = CLOSE) -> bool:  # noqa: ANN401 - arrays, lists
    """Return whether two results lie further apart than `limit`, or `MOST_CHANGED` where they are no floats."""
    if isinstance(expected, list) and isinstance(found, list):
        pairs = zip(expected, found, strict=False)
        return len(expected) != len(found) or any(differs(one, other, limit) for one, other in pairs)
    if expected is None or found is None or isinstance(expected, dict):
        return False
    return distance(expected, found) > (limit if _are_floats(expected, found) else MOST_CHANGED)


def _are_floats(*arrays: object) -> bool:
    return all(np.asarray(array).dtype.kind in "fc" for array in arrays)

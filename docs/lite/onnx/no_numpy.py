"""Stands in for NumPy and ml_dtypes, which PyPI does not have for browsers, while onnx and the assistant are imported.

onnx asks both for the names and sizes of number types, the assistant for a type in annotations. Nothing else is asked
until arrays are read or made, which neither a check nor a fix of sizes does; what they read of tensors is read by
`assistant.onnx.tensor_data`. Whatever else is asked of these modules is an error.
"""

from __future__ import annotations

import re
import sys
from types import ModuleType


class NumberType:
    """A number type by its name, as `numpy.dtype` is."""

    def __init__(self, name: str) -> None:
        self.name = name
        digits = re.search(r"\d+", name)  # bits; a number of less than eight takes a byte
        self.itemsize = max(int(digits[0]) // 8 if digits else 1, 1)


class _MlDtypes(ModuleType):
    def __getattr__(self, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        return name


def stand_in() -> None:
    """Put the modules where Python finds them."""
    numpy, typing = ModuleType("numpy"), ModuleType("numpy.typing")
    numpy.dtype, numpy.typing, typing.NDArray = NumberType, typing, object
    sys.modules |= {"numpy": numpy, "numpy.typing": typing, "ml_dtypes": _MlDtypes("ml_dtypes")}

"""The numbers of tensors."""

from __future__ import annotations

import itertools

import numpy as np
from onnx import TensorProto, helper
from tables import each

from assistant_addons.onnx.program import numbers

KINDS = [
    TensorProto.FLOAT,
    TensorProto.FLOAT16,
    TensorProto.BFLOAT16,
    TensorProto.BOOL,
    TensorProto.INT8,
    TensorProto.INT64,
]


@each("kind, raw", itertools.product(KINDS, [False, True]))
def test_numbers_come_in_order(kind: int, *, raw: bool):
    """They may be stored as bytes or in a list."""
    array = np.array([[0, 1, 2], [3, 100, 1]]).astype(helper.tensor_dtype_to_np_dtype(kind))
    if array.dtype.kind in "if":
        array = -array
    tensor = helper.make_tensor("", kind, array.shape, array.tobytes() if raw else array, raw=raw)
    assert numbers(tensor) == array.ravel().tolist()


def test_numbers_that_were_not_read_are_not_known():
    """The weights of a large file that were left there are not taken for an empty list."""
    left = TensorProto(dims=[2**20], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    assert numbers(left) is None
    assert numbers(TensorProto(dims=[2**20], data_type=TensorProto.FLOAT)) is None

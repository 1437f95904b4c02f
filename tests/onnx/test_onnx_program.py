"""The numbers of tensors, and sparse tensors written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper
from tables import each

from assistant.onnx.program import dense, numbers

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


def sparse(values: list[float], indices: np.ndarray, shape: tuple[int, ...]) -> SparseTensorProto:
    """Make a sparse tensor of FP32."""
    held = helper.make_tensor("w", TensorProto.FLOAT, [len(values)], values)
    return helper.make_sparse_tensor(held, numpy_helper.from_array(indices.astype(np.int64)), shape)


@each("indices", [np.array([1, 7, 23]), np.array([[0, 0, 1], [0, 1, 3], [1, 2, 3]])])
def test_a_sparse_tensor_is_written_out(indices: np.ndarray):
    """Places may be counted through or given by coordinates."""
    expected = np.zeros((2, 3, 4), np.float32)
    expected.flat[[1, 7, 23]] = [1, 2, 3]
    whole = dense(sparse([1, 2, 3], indices, (2, 3, 4)))
    assert whole.name == "w"
    np.testing.assert_array_equal(numpy_helper.to_array(whole), expected)


@each(
    ("indices", "shape"),
    [
        (np.array([1, 24]), (2, 3, 4)),
        (np.array([-1, 2]), (4,)),
        (np.array([[0, 4], [0, 1]]), (2, 3)),
        (np.array([1]), (4,)),
    ],
)
def test_a_sparse_tensor_that_does_not_fit_is_refused(indices: np.ndarray, shape: tuple[int, ...]):
    """A place outside the shape, or another count of places than of values."""
    with pytest.raises(ValueError, match="w"):
        dense(sparse([1, 2], indices, shape))

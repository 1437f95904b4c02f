"""Reads what tensors store without NumPy, which PyPI does not have for browsers (2026-11-27): a check needs no more."""

from __future__ import annotations

import math
import struct
from typing import Any

from onnx import SparseTensorProto, TensorProto, helper, numpy_helper

# The codes of Python's struct for ONNX's element types; the others are NumPy's to read.
CODES: dict[int, str] = {
    TensorProto.FLOAT: "f",
    TensorProto.DOUBLE: "d",
    TensorProto.FLOAT16: "e",
    TensorProto.BOOL: "?",
    TensorProto.INT8: "b",
    TensorProto.INT16: "h",
    TensorProto.INT32: "i",
    TensorProto.INT64: "q",
    TensorProto.UINT8: "B",
    TensorProto.UINT16: "H",
    TensorProto.UINT32: "I",
    TensorProto.UINT64: "Q",
}
FIELDS_OF_FLOATS = {"float_data": "f", "double_data": "d"}


def numbers(tensor: TensorProto) -> list[Any] | None:
    """Return a tensor's numbers in row-major order; None where they were not read (see `load_model`)."""
    code = CODES.get(tensor.data_type)
    if code is None:
        return list(numpy_helper.to_array(tensor).ravel().tolist())
    count, held = math.prod(tensor.dims), content(tensor)
    return list(struct.unpack(f"<{count}{code}", held)) if len(held) == count * struct.calcsize(code) else None


def content(tensor: TensorProto) -> bytes:
    """Return a tensor's numbers as bytes, as `raw_data` holds them, wherever it stores them."""
    if tensor.HasField("raw_data"):
        return tensor.raw_data
    field = helper.tensor_dtype_to_field(tensor.data_type)
    given = getattr(tensor, field)
    if field in FIELDS_OF_FLOATS:
        return struct.pack(f"<{len(given)}{FIELDS_OF_FLOATS[field]}", *given)
    size = item_size(tensor.data_type)
    return b"".join((number & ~(-1 << 8 * size)).to_bytes(size, "little") for number in given)


def item_size(kind: int) -> int:
    """Return the bytes of one number of an element type."""
    return int(helper.tensor_dtype_to_np_dtype(kind).itemsize)


def dense(sparse: SparseTensorProto) -> TensorProto:
    """Write a sparse tensor out; raise `ValueError` for one whose indices and values do not fit its shape."""
    shape, places = tuple(sparse.dims), numbers(sparse.indices)
    kind, count = sparse.values.data_type, math.prod(sparse.values.dims)
    size, given = item_size(kind), content(sparse.values)
    if places is None or kind == TensorProto.STRING or len(given) != count * size:
        raise ValueError(sparse.values.name)
    if len(sparse.indices.dims) > 1:  # a row of coordinates for each value
        steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        rows = [places[start : start + len(shape)] for start in range(0, len(places), len(shape) or 1)]
        if any(not 0 <= at < most for row in rows for at, most in zip(row, shape, strict=True)):
            raise ValueError(sparse.values.name)
        places = [sum(at * step for at, step in zip(row, steps, strict=True)) for row in rows]
    if len(places) != count or any(not 0 <= place < math.prod(shape) for place in places):
        raise ValueError(sparse.values.name)
    data = bytearray(math.prod(shape) * size)
    for number, place in enumerate(places):
        data[place * size : (place + 1) * size] = given[number * size : (number + 1) * size]
    return TensorProto(name=sparse.values.name, dims=shape, data_type=kind, raw_data=bytes(data))

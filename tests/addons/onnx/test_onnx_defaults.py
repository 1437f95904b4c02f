"""Weights that a caller may give as inputs stay inputs through a conversion, in the type that they had."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

from assistant_addons.onnx import to_fp16

pytestmark = pytest.mark.process  # the result of each conversion is loaded in one

Written = Callable[..., ModelProto]
X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)


def with_default(written: Written, default: float = 2.0, ir: int = 8) -> ModelProto:
    """Make a model that scales what a weight multiplies, by an input that has a default."""
    model = written(
        "g (float[2, 4] x, float[1] scale) => (float[2, 3] y) { a = MatMul(x, w) b = Mul(a, scale) y = Relu(b) }", ir=ir
    )
    for name, array in (("w", np.ones((4, 3))), ("scale", np.array([default]))):
        model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    return model


def outputs(model: ModelProto, **given: np.ndarray) -> np.ndarray:
    """Run a model in ONNX Runtime."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, given)[0]


def test_a_caller_may_go_on_giving_it(written: Written) -> None:
    """The input has its type and default still, and what is given in its place counts."""
    model = with_default(written)
    half = to_fp16(model)
    onnx.checker.check_model(half, full_check=True)
    infos = {info.name: info.type.tensor_type.elem_type for info in half.graph.input}
    assert infos == {"x": TensorProto.FLOAT, "scale": TensorProto.FLOAT}
    scale = np.array([-3], np.float32)
    assert np.allclose(outputs(half, x=X), outputs(model, x=X), atol=1e-2)
    assert np.allclose(outputs(half, x=X, scale=scale), outputs(model, x=X, scale=scale), atol=1e-2)
    assert {tensor.name: tensor.data_type for tensor in half.graph.initializer}["scale"] == TensorProto.FLOAT
    assert any(tensor.data_type == TensorProto.FLOAT16 for tensor in half.graph.initializer)

"""Weights that a caller may give as inputs stay inputs through a conversion, in the type that they had."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from assistant_addons.onnx import to_fp16
from assistant_addons.onnx.conversion import convert
from assistant_addons.onnx.graph import MOST_DEFAULTS, defaults

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


def test_weights_of_old_models_are_none(written: Written, tmp_path: Path) -> None:
    """Before IR version 4 every weight had to be listed, and so did some exporters with all of them later."""
    old = with_default(written, ir=3)
    old.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 3]))
    assert defaults(old) == frozenset()
    assert [info.name for info in to_fp16(old).graph.input] == ["x"]
    habit = with_default(written)
    habit.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 3]))
    assert defaults(habit) == {"scale", "w"}
    for number in range(MOST_DEFAULTS):
        habit.graph.initializer.append(numpy_helper.from_array(np.ones(1, np.float32), f"w{number}"))
        habit.graph.input.append(helper.make_tensor_value_info(f"w{number}", TensorProto.FLOAT, [1]))
    assert defaults(habit) == frozenset()
    onnx.save(habit, tmp_path / "model.onnx")
    changes = convert(tmp_path / "model.onnx").changes
    assert any("inputs no more: 10" in str(change.what) for change in changes)

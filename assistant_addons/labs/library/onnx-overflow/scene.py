"""A model whose inner values exceed FP16, with an opset newer than DirectML's kernels; and a naive copy."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from assistant_addons.labs.workspace import Workspace


def files(_space: Workspace) -> Mapping[str, str | bytes]:
    """Return the model, and the copy in which every weight is FP16."""
    models = {"model.onnx": False, "half.onnx": True}
    return {name: _model(half=half).SerializeToString(deterministic=True) for name, half in models.items()}


def _model(*, half: bool) -> Any:
    kind, made = (TensorProto.FLOAT16, np.float16) if half else (TensorProto.FLOAT, np.float32)
    chance = np.random.default_rng(0)
    wide = numpy_helper.from_array((40 * chance.standard_normal((16, 8))).astype(made), "wide")
    narrow = numpy_helper.from_array((1e-3 * chance.standard_normal((8, 4))).astype(made), "narrow")
    steps = (
        ("MatMul", ["x", "wide"], "a"),
        ("Mul", ["a", "a"], "b"),
        ("MatMul", ["b", "narrow"], "c"),
        ("Gelu", ["c"], "y"),
    )
    nodes = [helper.make_node(operator, inputs, [output]) for operator, inputs, output in steps]
    x, y = (helper.make_tensor_value_info(name, kind, ["batch", size]) for name, size in (("x", 16), ("y", 4)))
    graph = helper.make_graph(nodes, "lab", [x], [y], [wide, narrow])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)

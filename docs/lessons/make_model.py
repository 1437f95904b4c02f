"""Makes model.onnx: a layer whose squares leave FP16's range, in an opset that DirectML does not fully support."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

weights = np.random.default_rng(0).normal(0, 40, (64, 64)).astype(np.float32)
nodes = [
    helper.make_node("MatMul", ["x", "weights"], ["product"]),
    helper.make_node("Mul", ["product", "product"], ["square"]),
    helper.make_node("ReduceMean", ["square"], ["mean"], keepdims=1),
    helper.make_node("Sqrt", ["mean"], ["length"]),
    helper.make_node("Div", ["product", "length"], ["normal"]),
    helper.make_node("Gelu", ["normal"], ["y"]),
]
shape = [1, 64]
graph = helper.make_graph(
    nodes,
    "lesson",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    [numpy_helper.from_array(weights, "weights")],
)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), "model.onnx")

"""What a learner might write who converts the model by hand: Gelu by its parts, and the step that overflows in FP32."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

model = onnx.load("model.onnx")
wide, narrow = map(numpy_helper.to_array, model.graph.initializer)
weights = {"wide": wide.astype(np.float16), "narrow": narrow.astype(np.float16)}
weights |= {"root": np.float16(2**-0.5), "one": np.float16(1), "half": np.float16(0.5)}
steps = [
    ("Cast", ["wide"], "wide32", TensorProto.FLOAT),
    ("Cast", ["narrow"], "narrow32", TensorProto.FLOAT),
    ("MatMul", ["x", "wide32"], "a"),
    ("Mul", ["a", "a"], "b"),
    ("MatMul", ["b", "narrow32"], "c32"),
    ("Cast", ["c32"], "c", TensorProto.FLOAT16),
    ("Mul", ["c", "root"], "d"),
    ("Erf", ["d"], "e"),
    ("Add", ["e", "one"], "f"),
    ("Mul", ["c", "f"], "g"),
    ("Mul", ["g", "half"], "h"),
    ("Cast", ["h"], "y", TensorProto.FLOAT),
]
nodes = [helper.make_node(name, into, [out], **({"to": more[0]} if more else {})) for name, into, out, *more in steps]
made = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
graph = helper.make_graph(nodes, "by hand", model.graph.input, model.graph.output, made)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "half.onnx")

"""Run half.onnx as a device with FP16 does, every step rounded, and compare it with model.onnx.

It is right when it agrees, holds FP16 weights, and asks for no opset past 19.
"""

import sys

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

name = "half.onnx"
original, given = onnx.load("model.onnx"), onnx.load(name)
half = given.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
x = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)
with np.errstate(all="ignore"):
    expected = ReferenceEvaluator(original).run(None, {"x": x})[0]
    found = ReferenceEvaluator(given).run(None, {"x": x.astype(np.float16) if half else x})[0]
if not np.isfinite(found).all():
    sys.exit(f"{name} gives {int((~np.isfinite(found)).sum())} values that are no numbers")
if not np.allclose(found, expected, rtol=0.02, atol=0.02 * float(np.abs(expected).max())):
    sys.exit(f"{name} does not agree with model.onnx")
used = {one for node in given.graph.node for one in node.input}
halves = {weight.name for weight in given.graph.initializer if weight.data_type == onnx.TensorProto.FLOAT16}
if not halves & used:
    sys.exit(f"{name} computes with no FP16 weights")
opset = max(entry.version for entry in given.opset_import if entry.domain in ("", "ai.onnx"))
if opset > 19:
    sys.exit(f"{name} asks for opset {opset}: from 20 on DirectML has no kernel for its Gelu")
print(f"{name} agrees with model.onnx")

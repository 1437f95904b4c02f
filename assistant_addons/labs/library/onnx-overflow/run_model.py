"""Run a model as a device with FP16 does, every step rounded, and compare it with the FP32 model beside it.

Usage: run_model.py FOLDER MODEL: a model is right when it agrees, holds FP16 weights, and asks for no opset past 19.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

folder, name = Path(sys.argv[1]), sys.argv[2]
if not (folder / name).exists():
    sys.exit(f"there is no {name} yet")
wanted, given = onnx.load(folder / "model.onnx"), onnx.load(folder / name)
x = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)
with np.errstate(all="ignore"):
    expected = ReferenceEvaluator(wanted).run(None, {"x": x})[0]
    found = ReferenceEvaluator(given).run(None, {"x": x.astype(np.float16) if name == "naive.onnx" else x})[0]
if not np.isfinite(found).all():
    sys.exit(f"{name} gives {int((~np.isfinite(found)).sum())} values that are no numbers")
if not np.allclose(found, expected, rtol=0.02, atol=0.02 * float(np.abs(expected).max())):
    sys.exit(f"{name} does not agree with model.onnx")
if not any(weight.data_type == onnx.TensorProto.FLOAT16 for weight in given.graph.initializer):
    sys.exit(f"{name} holds no FP16 weights")
opset = max(entry.version for entry in given.opset_import if entry.domain in ("", "ai.onnx"))
if opset > 19:
    sys.exit(f"{name} asks for opset {opset}, and DirectML's kernels end before it")
print(f"{name} agrees with model.onnx")

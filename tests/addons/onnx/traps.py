"""Small models, each built around one trap of the conversion to FP16."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, helper, numpy_helper, parser

LARGEST_FLOAT = 3.4028235e38

# Each with its opset, its graph and its weights.
TRAPS: dict[str, tuple[int, str, dict[str, Any]]] = {
    "mask of the smallest float": (
        17,
        "g (float[2,4,8] x) => (float[2,4,8] y) { s = Add(x, mask) y = Softmax(s) }",
        {"mask": np.where(np.arange(8) > 4, np.float32(-LARGEST_FLOAT), np.float32(0))},
    ),
    "mask of infinity": (
        17,
        "g (float[2,8] x) => (float[2,8] y) { s = Add(x, mask) y = Softmax(s) }",
        {"mask": np.where(np.arange(8) > 4, -np.inf, 0).astype(np.float32)},
    ),
    "chosen mask": (
        17,
        "g (float[2,4] x, bool[2,4] c) => (float[2,4] y) { s = Where(c, x, neg) y = Softmax(s) }",
        {"neg": np.float32(-LARGEST_FLOAT)},
    ),
    "squares leave the range": (
        17,
        (
            "g (float[2,64] x) => (float[2,64] y) { a = Mul(x, k) s = Mul(a, a) v = ReduceMean<axes=[-1]>(s) "
            "r = Sqrt(v) y = Div(a, r) }"
        ),
        {"k": np.float32(300)},
    ),
    "exponential": (
        17,
        "g (float[2,8] x) => (float[2,8] y) { a = Mul(x, k) e = Exp(a) y = Log(e) }",
        {"k": np.float32(6)},
    ),
    "tiny epsilon": (
        17,
        (
            "g (float[4,16] x) => (float[4,16] y) { m = ReduceMean<axes=[-1]>(x) d = Sub(x, m) q = Mul(d, d) "
            "v = ReduceMean<axes=[-1]>(q) e = Add(v, eps) s = Sqrt(e) y = Div(d, s) }"
        ),
        {"eps": np.float32(1e-12)},
    ),
    "large variance in a normalisation": (
        17,
        "g (float[2,64] x) => (float[2,64] y) { a = Mul(x, k) y = LayerNormalization(a, w, b) }",
        {"k": np.float32(600), "w": np.ones(64, np.float32), "b": np.zeros(64, np.float32)},
    ),
    "statistics as outputs": (
        17,
        "g (float[2,16] x) => (float[2,16] y, float[2,1] m) { t = Tanh(x) y, m, d = LayerNormalization(t, w, b) }",
        {"w": np.ones(16, np.float32), "b": np.zeros(16, np.float32)},
    ),
    "weight beyond the range": (
        17,
        "g (float[2,4] x) => (float[2,4] y) { a = Mul(x, big) y = Div(a, big) }",
        {"big": np.array([1e6, 1, 7e4, 3e38], np.float32)},
    ),
    "weights below the range": (
        17,
        "g (float[2,4] x) => (float[2,4] y) { a = Mul(x, small) y = Div(a, small) }",
        {"small": np.array([1e-8, 1, 1e-6, 1e3], np.float32)},
    ),
    "a chain of small factors": (
        17,
        "g (float[2,4] x) => (float[2,4] y) { a = Mul(x, t) b = Mul(a, t) c = Div(b, t) y = Div(c, t) }",
        {"t": np.float32(1e-4)},
    ),
    "bounds that bound nothing": (
        17,
        "g (float[2,4] x) => (float[2,4] y) { y = Clip(x, low, high) }",
        {"low": np.float32(0), "high": np.float32(LARGEST_FLOAT)},
    ),
    "scales of a resize, used twice": (
        17,
        (
            'g (float[1,3,8,8] x) => (float[1,3,16,16] y) { r = Resize<mode="linear">(x, , sc) k = Gather(sc, i) '
            "y = Mul(r, k) }"
        ),
        {"sc": np.array([1, 1, 2, 2], np.float32), "i": np.int64(2)},
    ),
    "a size computed in floats": (
        17,
        (
            "g (float[1,2,27,27] x) => (float[1,2,a,b] y) { s = Shape(x) hw = Slice(s, two, four) f = Cast<to=1>(hw) "
            "m = Mul(f, third) r = Floor(m) i = Cast<to=7>(r) nc = Slice(s, zero, two) z = Concat<axis=0>(nc, i) "
            'y = Resize<mode="nearest">(x, , , z) }'
        ),
        {"two": np.array([2]), "four": np.array([4]), "zero": np.array([0]), "third": np.float32(1 / 3 + 1e-7)},
    ),
    "indices from a range of floats": (
        17,
        "g (float[5000,4] x) => (float[2500,4] y) { r = Range(s, l, d) i = Cast<to=7>(r) y = Gather(x, i) }",
        {"s": np.float32(0), "l": np.float32(5000), "d": np.float32(2)},
    ),
    "overflow inside a branch": (
        17,
        (
            "g (float[2,3] x, bool c) => (float[2,3] y) { y = If (c) <then_branch = t () => (float[2,3] o) "
            "{ a = Mul(x, w) s = Mul(a, a) r = Sqrt(s) o = Div(r, w) }, "
            "else_branch = e () => (float[2,3] p) { p = Identity(x) }> }"
        ),
        {"w": np.float32(600)},
    ),
    "a loop that takes outer values": (
        17,
        (
            "g (float[4] x) => (float[4] y) { n = Constant<value_int=3>() t = Constant<value = bool {1}>() "
            "b = Mul(x, w) "
            "y = Loop (n, t, x) <body = l (int64 i, bool ci, float[4] acc) => (bool co, float[4] out) "
            "{ co = Identity(ci) out = Add(acc, b) }> }"
        ),
        {"w": np.array([0.5, 1, 2, 4], np.float32)},
    ),
    "a scan": (
        17,
        (
            "g (float[6,4] x, float[4] h0) => (float[4] h, float[6,4] ys) { u = Mul(w, w) "
            "h, ys = Scan <num_scan_inputs=1, body = b (float[4] p, float[4] s) => (float[4] n, float[4] o) "
            "{ z = Add(p, s) q = Mul(z, u) n = Tanh(q) o = Identity(n) }> (h0, x) }"
        ),
        {"w": np.array([0.5, 1, 2, 1], np.float32)},
    ),
    "the length of a loop": (
        13,
        (
            "g (float[1] x) => (float[1] y) { n = Constant<value_int=100>() t = Constant<value = bool {1}>() "
            "a = Abs(x) y = Loop (n, t, a) <body = l (int64 i, bool ci, float[1] p) => (bool co, float[1] o) "
            "{ o = Add(p, h) l = Less(o, m) co = Squeeze(l) }> }"
        ),
        {"h": np.array([0.1], np.float32), "m": np.array([5.05], np.float32)},
    ),
    "durations that add up": (
        17,
        (
            "g (float[1,400] x) => (int64[1,400] y) { e = Exp(x) c = Ceil(e) k = Mul(c, g) s = CumSum(k, a) "
            "y = Cast<to=7>(s) }"
        ),
        {"g": np.float32(7), "a": np.int64(1)},
    ),
    "coordinates of a grid": (
        20,
        (
            "g (float[1,2,3] x, float[1,1,6,6] i) => (float[1,1,6,6] y) { s = Shape(i) c = AffineGrid(x, s) "
            "y = GridSample(i, c) }"
        ),
        {},
    ),
    "sequences": (
        17,
        (
            "g (float[6,4] x) => (float[6,4] y) { n = Constant<value_int=2>() s = SplitToSequence<axis=0>(x, n) "
            "c = ConcatFromSequence<axis=0>(s) y = Relu(c) }"
        ),
        {},
    ),
    "quantised activations": (
        19,
        (
            "g (float[2,8] x) => (float[2,4] y) { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) "
            "w = DequantizeLinear(k, t) m = MatMul(d, w) y = Relu(m) }"
        ),
        {
            "s": np.float32(0.02),
            "z": np.int8(0),
            "t": np.float32(0.01),
            "k": np.arange(32, dtype=np.int8).reshape(8, 4),
        },
    ),
    "double precision in the middle": (
        17,
        (
            "g (float[2,3] x) => (float[2,3] y, double[2,3] z) { d = Cast<to=11>(x) e = Mul(d, d) f = Cast<to=1>(e) "
            "y = Relu(f) z = Sqrt(e) }"
        ),
        {},
    ),
    "half already": (
        17,
        (
            "g (float[2,4] x) => (float[2,4] y) { h = Cast<to=10>(x) r = Relu(h) f = Cast<to=1>(r) e = Exp(f) "
            "y = Sigmoid(e) }"
        ),
        {},
    ),
    "types by attribute": (
        17,
        (
            "g (float[4,4] x) => (float[4,4] y) { e = EyeLike<dtype=1>(x) s = Shape(x) "
            "z = ConstantOfShape<value = float[1] {0.5}>(s) a = Add(x, e) y = Add(a, z) }"
        ),
        {},
    ),
    "inputs and weights as outputs": (
        17,
        (
            "g (float[2,2] x) => (float[2,2] x, float[2,2] w, float[2,2] y, float[2,2] z) "
            "{ a = MatMul(x, w) y = Relu(a) "
            "z = Identity(y) }"
        ),
        {"w": np.eye(2, dtype=np.float32)},
    ),
    "names that casts would take": (
        17,
        "g (float[2,4] x) => (float[2,4] y, float[2,4] x_fp16) { a = Relu(x) x_fp16 = Sigmoid(a) y = Add(a, x_fp16) }",
        {},
    ),
    "variance as a difference": (
        17,
        (
            "g (float[2,64] x) => (float[2,64] y) { a = Add(x, k) m = ReduceMean<axes=[-1]>(a) s = Mul(a, a) "
            "n = ReduceMean<axes=[-1]>(s) q = Mul(m, m) v = Sub(n, q) r = Sqrt(v) d = Sub(a, m) y = Div(d, r) }"
        ),
        {"k": np.float32(30)},
    ),
    "sine of a large angle": (
        17,
        "g (float[2,64] x) => (float[2,64] y) { a = Mul(x, k) y = Sin(a) }",
        {"k": np.float32(500)},
    ),
}


def trap(name: str) -> ModelProto:
    """Build one of the models."""
    opset, graph, weights = TRAPS[name]
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{graph}')
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(w), n) for n, w in weights.items())
    return model


def random_inputs(model: ModelProto, seed: int = 3) -> dict[str, Any]:
    """Make inputs: normally distributed numbers, truths and integers of 1."""
    random = np.random.default_rng(seed)
    made = {}
    for info in model.graph.input:
        kind = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        numbers = random.standard_normal(shape) if np.dtype(kind).kind == "f" else np.ones(shape)
        made[info.name] = numbers.astype(kind)
    return made


def run(model: ModelProto, given: dict[str, Any]) -> list[Any]:
    """Run a model in ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, given))

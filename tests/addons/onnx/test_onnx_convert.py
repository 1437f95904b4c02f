"""The conversion to FP16: valid, agreeing with FP32 even where every node rounds, with the types that users gave."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from addons.onnx.traps import TRAPS, random_inputs, run, trap
from onnx import ModelProto, TensorProto, numpy_helper, parser
from onnx.reference import ReferenceEvaluator
from tables import each

from assistant_addons.onnx import to_fp16
from assistant_addons.onnx.fp16 import Converted, choose, convert_prepared
from assistant_addons.onnx.prepare import prepare

pytestmark = pytest.mark.process  # the result of each conversion is loaded in one

CLOSE = 1e-2


def converted(model: ModelProto, **options: Any) -> Converted:
    """Convert a model and give how it went."""
    return convert_prepared(prepare(model), **options)


def kept(model: ModelProto, **options: Any) -> dict[str, str]:
    """Give the operators that stay FP32, each with the reason."""
    made = converted(model, **options)
    ops = {node.name: node.op_type for scope in made.source.scopes for node in scope.graph.node}
    return {ops[name]: why for name, why in made.choice.why.items()}


def run_strictly(model: ModelProto, given: dict[str, Any]) -> list[Any]:
    """Run a model so that every node rounds its result to its type."""
    with np.errstate(all="ignore"):
        return list(ReferenceEvaluator(model).run(None, given))


def assert_close(expected: list[Any], found: list[Any]) -> None:
    """Hold outputs together: type, shape, NaN, infinities, and numbers within 1 % of the largest."""
    for one, other in zip(expected, found, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert (np.isfinite(one) == np.isfinite(other)).all()
        fine = np.isfinite(one)
        assert np.abs(one[fine] - other[fine]).max(initial=0) <= CLOSE * max(1, np.abs(one[fine]).max(initial=0))


def types(model: ModelProto) -> list[tuple[str, int]]:
    """Give names and types of inputs and outputs."""
    return [(i.name, i.type.tensor_type.elem_type) for i in (*model.graph.input, *model.graph.output)]


@each("name", TRAPS)
def test_a_trap_is_converted_and_agrees_even_where_every_node_rounds(name: str) -> None:
    """Valid for the checker, types of inputs and outputs kept, equal on ONNX Runtime and in the strict evaluator."""
    model = trap(name)
    before = model.SerializeToString()
    result = to_fp16(model)
    onnx.checker.check_model(result)
    assert model.SerializeToString() == before
    assert types(result) == types(model)
    for seed in (3, 4):
        given = random_inputs(model, seed)
        expected = run(model, given)
        assert_close(expected, run(result, given))
        assert_close(expected, run_strictly(result, given))


def test_each_value_is_cast_once() -> None:
    """Three consumers of one input share one Cast, and an FP32 island costs one Cast in and one out."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2,4] x) => (float[2,4] y) '
        "{ a = Relu(x) b = Sigmoid(x) c = Tanh(x) d = Add(a, b) y = Mul(d, c) }"
    )
    assert [node.op_type for node in to_fp16(model).graph.node].count("Cast") == 2


def test_weights_are_converted_once() -> None:
    """An initializer that only FP16 nodes take is there in FP16 alone."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2,4] x) => (float[2,4] y) { y = MatMul(x, w) }'
    )
    model.graph.initializer.append(numpy_helper.from_array(np.eye(4, dtype=np.float32), "w"))
    weights = to_fp16(model).graph.initializer
    assert [tensor.data_type for tensor in weights] == [TensorProto.FLOAT16]


def test_a_local_function_is_inlined_and_converted() -> None:
    """A function's own constants follow the type that it is called with."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "own" : 1]> g (float[3,4] x) => (float[3,4] y) { y = own.swish(x) } '
        '<domain: "own", opset_import: ["" : 17]> swish (v) => (o) '
        "{ k = Constant<value = float {1.702}>() m = Mul(v, k) s = Sigmoid(m) o = Mul(v, s) }"
    )
    made = converted(model)
    assert (len(made.choice.slots), made.choice.why) == (3, {})
    given = random_inputs(model)
    assert_close(run(model, given), run_strictly(made.filled(), given))


def test_a_softmax_given_large_numbers_keeps_their_differences() -> None:
    """What arrives in FP32 is not rounded before the largest is taken from it, by the operator or by its parts."""
    for opset, nodes in (
        (17, "y = Softmax(x)"),
        (13, "m = ReduceMax<axes=[-1]>(x) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, a) y = Div(e, s)"),
    ):
        model = parser.parse_model(
            f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[1,4] x) => (float[1,4] y) {{ {nodes} }}'
        )
        model.graph.initializer.append(numpy_helper.from_array(np.array([-1]), "a"))
        given = {"x": np.float32([[10000, 10001, 10002, 10003]])}
        assert_close(run(model, given), run_strictly(to_fp16(model), given))


def test_unsorted_nodes_and_weights_among_the_inputs_are_put_right() -> None:
    """An IR 3 model with its nodes in reverse comes out sorted, its weights no longer inputs."""
    model = parser.parse_model(
        '<ir_version: 3, opset_import: ["" : 9]> g (float[2,4] x, float[4,4] w) => (float[2,4] y) '
        "{ m = MatMul(x, w) y = Relu(m) }"
    )
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in reversed(model.graph.node)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.append(numpy_helper.from_array(np.eye(4, dtype=np.float32), "w"))
    result = to_fp16(model)
    onnx.checker.check_model(result)
    assert [info.name for info in result.graph.input] == ["x"]


def test_real_inputs_decide_what_stays() -> None:
    """An input in the thousands, given as a sample, keeps its square in FP32; a name keeps any node."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2,4] x) => (float[2,4] y) { s = Mul(x, x) y = Sqrt(s) }'
    )
    assert not kept(model)
    sample = {"x": np.full((2, 4), 3000, np.float32)}
    assert kept(model, samples=[sample]) == {"Mul": "proof", "Sqrt": "proof"}
    assert kept(model, keep=["Sqrt"]) == {"Sqrt": "asked"}


def test_a_model_that_draws_at_random_is_converted_and_not_called_proved() -> None:
    """No two runs of a speech synthesis agree: that says nothing about its conversion, and keeps nothing in FP32."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2,8] x) => (float[2,8] y) '
        "{ n = RandomNormalLike<dtype = 1>(x) a = Add(x, n) t = Tanh(a) y = MatMul(t, w) }"
    )
    model.graph.initializer.append(numpy_helper.from_array(np.eye(8, dtype=np.float32), "w"))
    made = converted(model)
    assert len(made.choice.slots) >= 3
    assert made.obstacle == "random"


@each("loudness", [1, 32767])
def test_the_logarithm_of_a_spectrum_stays_right(loudness: float) -> None:
    """Faint parts beside loud ones, and sound whose numbers are those of 16 bits, are as in FP32."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1,N] x) => (float[1,F,12] y) '
        "{ u = Unsqueeze(x, one) c = Conv<strides = [64]>(u, dft) t = Transpose<perm = [0, 2, 1]>(c) p = Mul(t, t) "
        "m = MatMul(p, mel) k = Clip(m, least) l = Log(k) y = MatMul(l, last) }"
    )
    random, phases = np.random.default_rng(0), np.outer(np.arange(1, 25), np.arange(128)) * np.pi / 64
    weights = {
        "one": np.array([1]),
        "dft": np.concatenate([np.cos(phases), np.sin(phases)])[:, None] * np.hanning(128),
        "mel": np.abs(random.standard_normal((48, 16))) * (random.random((48, 16)) < 0.1),
        "least": np.float32(1e-7),
        "last": random.standard_normal((16, 12)) / 4,
    }
    for name, weight in weights.items():
        kept = weight if name == "one" else np.asarray(weight, np.float32)
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(kept), name))
    time = np.arange(4000)
    sound = np.sin(time / 5) + 0.5 * np.sin(time / 2) + 1e-3 * random.standard_normal(4000)
    given = {"x": (loudness * sound[None]).astype(np.float32)}
    source = prepare(model)
    made = Converted(source, choose(source))  # before any run
    assert list(made.choice.slots) == ["MatMul#7"]
    assert_close(run(model, given), run_strictly(made.filled(), given))

"""Rewrites of structure and older opsets: each gives the same numbers on random inputs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from addons.onnx.traps import run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser
from tables import each

from assistant_addons.onnx.lowering import CannotLower, best_opsets, lower, rewrite
from assistant_addons.onnx.program import program

QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def model_of(node: onnx.NodeProto, shapes: dict[str, tuple[int, ...]], opset: int, **weights: Any) -> ModelProto:
    """Put one node into a model with FP32 inputs of these shapes and an output y of open lengths."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    tensors = [numpy_helper.from_array(np.asarray(content), name) for name, content in weights.items()]
    rank = max(map(len, shapes.values()))
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * rank)]
    graph = helper.make_graph([node], "g", inputs, outputs, tensors)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])


def same(one: ModelProto, other: ModelProto) -> None:
    """Hold two models' outputs together on random inputs."""
    onnx.checker.check_model(other, full_check=True)
    random = np.random.default_rng(0)
    given = {
        info.name: random.standard_normal([dim.dim_value for dim in info.type.tensor_type.shape.dim]).astype(np.float32)
        for info in one.graph.input
    }
    for expected, found in zip(run(one, given), run(other, given), strict=True):
        assert expected.shape == found.shape
        np.testing.assert_allclose(expected, found, rtol=1e-4, atol=1e-5)


@QUICK
@given(st.lists(st.integers(-2, 3), min_size=4, max_size=4), st.sampled_from([13, 18, 21]))
def test_negative_pads_become_a_slice(pads: list[int], opset: int) -> None:
    """What negative pads cut off is cut by Slice; pads that add still add."""
    node = helper.make_node("Pad", ["x", "p", "v"], ["y"])
    model = model_of(node, {"x": (5, 6)}, opset, p=np.array(pads, np.int64), v=np.float32(7.5))
    result, told = rewrite(program(model))
    assert bool(told) == (min(pads) < 0)
    same(model, result.filled())


@each("op, count", itertools.product(["Sum", "Mean", "Max", "Min"], [1, 2, 3, 5]))
def test_many_operands_are_taken_two_by_two(op: str, count: int) -> None:
    """Operands of different shapes broadcast as before."""
    shapes: dict[str, tuple[int, ...]] = {f"x{i}": (4,) if i % 2 else (3, 4) for i in range(count)}
    model = model_of(helper.make_node(op, list(shapes), ["y"]), shapes, 17)
    result, told = rewrite(program(model))
    assert bool(told) == (count > 2)
    same(model, result.filled())


LOWERED = {
    "types alone": (
        23,
        19,
        "g (float[2,3,8,8] x) => (float[a,b,c,d] y) { p = MaxPool<kernel_shape=[2,2]>(x) y = Elu(p) }",
    ),
    "an operator that was not there": (20, 19, "g (float[2,8] x) => (float[2,8] y) { y = Gelu(x) }"),
    "another that was not there": (
        23,
        18,
        "g (float[2,8] x) => (float[2,8] y) { s = Relu(x) y = RMSNormalization(s, x1) }",
    ),
    "axes as an attribute": (
        18,
        17,
        "g (float[2,8] x) => (float[a,b] y) { k = Constant<value_ints=[1]>() y = ReduceMean(x, k) }",
    ),
    "equal parts": (
        18,
        17,
        "g (float[2,8] x) => (float[2,4] y, float[2,4] z) { y, z = Split<axis=1, num_outputs=2>(x) }",
    ),
    "modes with new names": (
        20,
        16,
        'g (float[1,2,8,8] x, float[1,6,6,2] k) => (float[1,2,6,6] y) { y = GridSample<mode="linear">(x, k) }',
    ),
    "types that the converter has no way back for": (
        21,
        17,
        (
            "g (float[2,3] x) => (float[a,b] y) { s = Shape(x) c = ConstantOfShape<value = float[1] {2.0}>(s) "
            "k = Constant<value_ints=[0,1,0,0]>() p = Pad(c, k) q = Pad(x, k) y = Add(p, q) }"
        ),
    ),
    "a definition of a node without some inputs": (
        24,
        19,
        (
            "g (float[1,2,4,8] x, float[1,2,4,8] k, float[1,2,4,8] p) => "
            "(float[1,2,4,8] y, float[1,2,8,8] n, float[1,2,8,8] m) { y, n, m = Attention(x, k, k, , p, p) }"
        ),
    ),
    "inside a branch": (
        22,
        17,
        (
            "g (float[2,3] x) => (float[2,3] y) { c = Constant<value = bool {1}>() y = If (c) "
            "<then_branch = t () => (float[2,3] o) { o = Gelu(x) }, "
            "else_branch = e () => (float[2,3] p) { p = Elu(x) }> }"
        ),
    ),
}


@each("name", LOWERED)
def test_an_older_opset_gives_the_same_numbers(name: str) -> None:
    """Operators are restamped, adapted or replaced by their definition."""
    opset, target, text = LOWERED[name]
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]>\n{text}')
    if "x1" in text:
        model.graph.initializer.append(numpy_helper.from_array(np.linspace(1, 2, 8, dtype=np.float32), "x1"))
    result = lower(program(model), target).filled()
    assert [entry.version for entry in result.opset_import if entry.domain == ""] == [target]
    same(model, result)


def test_what_has_no_older_form_is_said() -> None:
    """An operator without a sound definition, and an attribute that the older form lacks, are refused by name."""
    for text, name in (
        ("g (float[2,8] x) => (float[2,8] y) { k = Constant<value_int=1>() y = CumProd(x, k) }", "CumProd"),
        (
            "g (float[1,2,8,8] x) => (float[a,b,c,d] y) { y = AveragePool<kernel_shape=[3,3],ceil_mode=1>(x) }",
            "ceil_mode",
        ),
        (
            "g (float[1,2,3] x) => (float[1,4,4,2] y) { s = Constant<value_ints=[1,1,4,4]>() y = AffineGrid(x, s) }",
            "AffineGrid",
        ),
    ):
        model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 26]>\n{text}')
        with pytest.raises(CannotLower, match=name):
            lower(program(model), 18)


def test_the_best_opset_depends_on_the_operators() -> None:
    """Scatters want 17, GELUs and grid samples 19; what suits DirectML is left as it is."""

    def model(op: str, opset: int) -> ModelProto:
        return model_of(helper.make_node(op, ["x"], ["y"]), {"x": (2, 2)}, opset)

    assert best_opsets(model("Conv", 22))[0] == 19
    assert best_opsets(model("ScatterND", 18))[0] == 17
    assert best_opsets(model("Gelu", 20))[0] == 19
    assert best_opsets(model("Conv", 21)) == ()

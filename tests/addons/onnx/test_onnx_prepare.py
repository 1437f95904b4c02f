"""Models in one form: older opsets that give the same numbers, tensors whose numbers are known or not."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from addons.onnx.traps import run
from onnx import ModelProto, TensorProto, numpy_helper, parser
from tables import each

from assistant_addons.onnx.prepare import at_opset, numbers, prepare


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
    result = at_opset(prepare(model).model, target)
    assert [entry.version for entry in result.opset_import if entry.domain == ""] == [target]
    same(model, result)


def test_what_has_no_older_form_is_said() -> None:
    """An operator without a sound definition, and an attribute that the older form lacks, are refused by name."""
    for text, name in (
        ("g (float[2,8] x) => (float[2,8] y) { k = Constant<value_int=1>() y = CumProd(x, k) }", "CumProd"),
        (
            "g (float[1,2,8,8] x) => (float[a,b,c,d] y) { y = AveragePool<kernel_shape=[3,3],ceil_mode=1>(x) }",
            "AveragePool",
        ),
        (
            "g (float[1,2,3] x) => (float[1,4,4,2] y) { s = Constant<value_ints=[1,1,4,4]>() y = AffineGrid(x, s) }",
            "AffineGrid",
        ),
    ):
        model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 26]>\n{text}')
        with pytest.raises((RuntimeError, ValueError), match=name):
            at_opset(prepare(model).model, 18)


def test_numbers_that_were_not_read_are_not_known():
    """The weights of a large file that were left there are not taken for an empty list."""
    left = TensorProto(dims=[2**20], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    assert numbers(left) is None
    assert numbers(TensorProto(dims=[2**20], data_type=TensorProto.FLOAT)) is None


def test_an_output_that_is_declared_a_scalar_gets_its_shape() -> None:
    """Paddle's exporter writes so, and onnx's checker would refuse the result."""
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2,3] x) => (float y, float z) {
      y = Relu(x) z = ReduceMax<keepdims = 0>(x) }"""
    made = prepare(parser.parse_model(text)).model
    onnx.checker.check_model(made, full_check=True)
    assert [len(info.type.tensor_type.shape.dim) for info in made.graph.output] == [2, 0]

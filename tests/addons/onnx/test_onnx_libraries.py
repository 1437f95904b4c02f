"""Operators of other libraries: the rest of the model is answered for, and the library is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import forked
import onnx
import pytest
from onnx import ModelProto, TensorProto
from refused import refused

from assistant_addons.onnx import check_model, convert

GRAPH = "g (float[2, 4] x) => (float[2, 4] y) {{ a = Relu(x) b = {domain}.Thing(a) c = Mul(b, a) y = Relu(c) }}"


@pytest.fixture
def foreign(saved: Callable[..., Path]) -> Callable[[str], Path]:
    """Give a function that writes a model with one operator of a domain."""
    return lambda domain: saved(GRAPH.format(domain=domain), imports=f', "{domain}" : 1')


@pytest.mark.process
@pytest.mark.parametrize("provider", ["dml", "cpu"])
def test_the_other_nodes_are_answered_for(foreign: Callable[[str], Path], provider: str) -> None:
    """JSON and exit code are those of any other finding; the operator itself runs nowhere."""
    done = forked.run("onnx", "check", str(foreign("com.microsoft.extensions")), "--json", "--provider", provider)
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    assert [node["device"] for node in answer["nodes"]] == [provider, "none", provider, provider]
    found = next(one for one in answer["findings"] if one["key"] == "unknown-domain")
    assert found["remedies"][0]["commands"] == ["python -m pip install onnxruntime-extensions"]


def test_a_domain_that_nobody_knows_is_told_as_such(foreign: Callable[[str], Path]) -> None:
    """No library is made up for it."""
    found = next(one for one in check_model(foreign("never.heard.of")).findings if one.key == "unknown-domain")
    assert "does not know the domain never.heard.of." in f"{found.text}."
    assert found.remedies[0].commands == ()


@pytest.mark.process
def test_the_conversion_leaves_such_an_operator_alone(foreign: Callable[[str], Path]) -> None:
    """It takes FP32 and what it makes is left as it is, while the rest is converted."""
    done = convert(foreign("com.microsoft.extensions"))
    model: ModelProto = onnx.load(done.output)
    assert done.half is not None
    assert done.half.converted > 0
    node = next(one for one in model.graph.node if one.op_type == "Thing")
    maker = next(one for one in model.graph.node if node.input[0] in one.output)
    assert maker.op_type == "Cast"
    assert maker.attribute[0].i == TensorProto.FLOAT
    assert node.output[0] == "b"


@pytest.mark.process
def test_a_trial_says_which_library_to_install(foreign: Callable[[str], Path]) -> None:
    """It ends with code 1 and the library's name."""
    refused(forked.run("onnx", "try", str(foreign("ai.onnx.contrib"))), 1, "Install onnxruntime-extensions")

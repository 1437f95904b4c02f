"""`onnx check` places each node as ONNX Runtime would, says why, and what to do about it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import forked
import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper
from refused import refused
from tables import each
from terminals import at_a_terminal

from assistant.model.errors import BadInput
from assistant_addons.onnx import check_model
from assistant_addons.onnx.answers import Checked
from assistant_addons.onnx.drawing import bar_line, shares
from assistant_addons.onnx.operators import match, since

pytestmark = pytest.mark.process

Written = Callable[..., ModelProto]
FP32 = "tensor(float)"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `assistant onnx check`."""
    return forked.run("onnx", "check", *arguments)


def devices(answer: Checked) -> dict[str, str]:
    """Give where each node runs, by its name."""
    return {node.name: node.device for node in answer.nodes}


def keys(answer: Checked) -> list[str]:
    """Give the keys of all findings, in order."""
    return [finding.key for finding in answer.findings]


def test_no_name_steers_the_terminal(written: Written, tmp_path: Path):
    """Neither that of an operator nor that of a file: what would set a title is shown as a mark."""
    evil = "\x1b]0;owned\x07\u202eEvil"
    model = written("g (float[1] x) => (float[1] y) { y = acme.Op (x) }", imports=', "acme" : 1')
    model.graph.node[0].op_type = evil
    onnx.save(model, tmp_path / "m.onnx")
    for name in ("m.onnx", evil):
        said = at_a_terminal(("onnx", "check", name), {**os.environ, "TERM": "xterm-256color"}, cwd=tmp_path).decode()
        assert "\ufffd" in said
        assert not {"\x07", "\u202e"} & {*said}
        assert "\x1b]" not in said


@each(
    ("op", "opset", "kind", "taken"),
    [
        ("Conv", 21, FP32, True),
        ("Conv", 22, FP32, False),  # the operator changed, and an open row takes its own version only
        ("Conv", 21, "tensor(double)", False),
        ("Conv", 21, None, True),  # an unknown type denies nothing
        ("Cast", 22, FP32, True),
        ("Cast", 23, FP32, False),
        ("Gelu", 20, FP32, False),
        ("LayerNormalization", 17, "tensor(float16)", True),
        ("Relu", 22, FP32, True),
    ],
)
def test_a_row_takes_its_own_version_and_types(op: str, opset: int, kind: str | None, *, taken: bool):
    """Rows match by the version at which the operator last changed, and by types."""
    kernel, why = match("", op, since("", op, opset) or 0, (kind,), (kind,))
    assert (kernel is not None) is taken
    assert bool(why) is not taken


@each(
    ("node", "opset"),
    [
        ("y = MaxPool <kernel_shape = [2, 2], storage_order = 1> (x)", 17),
        ('y = Resize <mode = "cubic"> (x, , s)', 17),
        ('y = Resize <mode = "linear", extrapolation_value = 1.0> (x, , s)', 17),
        ('y = Einsum <equation = "...i,...i->..."> (x, x)', 17),
        ('y = Einsum <equation = "a,b,c->abc"> (s, s, s)', 17),
        ("y, m = LayerNormalization (x, s)", 17),
        ("y, a, b = BatchNormalization <training_mode = 1> (x, s, s, s, s)", 15),
        ("y = Pad <pads = [0, 0, -1, 0, 0, 0, 0, 0]> (x)", 7),
        ("y = LSTM <hidden_size = 4, layout = 1> (t, t, t)", 17),
        ("y = com.microsoft.MatMulNBits <K = 4, N = 4, bits = 2, block_size = 16> (x, u, s)", 17),
        ("y = com.microsoft.Attention <num_heads = 2, unidirectional = 1> (t, s, s)", 17),
        ("y = com.microsoft.SkipLayerNormalization (t, t, s)", 17),
    ],
)
def test_attributes_beyond_directml_are_told(written: Written, node: str, opset: int):
    """Each further condition of a kernel has its own sentence where a node fails it."""
    inputs = "float[1,4,8,8] x, float[4] s, float[1,4,4] t, uint8[4,1,8] u"
    model = written(f"g ({inputs}) => (y) {{ {node} }}", opset=opset, imports=', "com.microsoft" : 1')
    placed = check_model(model).nodes[0]
    taken = node.startswith("y = com.microsoft.SkipLayer")
    assert (placed.device == "dml") is taken
    assert bool(placed.why) is not taken


def test_nothing_runs_where_the_runtime_does_not_load(written: Written):
    """A newer IR version or opset than the runtime's stops the whole model, and the finding says which."""
    graph = "g (float[2] x) => (float[2] y) { y = Relu(x) }"
    for more, word in (({"ir": 14}, "IR versions"), ({"opset": 27}, "opsets")):
        answer = check_model(written(graph, **more))
        assert devices(answer) == {"Relu#0": "none"}
        assert keys(answer)[0] == "load"
        assert word in str(answer.verdict)


def test_what_only_computes_shapes_is_no_fallback(written: Written):
    """Arithmetic on shapes goes to the CPU on purpose: no copies, no warning."""
    model = written(
        "g (float[N,4] x) => (float[M] y) "
        "{ s = Shape(x) f = Gather(s, i) m = Mul(f, k) n = Unsqueeze(m, z) y = Reshape(x, n) }"
    )
    for name, value in (("i", 0), ("k", 4), ("z", [0])):
        model.graph.initializer.append(numpy_helper.from_array(np.array(value), name))
    answer = check_model(model)
    assert list(devices(answer).values()) == ["dml", "cpu", "cpu", "cpu", "dml"]
    assert "no-kernel" not in keys(answer)
    assert str(answer.verdict).startswith("DirectML takes every node")
    assert bar_line(shares(answer)).plain.endswith("# DirectML 2 (100%)")


def test_functions_without_a_kernel_run_in_pieces(written: Written):
    """A function of ONNX that nobody has a kernel for is judged by what it consists of."""
    answer = check_model(written("g (float[2] x) => (float[2] y) { y = HardSwish(x) }"))
    assert devices(answer) == {"HardSwish#0": "dml"}
    assert "HardSigmoid, Mul" in str(answer.nodes[0].why)


@each("opset", [17, 18])
def test_local_functions_are_seen_through(written: Written, opset: int):
    """A call is replaced by its body, of the same opset or of another."""
    function = f'<domain: "own", opset_import: ["" : {opset}]> f (x) => (y) {{ a = Relu(x) y = Erf(a) }}'
    graph = "g (float[2] x) => (float[2] y) { b = own.f(x) y = own.f(b) }"
    answer = check_model(written(graph, imports=', "own" : 1', functions=function))
    assert [node.op for node in answer.nodes] == ["Relu", "Erf"] * 2
    assert {node.device for node in answer.nodes} == {"dml"}


def test_branches_are_looked_into(written: Written):
    """Nodes of branches are listed after the main graph's, and control flow is told."""
    graph = """g (float[2] x, bool c) => (float[2] y) { a = Relu(x) y = If (c) <
      then_branch = t () => (float[2] o) { o = Gelu(a) }, else_branch = e () => (float[2] p) { p = Neg(a) }> }"""
    model = written(graph, opset=20)
    answer = check_model(model)
    assert devices(answer) == {"Relu#0": "dml", "If#1": "dml", "Gelu#0": "cpu", "Neg#0": "dml"}
    assert {"control-flow", "no-kernel"} <= set(keys(answer))


@each(
    ("graph", "opset", "key"),
    [
        ("g (float[1,3,8,8] x) => (y) { y = MaxPool <kernel_shape = [2, 2]> (x) }", 22, "opset"),
        ("g (float[N,4] x) => (y) { y = Relu(x) }", 17, "dynamic-shape"),
        ("g (double[2] x) => (y) { y = Mul(x, x) }", 17, "fp64"),
        ("g (int64[2] x) => (y) { y = Mul(x, x) }", 17, "int64"),
        ("g (float[2] x) => (y) { y = Erf(x) }", 20, "gelu-fusion"),
        ("g (float16[2,2] x, float16[2] s) => (y) { y = LayerNormalization(x, s) }", 17, "layernorm-fp16"),
        ("g (float[4] x) => (y) { p = Constant <value = int64[2] {-1, 0}> () y = Pad(x, p) }", 17, "pad-negative"),
        ("g (float[2] x) => (y) { k = Constant <value = float[2] {1.0, 2.0}> () y = Mul(x, k) }", 17, "fp32"),
    ],
)
def test_findings(written: Written, graph: str, opset: int, key: str):
    """Each thing that stands in the way is found, and comes with a way out."""
    answer = check_model(written(graph, opset=opset))
    found = next(finding for finding in answer.findings if finding.key == key)
    assert found.remedies


def test_halves_on_the_cpu_are_told(written: Written):
    """FP16 runs on the CPU in FP32 where it has no kernel of its own."""
    answer = check_model(written("g (float16[2] x) => (y) { y = Erf(x) }"), "cpu")
    assert devices(answer) == {"Erf#0": "cpu"}
    assert keys(answer) == ["fp16-on-cpu"]


def test_without_a_runtime_the_cpu_is_not_asked(written: Written, monkeypatch: pytest.MonkeyPatch):
    """DirectML is answered for all the same, and the check says what it does not know; the CPU alone is refused."""
    monkeypatch.setattr("assistant_addons.onnx.check.has_runtime", lambda: False)
    monkeypatch.setattr("assistant_addons.onnx.placement.has_runtime", lambda: False)
    model = written("g (float[2] x) => (y) { a = Relu(x) y = Gelu(a) }", opset=20)
    answer = check_model(model)
    assert devices(answer) == {"Relu#0": "dml", "Gelu#1": "cpu"}
    assert "not-asked" in keys(answer)
    with pytest.raises(BadInput, match="not installed"):
        check_model(model, "cpu")


def test_operators_that_nothing_runs_stop_the_model(written: Written):
    """What neither table has is placed nowhere, with both reasons."""
    answer = check_model(written("g (uint8[9] x) => (y) { y = ImageDecoder(x) }", opset=20))
    assert devices(answer) == {"ImageDecoder#0": "none"}
    assert keys(answer)[0] == "not-implemented"
    assert str(answer.verdict).startswith("It does not load")


def test_open_sizes_are_named_with_the_tool_that_fixes_them(written: Written):
    """Sizes without a name are called after their input and axis; the command that is named exists."""
    found = check_model(written("g (float[n,4,?] x) => (y) { y = Relu(x) }")).findings
    sizes = next(finding for finding in found if finding.key == "dynamic-shape")
    assert "(n, x#2)" in str(sizes.text)
    command = re.search(r"-m ([\w.]+)", str(sizes.remedies[0].text))
    assert command
    assert importlib.util.find_spec(command[1])


def test_the_command_answers_as_contracted(saved: Callable[..., Path]):
    """JSON holds provider, nodes, findings and verdict; the terminal the same in words; the model is not touched."""
    path = saved("g (float[2] x) => (float[2] y) { a = Relu(x) y = Gelu(a) }", opset=20)
    before = path.read_bytes()
    answer = json.loads(run(str(path), "--json").stdout)
    assert {"provider", "nodes", "findings", "verdict"} <= set(answer)
    assert answer["provider"] == "dml"
    assert answer["nodes"][0] == {"name": "Relu#0", "op": "Relu", "device": "dml", "why": ""}
    assert answer["nodes"][1]["device"] == "cpu"
    assert json.loads(run(str(path), "--json", "--target", "cpu").stdout)["nodes"][1]["device"] == "cpu"
    drawn = run(str(path), "--target", "dml")
    assert "DirectML takes 1 of 2 nodes" in drawn.stdout
    assert "no kernel for Gelu" in drawn.stdout
    assert "DirectML 1 (50%)  - CPU 1 (50%)" in drawn.stdout
    assert path.read_bytes() == before


def test_the_command_refuses_in_one_sentence(tmp_path: Path):
    """Bad input ends with exit code 2 and a sentence; one about another provider says where its maker's tool is."""
    (tmp_path / "bad.onnx").write_bytes(b"\x08\x07nonsense")
    refused(run(str(tmp_path / "bad.onnx")), 2, "not an ONNX model")
    refused(run(str(tmp_path / "none.onnx")), 2, "cannot be read")
    refused(run(str(tmp_path / "none.onnx"), "--target", "cuda"), 2, "not cuda", "https://onnxruntime.ai")


@each(
    ("domain", "advice", "commands"),
    [
        ("com.microsoft.extensions", "register", ("python -m pip install onnxruntime-extensions",)),
        ("never.heard.of", "the library that defines them", ()),
    ],
)
def test_operators_of_other_libraries_run_nowhere(
    written: Written, domain: str, advice: str, commands: tuple[str, ...]
):
    """The other nodes are answered for, and the package is named where one is known to bring the domain."""
    graph = f"g (float[2] x) => (float[2] y) {{ a = Relu(x) b = {domain}.Thing(a) y = Mul(b, a) }}"
    for provider in ("dml", "cpu"):
        answer = check_model(written(graph, imports=f', "{domain}" : 1'), provider)
        assert [node.device for node in answer.nodes] == [provider, "none", provider]
        found = next(one for one in answer.findings if one.key == "unknown-domain")
        assert advice in str(found.remedies[0].text)
        assert found.remedies[0].commands == commands

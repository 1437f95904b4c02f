"""Targets beside DirectML: tables in one form, limits that are judged, one table for all, and what each needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import forked
import numpy as np
import onnx
import pytest
from onnx import ModelProto, defs, helper, numpy_helper, parser

from assistant.model.errors import BadInput
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.onnx import check_model, check_targets, try_model
from assistant.onnx.answers import Checked, rows_of_blocks, rows_of_targets
from assistant.onnx.offered import NotOffered, Offered
from assistant.onnx.operators import PROVIDERS, match, table
from assistant.onnx.suit import suit
from assistant.onnx.targets import ALL, chosen, known, limits, ordered

TARGETS = tuple(known().targets)
TABLES = [name for name in TARGETS if name not in PROVIDERS]
FP32 = "tensor(float)"


def model(text: str, opset: int = 17, **weights: np.ndarray) -> ModelProto:
    """Write a model in ONNX's language."""
    graph = parser.parse_graph(text)
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", opset)])


def places(answer: Checked) -> list[str]:
    """Give where each node runs."""
    return [node.device for node in answer.nodes]


def why(answer: Checked) -> str:
    """Give the reason of the first node that is not on the target."""
    return next(str(node.why) for node in answer.nodes if node.device != answer.provider)


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_of_targets_are_whole(name: str):
    """Every table names source, date and what it holds for; rows name type sets that exist and versions in order."""
    found = table(name)
    assert found.provider == name
    assert "https://" in found.source
    assert found.as_of.startswith("20")
    assert found.holds_for
    rows = [row for ops in found.operators.values() for kernels in ops.values() for row in kernels]
    assert len(rows) > 50
    assert all(0 <= number < len(found.type_sets) for row in rows for number in row.types.values())
    assert all(row.until is None or row.until >= row.since for row in rows)
    assert set(found.operators[""]) <= {schema.name for schema in defs.get_all_schemas_with_history()} | set(
        found.signatures.get("", {})
    )


@pytest.mark.parametrize("name", TABLES)
def test_limits_speak_of_what_operators_have(name: str):
    """A limit names an operator of the table, inputs and attributes that it has, and asks one thing."""
    of_table = {op for ops in table(name).operators.values() for op in ops}
    for op in {*known().limits.get(name, {}), *known().limits.get(known().targets[name].like, {})}:
        assert op in of_table, op
        for limit in limits(name, op):
            asked = (limit.constant, limit.absent, limit.rank, limit.outputs, limit.attribute, limit.types, limit.words)
            assert sum(map(bool, asked)) == 1, op
            if limit.attribute and defs.has(op):
                versions = [one for one in defs.get_all_schemas_with_history() if one.name == op and one.domain == ""]
                assert any(limit.attribute in one.attributes for one in versions), (op, limit.attribute)


def test_an_open_row_of_kernels_takes_its_own_version_only():
    """CUDA's Conv of opset 11 ends at 21; the open row of 22 takes that version alone, as DirectML's rows do."""
    assert match("cuda", "", "Conv", 11, (FP32,) * 2, (FP32,))[0]
    assert match("cuda", "", "Conv", 22, (FP32,) * 2, (FP32,))[0]
    assert match("cuda", "", "Relu", 14, ("tensor(int32)",), ("tensor(int32)",))[0] is None


def test_what_a_table_does_not_mention_falls_to_the_cpu():
    """An operator without a row runs on the CPU, as ONNX Runtime has it, and nowhere only where nothing knows it."""
    shown = check_model(model("g (float[2] x) => (y) { a = Relu(x) y = Sinh(a) }", 18), "webnn")
    assert places(shown) == ["webnn", "cpu"]
    assert "Sinh" in why(shown)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("webnn", "g (float[2,3] x, int64[2] s) => (float[3,2] y) { y = Reshape(x, s) }", "shape as a constant"),
        ("webnn", "g (float[1,2,8] x) => (float[1,2,1] y) { y = GlobalAveragePool(x) }", "dimensions"),
        ("webnn", 'g (float[1,2] x, int64[4] p) => (float[1,4] y) { y = Pad<mode="reflect">(x, p) }', ""),
        ("migraphx", 'g (float[1,2] x) => (float[1,4] y) { y = Pad<mode="edge">(x, p) }', "mode = edge"),
        ("migraphx", "g (float[1,1,4,4] x) => (y, i) { y, i = MaxPool<kernel_shape=[2,2]>(x) }", "one output"),
        ("coreml", "g (float[2] x, int64[2] e) => (float[2] y) { y = Pow(x, e) }", "int64"),
        ("openvino-cpu", "g (double[2] x) => (double[2] y) { y = Relu(x) }", "double"),
        ("openvino-cpu", "g (float x) => (float y) { y = Tanh(x) }", "without dimensions"),
        ("coreml", "g (float[1,1,1,1,1,1] x) => (float[1,1,1,1,1,1] y) { y = Relu(x) }", "at most 5 dimensions"),
    ],
)  # fmt: skip
def test_limits_are_judged(name: str, text: str, words: str):
    """Constants, dimensions, attributes, outputs and types that a target does not take leave the node to the CPU."""
    weights = {"p": np.zeros(4, np.int64)} if "(x, p)" in text else {}
    shown = check_model(model(text, **weights), name)
    if words:
        assert places(shown) == ["cpu"]
        assert words in why(shown)
    else:
        assert places(shown) == [name]


def test_what_is_computed_from_known_sizes_counts_as_constant():
    """The runtime computes it before it places anything; sizes that are open are no constants."""
    text = "g (float[{size}] x, float[4] z) => (y) {{ s = Shape(x) y = Reshape(z, s) }}"
    assert places(check_model(model(text.format(size="4")), "migraphx")) == ["migraphx", "migraphx"]
    assert places(check_model(model(text.format(size="n")), "migraphx")) == ["migraphx", "cpu"]


def test_open_sizes_keep_nodes_off_targets_that_take_fixed_ones():
    """WebNN and QNN take fixed sizes only; the finding names the command that fixes them."""
    text = "g (float[n,3] x) => (float[n,3] y) { y = Relu(x) }"
    shown = check_model(model(text), "webnn")
    assert places(shown) == ["cpu"]
    found = next(finding for finding in shown.findings if finding.key == "dynamic-shape")
    assert "fix-shapes" in found.remedies[0].commands[0]
    assert places(check_model(model(text.replace("n,", "2,")), "webnn")) == ["webnn"]
    assert places(check_model(model(text), "cuda")) == ["cuda"]


def test_branches_are_left_to_the_cpu_where_a_target_takes_the_main_graph_only():
    """QNN takes nothing inside a branch."""
    text = """g (float[2] x, bool c) => (float[2] y) {
        y = If (c) <
            then_branch = a () => (float[2] t) { t = Relu(x) }, else_branch = b () => (float[2] e) { e = Neg(x) }
        >
    }"""
    shown = check_model(model(text), "qnn")
    assert set(places(shown)) == {"cpu"}
    assert any("branch" in str(node.why) for node in shown.nodes)
    assert set(places(check_model(model(text), "cuda"))) <= {"cuda", "cpu"}


def test_a_survey_sums_up_every_target():
    """A row for each target in the order asked for; the counts of DirectML are those of its own answer."""
    shown = check_targets(model("g (float[n] x) => (y) { a = Relu(x) y = Sinh(a) }", 18))
    assert [one.target for one in shown.targets] == list(TARGETS)
    row = {one.target: one for one in shown.targets}
    assert (row["cpu"].takes, row["cpu"].of) == (2, 2)
    assert (row["webnn"].takes, row["webnn"].cpu) == (0, 2)
    assert [str(one) for one in row["webnn"].needs] == ["fixed sizes"]
    assert "Sinh" in [row[0] for row in rows_of_blocks(shown)]
    assert len(rows_of_targets(shown)) == len(TARGETS)
    assert places(check_model(model("g (float[n] x) => (y) { y = Relu(x) }"), "dml")) == ["dml"]


def test_this_machine_s_targets_come_first():
    """The GPU's maker and the system decide the order; of an unknown machine nothing is known."""
    of = {"os": "linux", "gpus": (Gpu(vendor=Vendor.NVIDIA),)}
    assert ordered(Machine(**of))[0] == "cuda"
    assert ordered(Machine(os="windows", gpus=(Gpu(vendor=Vendor.AMD),)))[:2] == ("dml", "migraphx")
    assert ordered(Machine(os="macos", gpus=(Gpu(vendor=Vendor.APPLE),)))[0] == "coreml"
    assert ordered(None) == TARGETS


def test_names_of_targets_are_checked():
    """Lists with commas, repeated names and "all" are understood; another name is refused with those that there are."""
    assert chosen(("cuda,webnn", "cuda")) == ("cuda", "webnn")
    assert chosen((ALL,)) == TARGETS
    with pytest.raises(BadInput, match="no target cudda"):
        chosen(("cudda",))


def test_a_conversion_does_what_the_target_s_data_say():
    """FP16 only where it helps, an opset that the target takes, and a sentence on sizes that have to be fixed."""
    assert not check_suit("g (float[2] x) => (float[2] y) { y = Relu(x) }", "openvino-cpu").fp16
    webnn = check_suit("g (float[n] x) => (float[n] y) { y = Relu(x) }", "webnn")
    assert webnn.fp16
    assert "fix-shapes" in str(webnn.notes[0])
    assert check_suit("g (float[2] x) => (float[2] y) { y = Relu(x) }", "dml").opsets is None


def check_suit(text: str, name: str) -> SimpleNamespace:
    """Give what suits a target for a model."""
    return suit(model(text), name)


class Runtime(SimpleNamespace):
    """An ONNX Runtime with one provider of its own and a plug-in's device."""

    def __init__(self) -> None:
        device = SimpleNamespace(
            ep_name="WebGpuExecutionProvider", device=SimpleNamespace(type=SimpleNamespace(name="GPU"))
        )
        super().__init__(opened=[], device=device)

    def get_available_providers(self) -> list[str]:
        """Name its own."""
        return ["OpenVINOExecutionProvider", "CPUExecutionProvider"]

    def get_ep_devices(self) -> list[SimpleNamespace]:
        """Give the plug-in's device."""
        return [self.device]

    def InferenceSession(self, *given: object, **options: object) -> tuple[object, ...]:  # noqa: N802 - as the library
        """Remember how it was opened."""
        self.opened.append((given, options))
        return given


def test_a_provider_is_found_by_its_short_or_full_name():
    """Own providers come with the CPU behind them, plug-ins by their device; a missing one tells what there is."""
    runtime = Runtime()
    offered = Offered(runtime)
    assert offered.names() == ["openvino", "cpu", "webgpu"]
    offered.open("m", SimpleNamespace(), "OpenVINOExecutionProvider", "GPU", [])
    assert runtime.opened[-1][1]["providers"][0] == ("OpenVINOExecutionProvider", {"device_type": "GPU"})
    added = []
    options = SimpleNamespace(add_provider_for_devices=lambda devices, _given: added.extend(devices))
    offered.open("m", options, "webgpu", "", [])
    assert added == [runtime.device]
    with pytest.raises(NotOffered, match="openvino, cpu, webgpu"):
        offered.open("m", options, "qnn", "", [])


@pytest.mark.process
def test_trying_on_a_provider_that_is_not_there_names_those_that_are(tmp_path: Path):
    """The command ends with 2 and one sentence."""
    path = tmp_path / "m.onnx"
    onnx.save(model("g (float[2] x) => (float[2] y) { y = Relu(x) }"), path)
    with pytest.raises(BadInput, match="does not offer qnn"):
        try_model(path, provider="qnn")
    assert try_model(path, provider="CPUExecutionProvider").passed


Saved = Callable[..., Path]


@pytest.mark.process
def test_the_command_answers_for_one_several_or_all_targets(tmp_path: Path):
    """Without a target a table and, in JSON, DirectML's answer with the sums; with one its nodes; with several each."""
    path = tmp_path / "m.onnx"
    onnx.save(model("g (float[n] x) => (float[n] y) { a = Relu(x) y = Sinh(a) }", 18), path)
    run = lambda *words: forked.run("onnx", "check", path, *words)  # noqa: E731 - one line
    assert "WebNN" in run().stdout
    assert "fixed sizes" in run().stdout
    whole = json.loads(run("--json").stdout)
    assert whole["provider"] == "dml"
    assert {one["target"] for one in whole["targets"]} == set(TARGETS)
    one = json.loads(run("--json", "--target", "webgpu").stdout)
    assert (one["provider"], len(one["nodes"])) == ("webgpu", 2)
    several = json.loads(run("--json", "--target", "cuda,coreml").stdout)
    assert [answer["provider"] for answer in several["targets"]] == ["cuda", "coreml"]
    assert "CoreML" in run("--target", "cuda", "--provider", "coreml").stdout
    assert run("--target", "gpu").returncode == 2
    assert run("--target", "all", "--svg", str(tmp_path / "m.svg")).returncode == 2
    assert run("--target", "cuda", "--svg", str(tmp_path / "m.svg")).returncode == 0


@pytest.mark.process
def test_the_command_converts_for_a_target(tmp_path: Path):
    """The result is called after the target; for one that gains nothing by FP16 nothing is written."""
    path = tmp_path / "m.onnx"
    text = "g (float[2,4] x) => (float[2,4] y) { a = MatMul(x, w) y = Relu(a) }"
    onnx.save(model(text, w=np.eye(4, dtype=np.float32)), path)
    assert forked.run("onnx", "convert", path, "--for", "cuda").returncode == 0
    assert (tmp_path / "m.cuda.onnx").exists()
    assert forked.run("onnx", "convert", path, "--for", "openvino-cpu").returncode == 1
    assert forked.run("onnx", "convert", path, "--for", "gpu").returncode == 2

"""`assistant onnx convert` on files: what lies where afterwards, and one sentence for each bad input."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest
from addons.onnx.traps import trap
from click.testing import CliRunner
from onnx import numpy_helper
from tables import each

from assistant.model.errors import BadInput, WorkFailed
from assistant_addons.onnx.command import onnx as command
from assistant_addons.onnx.conversion import convert

pytestmark = pytest.mark.process  # the result of each conversion is loaded in one


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Write a small model."""
    path = tmp_path / "model.onnx"
    path.write_bytes(trap("squares leave the range").SerializeToString())
    return path


def test_the_result_lies_beside_the_source_with_a_log(source: Path) -> None:
    """The source is untouched; result, JSON log and text log are there and nothing else is."""
    before = source.read_bytes()
    done = convert(source)
    assert source.read_bytes() == before
    names = {path.name for path in source.parent.iterdir()}
    result = "model.dml.onnx"
    assert names == {"model.onnx", result, f"{result}.log.json", f"{result}.log.txt"}
    log = json.loads((source.parent / f"{result}.log.json").read_text(encoding="utf-8"))
    assert log["source"] == str(source)
    kept = [change["what"] for change in log["changes"] if change["kind"] == "kept"]
    assert kept == ["Mul#1", "ReduceMean#2", "Sqrt#3"]
    assert "Mul" in (source.parent / f"{result}.log.txt").read_text(encoding="utf-8")
    assert done.output == str(source.parent / result)


def test_a_result_is_replaced_only_on_request(source: Path) -> None:
    """A second run is refused, and with `force` goes through; the source is refused always."""
    convert(source)
    with pytest.raises(BadInput, match="exists"):
        convert(source)
    convert(source, force=True)
    before = source.read_bytes()
    with pytest.raises(BadInput, match="never overwritten"):
        convert(source, source, force=True)
    assert source.read_bytes() == before


def test_external_weights_are_read_and_the_source_left(tmp_path: Path) -> None:
    """A model with its weights in a file beside it is converted; both files stay as they were."""
    model = trap("tiny epsilon")
    model.graph.initializer.append(numpy_helper.from_array(np.ones((64, 64), np.float32), "unused"))
    model.graph.node.append(onnx.helper.make_node("Identity", ["unused"], ["out"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("out", 1, [64, 64]))
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=1024)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    convert(path)
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    onnx.checker.check_model(str(tmp_path / "model.dml.onnx"))


def test_a_new_model_is_brought_to_what_directml_loads(tmp_path: Path) -> None:
    """IR 13 and opset 23 come out as IR 10 and opset 21."""
    model = trap("tiny epsilon")
    model.ir_version, model.opset_import[0].version = 13, 23
    del model.graph.node[:]
    model.graph.node.append(onnx.helper.make_node("Elu", ["x"], ["y"]))
    path = tmp_path / "new.onnx"
    path.write_bytes(model.SerializeToString())
    done = convert(path)
    assert (done.opset, done.ir_version) == (21, 10)


def test_inputs_that_are_no_arrays_are_refused(source: Path) -> None:
    """A file of inputs that NumPy cannot read ends in a sentence."""
    answer = CliRunner().invoke(command, ["convert", str(source), "--inputs", str(source)])
    assert isinstance(answer.exception, BadInput)


def test_the_command_prints_json(source: Path) -> None:
    """`convert --json` tells what was changed and where the result is."""
    answer = CliRunner().invoke(command, ["convert", str(source), "--json", "--keep", "Mul"])
    told = json.loads(answer.output)
    assert told["output"] == str(source.with_name("model.dml.onnx"))
    assert "Mul#1" in {change["what"] for change in told["changes"] if change["kind"] == "kept"}


def test_nothing_converted_is_no_success(saved: Callable[..., Path]) -> None:
    """A model of integers alone has nothing for FP16, and no file is written that would be the same again."""
    path = saved("g (int64[2] x) => (int64[2] y) { y = Add(x, x) }")
    with pytest.raises(WorkFailed, match="Nothing in"):
        convert(path)
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_strict_refuses_what_no_run_has_proved(saved: Callable[..., Path]) -> None:
    """An operator that ONNX Runtime has on GPUs alone is converted, and the log says that no run has proved it."""
    path = saved(
        "g (float[1, 4, 4, 32] x) => (float[1, 4, 4, 32] y) "
        "{ a = Exp(x) w = Constant<value_floats = [1.0]>() s = Constant<value_ints = [32]>() g = Expand(w, s) "
        "y = com.microsoft.GroupNorm<groups = 4, activation = 0>(a, g, g) }",
        imports=', "com.microsoft" : 1',
    )
    with pytest.raises(WorkFailed, match="No run has proved"):
        convert(path, strict=True)
    done = convert(path)
    assert done.obstacle
    assert any("no run has proved it" in str(change.why) for change in done.changes)


@pytest.fixture
def crashing(saved: Callable[..., Path]) -> Path:
    """Write a model that ONNX Runtime loads in FP32, and dies of in FP16: a product behind a moved batch."""
    return saved(
        "g (float[6, 2, 8] x) => (float[2, 6, 4] y) { t = Transpose<perm = [1, 0, 2]>(x) y = MatMul(t, w) }",
        weights={"w": np.full((8, 4), 0.5, np.float32)},
    )


@each("found", ["in a fork", "in a new process"])
def test_what_crashes_the_runtime_stays_fp32(crashing: Path, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found by loading the result: Linux forks for it, other systems cannot."""
    if found == "in a new process":
        elsewhere = SimpleNamespace(platform="win32", executable=sys.executable, path=sys.path)
        monkeypatch.setattr("assistant_addons.onnx.proof.sys", elsewhere)
    done = convert(crashing, force=True)
    assert done.loaded is True
    assert [change.what for change in done.changes if "crash" in str(change.why)]
    assert done.converted
    assert json.loads(Path(f"{done.output}.log.json").read_text(encoding="utf-8"))["loaded"] is True


def test_what_does_not_load_is_not_written(crashing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier result stays as it is."""
    earlier = Path(convert(crashing).output)
    before = earlier.read_bytes()
    answers = iter(["it died", ""])  # of the result, and of its source
    monkeypatch.setattr("assistant_addons.onnx.fp16.loading", lambda _model: lambda: next(answers, "it died"))
    with pytest.raises(WorkFailed, match="Nothing in"):
        convert(crashing, force=True)
    assert earlier.read_bytes() == before
    assert not list(crashing.parent.glob("*.part"))


def test_weights_in_a_file_of_their_own_are_converted_one_at_a_time(
    saved: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is too large for one file is never held in one piece, and the result's weights lie beside it."""
    weights = np.random.default_rng(0).standard_normal((700, 700)).astype(np.float32) / 26
    path = saved("g (float[2, 700] x) => (float[2, 700] y) { a = MatMul(x, w) y = Tanh(a) }", weights={"w": weights})
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights.bin")
    monkeypatch.setattr("assistant_addons.onnx.load.LIMIT", 2**27 + 2**19)
    done = convert(path)
    assert Path(f"{done.output}.data").stat().st_size == weights.nbytes // 2
    given = {"x": np.ones((2, 700), np.float32)}
    one, other = (onnxruntime.InferenceSession(str(file)).run(None, given)[0] for file in (path, done.output))
    assert np.abs(one - other).max() < 1e-2

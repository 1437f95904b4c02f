"""`assistant onnx try`: real child processes, agreement told apart from overflow, limits that end a run."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from addons.onnx.traps import trap
from onnx import TensorProto
from tables import each

from assistant.model.errors import BadInput, WorkFailed
from assistant_addons.onnx import convert, try_model
from assistant_addons.onnx.proof import distance
from assistant_addons.onnx.trial import source_of

pytestmark = pytest.mark.process


def written(folder: Path, name: str, trap_name: str) -> Path:
    """Write one of the small models."""
    path = folder / name
    path.write_bytes(trap(trap_name).SerializeToString())
    return path


def test_a_conversion_is_held_against_its_source(tmp_path: Path) -> None:
    """The result's name tells the source; both run, agree, and the places of the nodes are told."""
    source = written(tmp_path, "model.onnx", "a scan")
    result = Path(convert(source).output)
    assert source_of(result) == source
    answer = try_model(result)
    assert answer.passed, answer.verdict
    assert answer.run.provider == "cpu" or sys.platform == "win32"
    assert answer.run.placement
    assert {one.output for one in answer.strict} == {"h", "ys"}
    assert min(answer.run.load_seconds, answer.run.seconds) > 0


def test_overflow_that_the_cpu_hides_is_found(tmp_path: Path) -> None:
    """A blind conversion passes on the CPU, which computes in FP32, and fails where every node rounds."""
    source = written(tmp_path, "model.onnx", "squares leave the range")
    model = onnx.load(source)
    blind = onnx.ModelProto()
    blind.CopyFrom(model)
    blind.graph.node.insert(0, onnx.helper.make_node("Cast", ["x"], ["x16"], to=TensorProto.FLOAT16))
    blind.graph.node[1].input[0] = "x16"
    blind.graph.node[-1].output[0] = "y16"
    blind.graph.node.append(onnx.helper.make_node("Cast", ["y16"], ["y"], to=TensorProto.FLOAT))
    blind.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.float16(300), "k"))
    path = tmp_path / "blind.onnx"
    path.write_bytes(blind.SerializeToString())
    answer = try_model(path, source)
    assert not answer.passed
    assert all(one.agrees for one in answer.agreement)
    assert not any(one.agrees for one in answer.strict)
    assert "every node rounds" in str(answer.verdict)


def test_a_model_that_differs_is_told(tmp_path: Path) -> None:
    """Another model with the same inputs disagrees, by name of the output."""
    path = written(tmp_path, "model.onnx", "sine of a large angle")
    other = onnx.load(path)
    other.graph.node[1].op_type = "Cos"
    (tmp_path / "other.onnx").write_bytes(other.SerializeToString())
    answer = try_model(tmp_path / "other.onnx", path, provider="cpu")
    assert not answer.passed
    assert "y" in str(answer.verdict)


def test_a_run_that_takes_too_long_or_dies_is_an_answer(tmp_path: Path) -> None:
    """A limit of next to nothing, and an interpreter that ends at once, are told in the verdict."""
    path = written(tmp_path, "model.onnx", "a scan")
    assert "longer" in str(try_model(path, limit=0.01).verdict)
    assert "died" in str(try_model(path, python="/bin/false" if sys.platform != "win32" else "where").verdict)
    with pytest.raises(WorkFailed, match="cannot be started"):
        try_model(path, python=str(tmp_path / "none"))


def test_given_inputs_are_used(tmp_path: Path) -> None:
    """An input given as a sample is what both models see."""
    path = written(tmp_path, "model.onnx", "half already")
    np.savez(tmp_path / "x.npz", x=np.zeros((2, 4), np.float32))
    answer = try_model(path, provider="cpu", inputs=tmp_path / "x.npz")
    assert answer.passed
    assert answer.agreement[0].error == 0


def test_bad_input_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """A file that is no model never reaches a child."""
    path = tmp_path / "model.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(BadInput):
        try_model(path)


@each(
    "expected, found, apart",
    [(5.0, 4.0, 0.2), (1e-2, 0.0, 1.0), (1e-4, 0.0, 0.1), (1e-9, 0.0, 1e-6), (1.0, float("nan"), float("inf"))],
)
def test_small_outputs_are_compared_by_their_own_size(expected: float, found: float, apart: float) -> None:
    """A conversion that makes nothing of a small output is found out; the last digits of what is tinier are noise."""
    numbers = np.array([expected, 0.0]), np.array([found, 0.0])
    assert distance(*numbers) == pytest.approx(apart)

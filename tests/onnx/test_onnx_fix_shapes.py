"""`assistant onnx fix-shapes`: open sizes are given, asked for by the weights or chosen, and written everywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import forked
import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper
from refused import refused

from assistant.model.errors import BadInput, WorkFailed
from assistant.onnx import check_model, fix_file, fix_shapes, load_model, shapes_file

Written = Callable[..., ModelProto]
DENSE = "g (float[batch, n, m] x) => (float[batch, n, 4] y) { a = MatMul(x, w) y = Relu(a) }"


@pytest.fixture
def dense(written: Written) -> ModelProto:
    """Give a model of one layer, of which the weights tell the last size."""
    model = written(DENSE)
    model.graph.initializer.append(numpy_helper.from_array(np.ones((80, 4), np.float32), "w"))
    return model


@pytest.fixture
def source(dense: ModelProto, tmp_path: Path) -> Path:
    """Write it into a file."""
    path = tmp_path / "model.onnx"
    onnx.save(dense, path)
    return path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `assistant onnx fix-shapes`."""
    return forked.run("onnx", "fix-shapes", *arguments)


def dims(info: onnx.ValueInfoProto) -> list[int]:
    """Give the sizes of a value, 0 for one that is open."""
    return [dim.dim_value for dim in info.type.tensor_type.shape.dim]


def test_sizes_are_written_everywhere_and_told(dense: ModelProto) -> None:
    """Inputs, inner values and outputs get their sizes; each is told with where it comes from; the model stays."""
    before = dense.SerializeToString()
    fixed, done = fix_shapes(dense, {"n": 7})
    assert dense.SerializeToString() == before
    assert dims(fixed.graph.input[0]) == [1, 7, 80]
    assert dims(fixed.graph.output[0]) == [1, 7, 4]
    assert [dims(info) for info in fixed.graph.value_info] == [[1, 7, 4]]
    assert {one.name: (one.size, one.why) for one in done.sizes} == {
        "batch": (1, "chosen"),
        "n": (7, "given"),
        "m": (80, "weights"),
    }
    assert done.inputs == {"x": (1, 7, 80)}
    assert done.open == ()
    onnx.checker.check_model(fixed, full_check=True)


def test_what_follows_from_a_given_size_is_given(written: Written) -> None:
    """Two inputs that are joined have the same length, whichever of the two was given."""
    model = written("g (float[1, a] x, float[1, b] y) => (float[2, c] z) { z = Concat<axis = 0>(x, y) }")
    fixed, done = fix_shapes(model, shapes={"x": [1, 5]})
    assert dims(fixed.graph.output[0]) == [2, 5]
    assert {(one.name, one.size, one.why) for one in done.sizes} == {("a", 5, "given"), ("b", 5, "given")}


@pytest.mark.parametrize(
    ("sizes", "shapes", "told"),
    [
        ({"m": 81}, {}, "The weights ask for 80"),
        ({}, {"x": [1, 7, 81]}, "The weights ask for 80"),
        ({"depth": 3}, {}, "no open size depth"),
        ({}, {"z": [1]}, "no input z"),
        ({}, {"x": [1, 7]}, "does not fit"),
        ({"n": 8}, {"x": [1, 7, 80]}, "given as 8 and as 7"),
    ],
)
def test_what_does_not_fit_is_refused(
    dense: ModelProto, sizes: dict[str, int], shapes: dict[str, list[int]], told: str
) -> None:
    """A size that the weights contradict, one given twice, and a name that the model lacks."""
    with pytest.raises(BadInput, match=told):
        fix_shapes(dense, sizes, shapes)


def test_sizes_without_a_name_are_called_by_input_and_axis(written: Written) -> None:
    """So are those called "?", as Paddle writes any open size: two of them need not be equal."""
    model = written("g (float[1, 3, h, w] x) => (float[1, 3, h, w] y) { y = Relu(x) }")
    shape = model.graph.input[0].type.tensor_type.shape
    shape.dim[2].dim_param = shape.dim[3].dim_param = "?"
    fixed, done = fix_shapes(model, {"x#3": 192})
    assert dims(fixed.graph.output[0]) == [1, 3, 224, 192]
    assert [one.name for one in done.sizes] == ["x#2", "x#3"]


def test_an_output_that_depends_on_numbers_keeps_its_open_size(written: Written) -> None:
    """Nobody knows beforehand how many numbers are not zero, and that is said."""
    model = written("g (float[n] x) => (int64[1, found] y) { y = NonZero(x) }")
    fixed, done = fix_shapes(model)
    assert done.open == ("y",)
    assert fixed.graph.output[0].type.tensor_type.shape.dim[1].dim_param == "found"


def test_weights_among_the_inner_values_keep_their_shape(dense: ModelProto) -> None:
    """Newer exporters of torch list weights there, too; their shapes are not lost with the stale ones."""
    dense.graph.value_info.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [80, 4]))
    fixed, _done = fix_shapes(dense)
    assert {info.name: dims(info) for info in fixed.graph.value_info}["a"] == [1, 64, 4]


@pytest.mark.process
def test_it_needs_no_runtime(dense: ModelProto, tmp_path: Path) -> None:
    """A page in a browser has onnx and NumPy alone."""
    onnx.save(dense, tmp_path / "model.onnx")
    code = (
        "import sys; sys.modules['onnxruntime'] = None; import onnx; from assistant.onnx import fix_shapes\n"
        "print(fix_shapes(onnx.load(sys.argv[1]))[1].inputs)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model.onnx")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "{'x': (1, 64, 80)}"


def test_the_result_is_run_and_lies_beside_the_source(source: Path) -> None:
    """`model.fixed.onnx` is written once it has run; a second time only on request, and over the source never."""
    before = source.read_bytes()
    done = fix_file(source)
    assert done.ran
    assert done.output == str(source.with_name("model.fixed.onnx"))
    assert dims(load_model(done.output).graph.input[0]) == [1, 64, 80]
    with pytest.raises(BadInput, match="exists"):
        fix_file(source)
    with pytest.raises(BadInput, match="never overwritten"):
        fix_file(source, source, force=True)
    assert source.read_bytes() == before


def test_without_a_runtime_the_result_is_written_unrun(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it runs is then not known."""
    monkeypatch.setattr(shapes_file.importlib.util, "find_spec", lambda _name: None)
    assert fix_file(source).ran is None


def test_chosen_sizes_are_such_that_the_model_runs(saved: Callable[..., Path]) -> None:
    """Of what is tried the first that runs is taken; a size that breaks the model is refused."""
    path = saved("g (float[1, n] x) => (float[m, 7] y) { s = Constant<value_ints = [-1, 7]>() y = Reshape(x, s) }")
    done = fix_file(path)
    assert done.ran
    assert done.inputs["x"][1] % 7 == 0
    with pytest.raises(BadInput, match="does not run with the given sizes"):
        fix_file(path, sizes={"n": 33}, force=True)


def test_a_model_without_open_sizes_is_left_alone(saved: Callable[..., Path]) -> None:
    """Nothing is written that would be the same again."""
    with pytest.raises(WorkFailed, match="no open sizes"):
        fix_file(saved("g (float[2] x) => (float[2] y) { y = Relu(x) }"))


@pytest.mark.process
def test_the_command_tells_what_it_did(source: Path) -> None:
    """In JSON and in words, with the user's sizes, shapes or whole inputs; what makes no sense ends with code 2."""
    told = json.loads(run(str(source), "--dim", "n=9", "--json").stdout)
    assert told["outputs"] == {"y": [1, 9, 4]}
    assert told["ran"] is True
    drawn = run(str(source), "--input", "x=2x5x80", "--force").stdout
    assert "you gave it" in drawn
    assert "run once" in drawn
    np.savez(source.with_name("in.npz"), x=np.zeros((3, 2, 80), np.float32))
    given = run(str(source), "--inputs", str(source.with_name("in.npz")), "--force", "--json").stdout
    assert json.loads(given)["inputs"] == {"x": [3, 2, 80]}
    refused(run(str(source), "--dim", "m=81", "--force"), 2, "The weights ask for 80")
    refused(run(str(source), "--dim", "n=0"), 2, "names no sizes")
    refused(run(str(source), "--dim", "n=2x3"), 2, "one number")
    refused(run(str(source)), 2, "exists already")


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "array", "told"),
    [
        ("x", np.zeros((1, 2, 80)), "is float64, and the model takes float32"),
        ("x", np.zeros((1, 2, 81), np.float32), "The weights ask for 80"),
        ("z", np.zeros(1, np.float32), "no input z"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(source: Path, name: str, array: np.ndarray, told: str) -> None:
    """By name, type and shape, with one sentence and code 2."""
    np.savez(source.with_name("in.npz"), **{name: array})
    refused(run(str(source), "--inputs", str(source.with_name("in.npz"))), 2, told)


def test_the_check_advises_all_open_sizes(dense: ModelProto) -> None:
    """The command names each with the size that it would get."""
    found = next(one for one in check_model(dense).findings if one.key == "dynamic-shape")
    assert "fix-shapes model.onnx --dim batch=1 --dim n=64 --dim m=80" in found.remedies[0].commands[0]

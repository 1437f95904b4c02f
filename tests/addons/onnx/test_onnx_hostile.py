"""Models of strangers are refused at once, or ended by the limits of a child that knows no secret."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import forked
import onnx
import psutil
import pytest
from addons.onnx.hostile import HOSTILE
from onnx import ModelProto, parser
from refused import refused
from tables import sampled

from assistant.model.errors import BadInput
from assistant_addons.onnx import load_model

pytestmark = pytest.mark.process

REFUSAL_SECONDS = 2.0
COMMAND_SECONDS = 30.0  # with two starts of Python, on a machine that is busy with other tests
EVERY = pytest.mark.parametrize("name", HOSTILE)


def put(folder: Path, name: str) -> Path:
    """Write a hostile model into a folder and answer its place."""
    content = HOSTILE[name][0](folder)
    path = folder / "model.onnx"
    if content is not None:
        path.write_bytes(content.SerializeToString() if isinstance(content, ModelProto) else content)
    return path


def assistant(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return forked.run("onnx", *arguments, env={**os.environ, **variables})


@EVERY
def test_it_is_refused_at_once(name: str, tmp_path: Path) -> None:
    """Reading ends in one sentence and a next step, within two seconds of work."""
    path = put(tmp_path, name)
    began = time.process_time()
    with pytest.raises(BadInput, match=HOSTILE[name][1]) as told:
        load_model(path)
    assert time.process_time() - began < REFUSAL_SECONDS
    assert told.value.hint


def test_what_is_wrong_with_the_model_is_said_before_what_is_wrong_with_the_place(tmp_path: Path) -> None:
    """A name that is mistyped is no output that cannot be written."""
    refused(assistant("convert", tmp_path / "none" / "model.onnx"), 2, "none/model.onnx cannot be read")
    model = tmp_path / "model.onnx"
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
    onnx.save(parser.parse_model(text), model)
    refused(assistant("convert", model, "--to", tmp_path / "none" / "result.onnx"), 1, "result.onnx cannot be written")


@pytest.mark.full
@EVERY
@pytest.mark.parametrize("work", ["check", "convert"])
def test_the_command_refuses_every_one(name: str, work: str, tmp_path: Path) -> None:
    """What the reader refuses, the command refuses in the same words."""
    refused(assistant(work, put(tmp_path, name)), 2, HOSTILE[name][1])


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """Write a model whose loop never ends."""
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) {
      n = Constant <value = int64 {1099511627776}> () c = Constant <value = bool {1}> ()
      y = Loop (n, c, x) <body = b (int64 i, bool d, float[2] v) => (bool e, float[2] w) {
        e = Identity (d) w = Relu (v) }> }"""
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(text), path)
    return path


def test_endless_work_is_ended_and_leaves_nothing(endless: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A loop without an end costs a conversion what the limit allows; no file, no folder and no process stays."""
    began = time.monotonic()
    places = tmp_path_factory.mktemp("children")  # where their homes are
    refused(assistant("convert", endless, "--limit", "3", TMPDIR=str(places)), 1, "was stopped after 3 s", "--limit")
    assert time.monotonic() - began < COMMAND_SECONDS
    assert [path.name for path in endless.parent.iterdir()] == ["model.onnx"]
    assert not any(str(places) in str(one.info["environ"]) for one in psutil.process_iter(["environ"]))


def test_a_trial_without_an_end_is_an_answer(endless: Path) -> None:
    """The run is ended by the limit, which the verdict tells."""
    refused(assistant("try", endless, "--limit", "2"), 1, "longer than 2 s")


def test_an_input_of_minus_one_is_open(tmp_path: Path) -> None:
    """Some exporters write an open size so; the model is converted as one with an open size."""
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[N,2] x) => (float[N,2] y) { y = Mul (x, x) }'
    model = parser.parse_model(text)
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.shape.dim[0].dim_value = -1
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    for work in ("check", "convert"):
        done = assistant(work, path)
        assert done.returncode == 0, done.stderr


def test_what_we_did_not_foresee_is_the_models_fault_where_onnx_says_so(tmp_path: Path) -> None:
    """A split into no parts breaks the lowering of its opset; the refusal says what is wrong with the model."""
    text = """<ir_version: 9, opset_import: ["" : 20]> g (float[2,4] x, int64[1,1] i, float[1,4] u) => (float[2,4] y) {
      a = ScatterND (x, i, u) y = Split <axis = 7, num_outputs = 0> (a) }"""
    path = tmp_path / "model.onnx"
    path.write_bytes(parser.parse_model(text).SerializeToString())
    refused(assistant("convert", path), 2, "is not a valid model")


GIANT = {
    "Tile": "r = Constant <value = int64[2] {1099511627776, 1099511627776}> () y = Tile (x, r) }",
    "Pad": "r = Constant <value = int64[4] {1099511627776, 0, 0, 0}> () y = Pad (x, r) }",
    "ConstantOfShape": "r = Constant <value = int64[2] {1048576, 1048576}> () z = ConstantOfShape (r) y = Add (x, z) }",
}


@pytest.mark.parametrize("name", sampled(GIANT, 3))
def test_what_only_a_run_would_show_to_be_giant_is_not_run(name: str, tmp_path: Path) -> None:
    """A conversion does without the run that no memory could hold, in seconds."""
    head = '<ir_version: 8, opset_import: ["" : 17]> g (float[1,1] x) => (float[N,M] y) {'
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(f"{head} {GIANT[name]}"), path)
    began = time.monotonic()
    assert assistant("convert", path).returncode == 0
    assert time.monotonic() - began < COMMAND_SECONDS

"""Models are read whole or refused in one sentence, and written whole, never over their source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tables import each

from assistant.model.errors import BadInput
from assistant_addons.onnx import check_model, convert, load_model

Written = Callable[..., ModelProto]
RELU = "g (float[2] x) => (float[2] y) { y = Relu(x) }"
BRANCHES = """g (float[2] x, bool c) => (float[2] y) {
  y = If (c) <then_branch = t () => (float[2] o) { o = Relu(z) },
    else_branch = e () => (float[2] p) { p = Neg(x) }> }"""
CALLS = """<domain: "own", opset_import: ["own" : 1]> f (x) => (y) { y = own.h(x) }
<domain: "own", opset_import: ["own" : 1]> h (x) => (y) { y = own.f(x) }"""
PRODUCT = "g (float[2,4] x) => (float[2,4] y) { a = Mul(x, w) y = Relu(a) }"


@pytest.fixture
def weighty(written: Written) -> ModelProto:
    """Give a model with weights of 2 MB."""
    model = written(PRODUCT.replace("2,4", "1,4"))
    model.graph.initializer.append(numpy_helper.from_array(np.ones((2**17, 4), np.float32), "w"))
    return model


@pytest.fixture
def apart(weighty: ModelProto, tmp_path: Path) -> Path:
    """Write the same into a folder of its own, the weights into a file beside it."""
    (tmp_path / "own").mkdir()
    path = tmp_path / "own" / "model.onnx"
    onnx.save(
        ModelProto.FromString(weighty.SerializeToString()), path, save_as_external_data=True, location="model.onnx.data"
    )
    return path


def refuse(path: Path, *words: str, content: bytes | None = None) -> None:
    """Check that a file, with this content if any is given, is refused with these words, and not changed."""
    if content is not None:
        path.write_bytes(content)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(BadInput) as told:
        load_model(path)
    assert all(word in str(told.value.message) for word in words), told.value.message
    assert "{" not in str(told.value.message)
    assert told.value.hint
    assert before is None or path.read_bytes() == before


def test_what_is_no_model_is_refused(weighty: ModelProto, tmp_path: Path):
    """Nothing, text, an archive, a web page, a model that is cut at any length: none passes for a model."""
    path, whole = tmp_path / "model.onnx", weighty.SerializeToString()
    refuse(path, "model.onnx", "cannot be read")
    refuse(tmp_path, "cannot be read")
    for content in (b"", b"hello", b"PK\x03\x04" + bytes(99), b"<!DOCTYPE html><html></html>", bytes(9)):
        refuse(path, "not an ONNX model", content=content)
    for length in (*range(60), *range(60, len(whole), len(whole) // 50), len(whole) - 1):
        refuse(path, "not an ONNX model", content=whole[:length])
    refuse(path, "Git LFS", content=b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")


@each(
    ("graph", "more", "words"),
    [
        (RELU, {"ir": 99}, "ir_version 99"),
        (RELU, {"opset": 99}, "opset 99"),
        ("g (float[2] x) => (float[2] y) { a = Add(x, b) b = Relu(a) y = Relu(b) }", {}, "topologically sorted"),
        ("g (float[2] x) => (float[2] y) { y = Add(x, b) }", {}, "input 'b'"),
        ("g (float[2] x) => (float[2] y) { y = Relu(x) y = Neg(x) }", {}, "'y' has been used"),
        (BRANCHES, {}, "input 'z'"),
        (RELU.replace("Relu", "own.f"), {"imports": ', "own" : 1', "functions": CALLS}, "call one another"),
    ],
)
def test_what_no_runtime_could_load_is_refused(saved: Callable[..., Path], graph: str, more: dict, words: str):
    """Newer versions, cycles, values made twice or never: one sentence names each."""
    refuse(saved(graph, **more), words)


def test_unknown_domains_that_no_node_uses_do_no_harm(saved: Callable[..., Path]):
    """Exporters leave imports behind that nothing uses."""
    load_model(saved(RELU, imports=', "pkg.torch" : 1'))


def test_garbled_names_are_refused(written: Written, apart: Path, tmp_path: Path):
    """Bytes that are no text in the place of an operator, a value or a file make no model."""
    model = written(RELU.replace("x", "name_of_x"))
    for text in (b"Relu", b"name_of_x"):
        garbled = model.SerializeToString().replace(text, b"\xff\xfe" + text[2:])
        refuse(tmp_path / "model.onnx", content=garbled)
    refuse(apart, content=apart.read_bytes().replace(b"onnx.data", b"\xff\xfenx.data"))


def test_external_data_outside_the_folder_are_refused(apart: Path):
    """A path that leaves the model's folder is never followed, nor a link inside it that does."""
    (apart.parents[1] / "weights.data").write_bytes(bytes(2**21))
    (apart.parent / "link.data").symlink_to(apart.parents[1] / "weights.data")
    model = ModelProto.FromString(apart.read_bytes())
    entry = next(one for one in model.graph.initializer[0].external_data if one.key == "location")
    for place in ("../weights.data", "/etc/passwd", "", "a\0b", "..", "x/../../weights.data", "link.data"):
        entry.value = place
        refuse(apart, "outside its own folder", content=model.SerializeToString())


def test_a_cache_of_links_is_read(apart: Path, weighty: ModelProto):
    """A snapshot that links model and weights into one folder is read, as model hubs keep them."""
    snapshot = apart.parents[1] / "snapshot"
    snapshot.mkdir()
    for file in apart.parent.iterdir():
        (snapshot / file.name).symlink_to(file)
    assert load_model(snapshot / "model.onnx").graph.initializer[0].raw_data == weighty.graph.initializer[0].raw_data


def test_missing_or_short_weights_are_refused(written: Written, apart: Path, tmp_path: Path):
    """Weights that are not there, that end too soon, or hold less than their shape says, wherever they hold it."""
    data = apart.with_name("model.onnx.data")
    data.write_bytes(data.read_bytes()[:-1])
    refuse(apart, "weights w", "not as long")
    data.unlink()
    refuse(apart, "missing", "model.onnx.data")
    for held in ({"raw_data": bytes(8)}, {"float_data": [1.0]}):
        model = written(PRODUCT)
        model.graph.initializer.add(name="w", dims=[2, 4], data_type=TensorProto.FLOAT, **held)
        refuse(tmp_path / "model.onnx", "weights w", content=model.SerializeToString())
    model = written(PRODUCT)
    values, places = numpy_helper.from_array(np.ones(2, np.float32), "w"), numpy_helper.from_array(np.array([1, 99]))
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2, 4]))
    refuse(tmp_path / "model.onnx", "Sparse tensor", content=model.SerializeToString())


def test_large_weights_can_stay_where_they_are(apart: Path):
    """Without its weights a model is known all the same; they are looked for nevertheless."""
    model = load_model(apart, weights=False)
    assert not model.graph.initializer[0].raw_data
    apart.with_name("model.onnx.data").unlink()
    with pytest.raises(BadInput, match="missing"):
        load_model(apart, weights=False)


def test_a_model_of_many_gigabytes_is_known_without_its_weights(written: Written, tmp_path: Path):
    """3 GB of external weights are looked for, but not read."""
    model = written("g (float[N] x) => (float[N] y) { y = Mul(x, w) }")
    weight = model.graph.initializer.add(name="w", dims=[750_000_000], data_type=TensorProto.FLOAT)
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="w.data")
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with (tmp_path / "w.data").open("wb") as file:
        file.truncate(3_000_000_000)  # a file of holes
    assert str(check_model(tmp_path / "model.onnx").verdict) == "DirectML takes every node that computes (1 node)."


@pytest.mark.process  # the model is converted before
def test_the_source_is_never_overwritten(apart: Path, tmp_path: Path):
    """Neither the model, nor a link to it, nor its external data are written to."""
    (tmp_path / "alias.onnx").symlink_to(apart)
    before = {file: file.read_bytes() for file in apart.parent.iterdir()}
    for target in (apart, tmp_path / "alias.onnx", apart.with_name("model.onnx.data")):
        with pytest.raises(BadInput, match="never overwritten"):
            convert(apart, target, force=True)
    assert {file: file.read_bytes() for file in apart.parent.iterdir()} == before

"""Known defects of ONNX Runtime are data: told by check and try, gone round by convert, and true of the one here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper
from packaging.version import Version
from tables import sampled

from assistant.model.errors import WorkFailed
from assistant.model.finding import Severity
from assistant.model.record import replace
from assistant_addons.onnx import check_model, convert, defects, operators, try_model
from assistant_addons.onnx.conversion import loaded
from assistant_addons.onnx.defects import CONDITIONS, Defect, disabled, met
from assistant_addons.onnx.program import program

pytestmark = pytest.mark.process

Written = Callable[..., ModelProto]
SIDE = {"float16": np.float16, "float": np.float32, "double": np.float64}


def transposed(written: Written, order: tuple[int, ...], kind: str = "float16", opset: int = 17) -> ModelProto:
    """Make a model that transposes its input and multiplies it by a weight."""
    sizes = [6, 2, 8, 4][: len(order)]
    turned = [sizes[axis] for axis in order]
    shapes = ", ".join(map(str, sizes)), ", ".join(map(str, [*turned[:-1], 5]))
    model = written(
        f"g ({kind}[{shapes[0]}] x) => ({kind}[{shapes[1]}] y) "
        f"{{ t = Transpose<perm = [{', '.join(map(str, order))}]>(x) y = MatMul(t, w) }}",
        opset=opset,
    )
    model.graph.initializer.append(numpy_helper.from_array(np.ones((turned[-1], 5), SIDE[kind]), "w"))
    return model


def known(key: str) -> Defect:
    """Give a defect by its key."""
    return next(one for one in defects.defects() if one.key == key)


def keys(model: ModelProto, release: str = "") -> list[str]:
    """Give the defects that a model calls forth on the CPU."""
    return [defect.key for defect, _parts in met(program(model), "cpu", release)]


@pytest.fixture
def crashing(written: Written, tmp_path: Path) -> Path:
    """Write a model that the runtime dies of."""
    path = tmp_path / "model.onnx"
    onnx.save(transposed(written, (1, 0, 2)), path)
    return path


def test_the_table_is_whole() -> None:
    """Each row names sources, a condition that exists and a way round; a range begins before it ends."""
    found = defects.defects()
    assert len({one.key for one in found}) == len(found)
    for one in found:
        assert all(source.startswith("https://github.com/microsoft/onnxruntime/") for source in one.sources)
        assert one.condition in CONDITIONS
        assert one.optimizers
        assert "{nodes}" in one.text
        assert not one.until or Version(one.since) < Version(one.until)
        assert bool(one.error) is (one.effect == "refusal")


ORDERS = [*permutations(range(3)), (1, 2, 0, 3), (1, 2, 3, 0), (0, 2, 1, 3), (1, 0, 2, 3)]


@pytest.mark.parametrize("order", sampled(ORDERS, 3))
def test_the_condition_is_that_of_the_runtime(written: Written, tmp_path: Path, order: tuple[int, ...]) -> None:
    """Of the transpositions before a product, just those that the table tells kill the runtime, if it is in range."""
    model = transposed(written, order)
    onnx.save(model, tmp_path / "model.onnx")
    told = "transposed-product-fp16" in keys(model, onnxruntime.__version__)
    assert loaded(tmp_path / "model.onnx").answer is not told
    assert told is (order in {(1, 0, 2), (1, 2, 0), (1, 2, 0, 3), (1, 2, 3, 0)})


def test_the_way_round_works(crashing: Path) -> None:
    """With the named optimiser disabled the model loads."""
    without = ",".join(known("transposed-product-fp16").optimizers)
    code = (
        "import sys, onnxruntime; onnxruntime.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider'], "
        "disabled_optimizers=sys.argv[2].split(','))"
    )
    subprocess.run([sys.executable, "-c", code, str(crashing), without], check=True)


NORM = """g (float16[1, 4, 8] x, float16 k) => (float16[1, 4, 8] y) {
    c = Conv(x, w) p = Pow(c, k) m = ReduceMean<axes = [-1]>(p) e = Add(m, k) r = Sqrt(e) d = Div(c, r) n = Mul(d, k)
    p2 = Pow(n, k) m2 = ReduceMean<axes = [-1]>(p2) e2 = Add(m2, k) r2 = Sqrt(e2) d2 = Div(n, r2) y = Mul(d2, k) }"""
GELU = "g (float16[4] x) => (float16[4] y) { e = Erf(x) a = Add(e, x) y = Mul(a, x) }"
PRODUCT = "g (double[5, 6] x, double[6] z) => (double[5] y) { t = Transpose<perm = [1, 0]>(x) y = MatMul(z, t) }"


@pytest.mark.parametrize(
    ("graph", "key"), [(NORM, "rms-norm-fp16"), (GELU, "gelu-fp16-arm"), (PRODUCT, "transposed-product-fp64")]
)
def test_each_form_is_recognised_in_its_type_alone(written: Written, graph: str, key: str) -> None:
    """The same in FP32 calls nothing forth."""
    narrow, wide = written(graph), written(graph.replace("float16", "float").replace("double", "float"))
    for model, kind in ((narrow, np.float16), (wide, np.float32)):
        model.graph.initializer.append(numpy_helper.from_array(np.ones((4, 4, 1), kind), "w"))
    assert keys(narrow) == [key]
    assert keys(wide) == []


def test_a_release_out_of_range_is_not_blamed(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor another processor than the one that has it."""
    model = transposed(written, (1, 0), "double")
    assert keys(model, "1.25.0") == ["transposed-product-fp64"]
    assert keys(model, "1.26.0") == keys(model, "1.9.0") == []
    monkeypatch.setattr(defects.platform, "machine", lambda: "arm64")
    assert known("gelu-fp16-arm").is_in("1.29.0")
    monkeypatch.setattr(defects.platform, "machine", lambda: "x86_64")
    assert not known("gelu-fp16-arm").is_in("1.29.0")


def test_a_session_does_without_what_leaves_the_device() -> None:
    """On DirectML alone; on the CPU the runtime keeps its own settings."""
    assert disabled("dml", "1.24.4") == ["GeluFusionL1"]
    assert disabled("cpu", "1.31.1") == []


def test_the_check_tells_it(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an error with the way round, for the releases that have it."""
    model = transposed(written, (1, 0, 2))
    monkeypatch.setattr(operators, "_installed", lambda _flavours: iter(["1.31.1"]))
    found = next(one for one in check_model(model, "cpu").findings if one.key == "transposed-product-fp16")
    assert found.severity is Severity.ERROR
    assert str(check_model(model, "cpu").verdict).startswith("It does not load as it is")
    assert "FuseFp16InitializerToFp32NodeTransformer" in str(found.remedies[-1].text)
    monkeypatch.setattr(operators, "_installed", lambda _flavours: iter(["1.22.1"]))
    assert "transposed-product-fp16" not in {one.key for one in check_model(model, "cpu").findings}


def test_a_trial_tells_what_killed_it(crashing: Path) -> None:
    """In place of the number that the process ended with."""
    answer = try_model(crashing, provider="cpu")
    assert not answer.passed
    assert answer.reference_run.died
    assert "ONNX Runtime dies on the CPU" in str(answer.verdict)


def wide(written: Written, folder: Path) -> Path:
    """Write the same model in FP32."""
    path = folder / "wide.onnx"
    onnx.save(transposed(written, (1, 0, 2), "float"), path)
    return path


def test_what_a_conversion_writes_is_loaded_first(written: Written, tmp_path: Path) -> None:
    """The log says that it was."""
    done = convert(wide(written, tmp_path))
    assert done.loaded is True
    log = json.loads(Path(f"{done.output}.log.json").read_text(encoding="utf-8"))
    assert log["loaded"] is True


def test_a_result_that_does_not_load_is_made_again(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the part of every known defect left in FP32; then it loads."""
    rare = tuple(replace(one, always=False) for one in defects.defects())
    monkeypatch.setattr(defects, "defects", lambda: rare)
    done = convert(wide(written, tmp_path))
    assert done.loaded is True
    assert done.half is not None
    assert [(kept.op, kept.why) for kept in done.half.kept] == [("Transpose", "crash")]


def test_what_never_loads_is_refused_in_the_words_of_the_defect(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written then, and an earlier result stays as it is."""
    path = wide(written, tmp_path)
    earlier = Path(convert(path).output)
    before = earlier.read_bytes()
    monkeypatch.setattr("assistant_addons.onnx.fp16.to_keep", lambda *_some, **_more: iter(()))
    with pytest.raises(WorkFailed, match="ONNX Runtime dies on the CPU"):
        convert(path, force=True)
    assert earlier.read_bytes() == before
    assert not list(tmp_path.glob("*.part"))

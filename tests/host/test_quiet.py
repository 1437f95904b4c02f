"""Libraries that report on their users are told not to, in every program that is started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from export.setups import DETECTION, ENVIRONMENT, LOCK, PLAN, REPORT
from onnx import TensorProto, helper

from assistant.export import Setup
from assistant.export.write import texts
from assistant.host.live import LiveHost
from assistant.host.process import running, telemetry_off

pytestmark = pytest.mark.process

NAMES = ("DO_NOT_TRACK", "GRADIO_ANALYTICS_ENABLED", "HF_HUB_DISABLE_TELEMETRY", "ORT_DISABLE_TELEMETRY")
TELL = f"import json, os; print(json.dumps({{name: os.environ.get(name) for name in {NAMES}}}))"


@pytest.fixture(autouse=True)
def _unset(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def test_the_table_names_the_switches():
    """ONNX Runtime's is the one that the verification needs."""
    assert tuple(sorted(telemetry_off())) == NAMES
    assert telemetry_off()["ORT_DISABLE_TELEMETRY"] == "1"


def test_a_child_is_quiet():
    """One that is streamed, as installers and the verification are."""
    with running([sys.executable, "-c", TELL]) as child:
        lines = list(child)
    assert child.returncode == 0
    assert json.loads(lines[0]) == telemetry_off()


def test_a_probe_is_quiet():
    """One that detection asks."""
    answer = LiveHost().run(sys.executable, "-c", TELL)
    assert json.loads(answer.text) == telemetry_off()


COLOURS = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")
TELL_COLOURS = f"import json, os; print(json.dumps([os.environ.get(name) for name in {COLOURS}]))"


def test_what_is_read_has_no_colours(monkeypatch):
    """Jupyter forces colours on all that a notebook starts; a program that the user sees still has them."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name in COLOURS[1:]:
        monkeypatch.setenv(name, "1")
    with running([sys.executable, "-c", TELL_COLOURS]) as child:
        lines = list(child)
    assert json.loads(lines[0]) == ["1", None, None]
    assert json.loads(LiveHost().run(sys.executable, "-c", TELL_COLOURS).text) == ["1", None, None]
    script = "from assistant.host.process import replace_process; import sys; replace_process([sys.executable, '-c', "
    script += f"{TELL_COLOURS!r}])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [None, "1", "1"]


def test_onnx_runtime_leaves_no_number_behind(tmp_path: Path):
    """A model that runs in a child of ours makes neither the lasting number nor the store of events in the home."""
    node = helper.make_node("Relu", ["x"], ["y"])
    shapes = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([node], "g", shapes[:1], shapes[1:])
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    run = "import sys, onnxruntime; onnxruntime.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider'])"
    homes = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home")}
    with running([sys.executable, "-c", run, tmp_path / "m.onnx"], environment=homes) as child:
        lines = list(child)
    assert child.returncode == 0, lines
    assert not list((tmp_path / "home").rglob("*"))


def test_a_program_that_takes_our_place_is_quiet():
    """As JupyterLab does."""
    script = "from assistant.host.process import replace_process; import sys; replace_process([sys.executable, '-c', "
    script += f"{TELL!r}])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == telemetry_off()


def test_what_the_user_has_set_stays(monkeypatch):
    """Their own value is the way out, an empty one too."""
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "0")
    monkeypatch.setenv("DO_NOT_TRACK", "")
    with running([sys.executable, "-c", TELL], environment={"HF_HUB_DISABLE_TELEMETRY": "no"}) as child:
        lines = list(child)
    told = json.loads(lines[0])
    assert (told["ORT_DISABLE_TELEMETRY"], told["DO_NOT_TRACK"], told["HF_HUB_DISABLE_TELEMETRY"]) == ("0", "", "no")
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "0"


def test_a_file_to_take_along_sets_only_what_the_setup_needs():
    """What libraries may report from the user's own programs is the user's to say."""
    written = texts(Setup(machine=DETECTION.machine, plan=PLAN, environment=ENVIRONMENT, report=REPORT, lock=LOCK))
    assert [(path, name) for path, text in written.items() for name in NAMES if name in text] == []

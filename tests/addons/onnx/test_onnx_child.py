"""A child that opens a stranger's model knows no secret of ours, keeps to its limits, and ends with all it started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from textwrap import indent

import psutil
import pytest

from assistant.host.process import CancelToken
from assistant.model.errors import AssistantError, BadInput, Cancelled
from assistant.model.record import Record
from assistant.model.report import Environment
from assistant.session.store import Store
from assistant_addons.onnx.child import Limits, clean_environment, work_on
from assistant_addons.onnx.task import python_with_onnxruntime

pytestmark = pytest.mark.process

ROOM = Limits(30.0, 1 << 40)
GB = ROOM._replace(memory=1 << 30)
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="forks, signals and the system's own limits are POSIX")


class Told(Record, frozen=True):
    """What a child answers."""

    text: str = ""


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Give a function that lets a child run lines of code, which leave their answer in `text`."""
    (tmp_path / "own").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "own"))

    def go(code: str, limits: Limits = ROOM, model: str = "m.onnx", **more: object) -> str:
        lines = f"import json, os, signal, tempfile, time\ntext = ''\n{code}\nreturn json.dumps({{'text': text}})"
        (tmp_path / "own" / "prober.py").write_text(f"def probe():\n{indent(lines, '    ')}\n")
        return work_on(model, "prober:probe", {}, Told, limits, **more).text

    return go


def test_nothing_of_ours_is_inherited(ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of the environment only what is listed arrives; home and temporary files are in a throw-away folder."""
    monkeypatch.setenv("GRADER_TOKEN", "SECRET")
    monkeypatch.setenv("PYTHONPATH", "SECRET")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("ProgramFiles(x86)", "C:\\Programs")  # below it setuptools looks for Visual C++ on Windows
    told, short = json.loads(ask("text = json.dumps([dict(os.environ), tempfile.gettempdir()])"))
    assert "SECRET" not in str(told)
    assert (told["LC_ALL"], told["PATH"]) == ("C.UTF-8", os.environ["PATH"])
    assert Path(short).parent == Path(told["HOME"]).parent
    assert not Path(told["HOME"]).exists()
    assert clean_environment(tmp_path)["ProgramFiles(x86)"] == "C:\\Programs"


def test_what_lies_in_the_working_folder_is_not_imported(ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's modules beside the notebook are not taken for the libraries'."""
    for name in ("json", "msgspec", "psutil"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    assert ask("text = os.getcwd()") == str(tmp_path)


def test_a_model_runs_in_any_python() -> None:
    """What runs it needs nothing of the assistant, whose libraries another version of Python could not load."""
    code = "from assistant_addons.onnx import confined, inputs, proof, runs; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"assistant.api", "msgspec", "rich"} & set(done.stdout.split())


@POSIX
@pytest.mark.parametrize(
    ("code", "limits", "words"),
    [
        ("while True: pass", ROOM._replace(seconds=1.0), "was stopped after 1 s"),
        ("print('x' * 10**8, flush=True); time.sleep(60)", ROOM._replace(seconds=2.0), "was stopped after 2 s"),
        ("held = bytearray(1 << 32)", GB, "more than 1.0 GB of memory"),
        (
            "for _ in range(6): os.fork() or [b'1' * (300 << 20), time.sleep(60)]\ntime.sleep(60)",
            GB,
            "more than 1.0 GB of memory",
        ),
        ("os.kill(os.getpid(), signal.SIGSEGV)", ROOM, "crashed the process that did it (code -11)"),
        ("from assistant.api import BadInput; raise BadInput('No such thing.')", ROOM, "No such thing."),
    ],
    ids=["endless", "endless line", "memory", "memory together", "crash", "refusal"],
)
def test_each_end_is_one_sentence(
    ask, code: str, limits: Limits, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit, a crash and a refusal end it within seconds and are named; nothing that it started stays."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # below it is the home of whatever the child starts
    began = time.monotonic()
    with pytest.raises(AssistantError) as told:
        ask(code, limits)
    assert words in str(told.value.message)
    assert time.monotonic() - began < 15
    time.sleep(0.3)
    assert not any(str(tmp_path) in str(one.info["environ"]) for one in psutil.process_iter(["environ"]))


def test_a_fault_of_ours_and_a_stop_are_no_refusals(ask) -> None:
    """What broke is told with the child's last words; whoever cancels need not wait for the limit."""
    with pytest.raises(RuntimeError, match="KeyError: 'x'") as told:
        ask("{}['x']", model="")
    assert "Traceback" in str(told.value.__notes__)
    cancel = CancelToken()
    cancel.set()
    with pytest.raises(Cancelled):
        ask("time.sleep(60)", cancel=cancel)


@pytest.mark.parametrize(
    ("packages", "theirs"),
    [
        ({"onnx": "1.19.0", "onnxruntime-directml": "1.24.4"}, True),
        ({"onnxruntime-gpu": "1.26.0"}, False),
        ({"onnx": "1.19.0"}, False),
    ],
)
def test_the_runtime_that_was_set_up_goes_first(
    packages: dict[str, str], *, theirs: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Ours computes on the processor alone; theirs has to read models, too, and to be there still."""
    python = tmp_path / "python"
    python.touch()
    made = Environment(path=str(tmp_path), python=str(python), packages=packages)
    monkeypatch.setattr(Store, "environment", lambda _self: made)
    assert python_with_onnxruntime() == (made.python if theirs else sys.executable)
    python.unlink()
    assert python_with_onnxruntime() == sys.executable
    monkeypatch.setattr("assistant_addons.onnx.task.find_spec", lambda _name: None)
    with pytest.raises(BadInput, match="no ONNX Runtime"):
        python_with_onnxruntime()

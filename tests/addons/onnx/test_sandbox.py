"""A confined child knows no secret of ours, keeps to its limits, and ends with all that it started."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from assistant.host.process import CancelToken
from assistant.model.errors import Cancelled
from assistant_addons.onnx.child import Limits, clean_environment

pytestmark = [pytest.mark.process, pytest.mark.full]

ROOM = Limits(30.0, 1 << 40)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Give a function that runs lines of code as a confined module of ours."""
    (tmp_path / "own").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "own"))

    def go(code: str, limits: Limits = ROOM, **more: object) -> Outcome:
        (tmp_path / "own" / "prober.py").write_text(code)
        return confine("prober", limits, tmp_path / "work", **more)

    return go


def test_nothing_of_ours_is_inherited(run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of the environment only what is listed arrives; home and temporary files are in the throw-away folder."""
    monkeypatch.setenv("GRADER_TOKEN", "SECRET")
    monkeypatch.setenv("PYTHONPATH", "SECRET")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    done = run("import json, os, tempfile; print(json.dumps([dict(os.environ), os.getcwd(), tempfile.gettempdir()]))")
    told, here, short = json.loads(done.lines[-1])
    assert "SECRET" not in str(told)
    assert (told["LC_ALL"], told["PATH"]) == ("C.UTF-8", os.environ["PATH"])
    work = tmp_path / "work"
    assert (told["HOME"], here, short) == (str(work / "home"), str(work), str(work / "tmp"))


def test_a_child_on_windows_can_find_visual_cpp(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Below these setuptools looks for vswhere: https://github.com/microsoft/vswhere/wiki/Installing."""
    for name in ("ProgramFiles(x86)", "ProgramW6432"):
        monkeypatch.setenv(name, "C:\\Programs")
        assert clean_environment(tmp_path)[name] == "C:\\Programs"


def test_what_lies_in_the_working_folder_is_not_imported(run, tmp_path: Path) -> None:
    """A stranger's json.py beside the notebook is not taken for the library's."""
    (tmp_path / "work" / "json.py").write_text("raise SystemExit(9)")
    assert run("import json; print(len(json.dumps(1)))") == Outcome(0, ("1",), "")


@pytest.mark.parametrize(
    ("code", "limits", "reached"),
    [
        ("while True: pass", ROOM._replace(seconds=1.0), "time"),
        ("import time; print('x' * 10**8, flush=True); time.sleep(60)", ROOM._replace(seconds=3.0), "time"),
        ("import os, time\nwhile True: os.fork() or time.sleep(60)", ROOM._replace(processes=20), "processes"),
        ("held = bytearray(1 << 31)", ROOM._replace(memory=1 << 30), "memory"),
        (
            "import os, time\nfor _ in range(6): os.fork() or [b'1' * (300 << 20), time.sleep(60)]\ntime.sleep(60)",
            ROOM._replace(memory=1 << 30),
            "memory",
        ),
    ],
    ids=["endless", "endless line", "forks", "memory", "memory together"],
)
@pytest.mark.skipif(sys.platform == "win32", reason="forks, and the system's own limits, are POSIX")
def test_limits_end_it(run, code: str, limits: Limits, reached: str) -> None:
    """Each limit ends it within seconds and is named; nothing that it started stays."""
    began = time.monotonic()
    assert run(code, limits).reached == reached
    assert time.monotonic() - began < 15
    time.sleep(0.3)
    assert not any("prober" in str(one.info["cmdline"]) for one in psutil.process_iter(["cmdline"]))


def test_a_stop_ends_it(run) -> None:
    """Whoever cancels need not wait for the limit."""
    cancel = CancelToken()
    cancel.set()
    with pytest.raises(Cancelled):
        run("import time; time.sleep(60)", cancel=cancel)

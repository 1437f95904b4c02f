"""A log that the user gave: kept whole, a long one in a private file that is what was given or nothing."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest
from runners import InlineRunner

from assistant.host.base import ReplayHost
from assistant.install import Sources
from assistant.machines import load
from assistant.model.errors import BadInput, WorkFailed
from assistant.session.actions import Paste
from assistant.session.session import Session
from assistant.session.state import WHOLE, Phase, State, Step, Task
from assistant.session.store import PASTED_LOGS, SHOWN, Store, read_whole_log, store_log

ERROR = "ImportError: libd3d12.so: cannot open shared object file: No such file or directory"
LONG = "a line of a training run\n" * (3 * WHOLE // 25) + f"{ERROR}\nthe end"


def test_a_short_log_is_kept_with_the_setup(tmp_path: Path) -> None:
    """No file is made; PowerShell's UTF-16 and colours are read as text."""
    pasted = store_log("\x1b[31mFehler\x1b[0m: größer\r\n".encode("utf-16"), "log.txt", tmp_path / "pasted")
    assert (pasted.text, pasted.name, pasted.path) == ("Fehler: größer\n", "log.txt", "")
    assert read_whole_log(pasted) == "Fehler: größer\n"
    assert list(tmp_path.iterdir()) == []


def test_a_long_log_lies_in_a_private_file_and_its_ends_in_the_setup(tmp_path: Path) -> None:
    """The whole of it comes back; the setup's own file stays small."""
    pasted = store_log(LONG.encode(), folder=tmp_path / "pasted")
    assert (len(pasted.text), len(pasted.tail)) == (SHOWN, SHOWN)
    assert (pasted.size, pasted.lines) == (len(LONG), len(LONG.split("\n")))
    assert read_whole_log(pasted) == LONG.encode()
    if sys.platform != "win32":
        assert stat.S_IMODE(Path(pasted.path).stat().st_mode) == 0o600
        assert stat.S_IMODE(Path(pasted.path).parent.stat().st_mode) == 0o700


def test_only_the_last_long_logs_are_kept(tmp_path: Path) -> None:
    """Old ones are deleted; one that is gone, or whose file was changed, is asked for again and never half read."""
    given = [store_log(f"{number}{LONG}".encode(), folder=tmp_path / "pasted") for number in range(PASTED_LOGS + 2)]
    assert len(list((tmp_path / "pasted").iterdir())) == PASTED_LOGS
    Path(given[-1].path).write_bytes(b"another log")
    for lost in (given[0], given[-1]):
        with pytest.raises(BadInput, match="The whole log is gone"):
            read_whole_log(lost)
    assert read_whole_log(given[-2])


def test_a_binary_file_and_a_full_disk_are_said(tmp_path: Path) -> None:
    """Each is one sentence with what to do."""
    with pytest.raises(BadInput, match="binary file"):
        store_log(b"\x7fELF" + bytes(1000))
    (tmp_path / "pasted").write_text("in the way")
    with pytest.raises(WorkFailed, match="could not be kept"):
        store_log(LONG.encode(), folder=tmp_path / "pasted")


def test_after_a_restart_what_is_seen_is_what_is_diagnosed(tmp_path: Path) -> None:
    """The saved setup names the log whose ends it shows; when its file is gone the step says so."""
    host = ReplayHost(load("linux-arch-rx6700xt-directml"))
    first = Session(host, InlineRunner(), Store(tmp_path), sources=Sources(host, offline=True))
    for task in (Task.DETECT, Task.PLAN):
        first.begin(task)
    first.dispatch(Paste(log=store_log(LONG.encode(), folder=tmp_path / "pasted")))
    first.begin(Task.DIAGNOSE)
    assert (tmp_path / "session.json").stat().st_size < 10 * SHOWN

    state = Store(tmp_path).load() or State()
    assert state.pasted == first.state.pasted == state.diagnosed.explained
    again = Session(host, InlineRunner(), state=state)
    again.begin(Task.DIAGNOSE)
    assert again.state.diagnosed.diagnoses[0].key == "directml-on-native-linux"
    place = again.state.diagnosed.places[0]
    assert place
    assert dict(place.lines)[place.line] == ERROR
    Path(state.pasted.path).unlink()
    again.begin(Task.DIAGNOSE)
    assert again.state.status(Step.DIAGNOSE).phase is Phase.FAILED
    assert "The whole log is gone" in str(again.state.status(Step.DIAGNOSE).message)

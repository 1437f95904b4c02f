"""The saved state and the log on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from assistant import __version__
from assistant.model.record import replace, to_json
from assistant.model.report import Step
from assistant.session.actions import Begin, reduce
from assistant.session.state import Choices, Phase, State, Task
from assistant.session.store import LOGS, Saved, Store


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    """A state survives in a folder that had to be made."""
    store = Store(tmp_path / "deep" / "folder")
    store.save(State(choices=Choices(target="/x")))
    assert store.load() == State(choices=Choices(target="/x"))
    saved = store.read()
    assert saved is not None
    assert (saved.version, saved.process) == (__version__, os.getpid())
    assert saved.at


def test_a_step_that_was_running_can_run_again(tmp_path: Path) -> None:
    """After a crash nothing claims to be running, and what was running is still known."""
    store = Store(tmp_path)
    store.save(reduce(State(), Begin(task=Task.DETECT)))
    saved = store.read()
    assert saved is not None
    assert saved.running is Task.DETECT
    assert saved.state is not None
    assert saved.state.running is None
    assert saved.state.status(Step.DETECT).phase is Phase.READY


@pytest.mark.process
def test_a_task_of_a_living_process_is_in_use() -> None:
    """Another window's work is told from work that died, and from our own."""
    saved = Saved(process=os.getpid(), running=Task.INSTALL, state=State())
    assert not saved.in_use
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with other:
        assert replace(saved, process=other.pid).in_use
        assert not replace(saved, process=other.pid, running=None).in_use
    assert not replace(saved, process=other.pid).in_use


def test_a_broken_or_newer_file_counts_as_none(tmp_path: Path) -> None:
    """Garbage, a cut-off file and another schema are no reason to fail, and it is known that something was there."""
    store = Store(tmp_path)
    for text in ("{", '{"schema": 9}', "\x00" * 100, '{"unknown": 1}', to_json(State(choices=Choices(target="/x")))):
        store.path.write_text(text, encoding="utf-8")
        assert store.load() is None
        saved = store.read()
        assert saved is not None
        assert saved.state is None


def test_what_was_dropped_is_gone(tmp_path: Path) -> None:
    """A setup that is not wanted any more is forgotten; once more is no failure."""
    store = Store(tmp_path)
    store.save(State(choices=Choices(target="/x")))
    store.drop()
    store.drop()
    assert store.read() is None


def test_a_simulation_is_not_saved_over_the_real_setup(tmp_path: Path) -> None:
    """A look at a recorded machine leaves what was saved as it is."""
    store = Store(tmp_path)
    store.save(State(choices=Choices(target="/x")))
    store.save(State(machine="some-machine"))
    assert store.load() == State(choices=Choices(target="/x"))


def test_the_log_is_one_file_per_process_and_old_ones_go(tmp_path: Path) -> None:
    """Every line is kept in order, and ten logs at most."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(LOGS + 5):
        (folder / f"setup-2020010{number:02d}.log").write_text("old")
    store = Store(tmp_path)
    store.write_log("first")
    store.write_log("第二行")
    assert store.log.read_text(encoding="utf-8") == "first\n第二行\n"
    assert len(list(folder.iterdir())) == LOGS


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    """Saving beside a file of the folder's name gives up silently: the setup itself goes on."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    store = Store(tmp_path / "file" / "below")
    store.save(State(choices=Choices(target="/x")))
    store.write_log("line")
    store.drop()
    assert store.read() is None

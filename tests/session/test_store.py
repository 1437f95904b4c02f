"""The saved state."""

from __future__ import annotations

from pathlib import Path

from assistant.model.event import Step
from assistant.model.record import replace
from assistant.session.state import Begin, Phase, State, Task, reduce
from assistant.session.store import Store


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    """A state survives in a folder that had to be made."""
    store = Store(tmp_path / "deep" / "folder")
    store.save(State(target="/x"))
    assert store.load() == State(target="/x")


def test_a_step_that_was_running_can_run_again(tmp_path: Path) -> None:
    """After a crash nothing claims to be running."""
    store = Store(tmp_path)
    store.save(reduce(State(), Begin(task=Task.DETECT)))
    loaded = store.load()
    assert loaded is not None
    assert loaded.running is None
    assert loaded.status(Step.DETECT).phase is Phase.READY


def test_a_broken_or_newer_file_counts_as_none(tmp_path: Path) -> None:
    """Garbage, a cut-off file and another schema are no reason to fail."""
    store = Store(tmp_path)
    for text in ("{", '{"schema": 2}', "\x00" * 100, '{"unknown": 1}'):
        store.path.write_text(text, encoding="utf-8")
        assert store.load() is None


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    """Saving beside a file of the folder's name gives up silently: the setup itself goes on."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    Store(tmp_path / "file" / "below").save(replace(State(), target="/x"))

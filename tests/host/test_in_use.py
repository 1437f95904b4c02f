"""Files that Windows says are in use for a moment are renamed and removed all the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tables import each

from assistant.host import files
from assistant.host.files import discard, discard_folder, retry_while_in_use, write_atomically


def refusal(code: int) -> OSError:
    """Return what Windows raises, with its own number, as no other system has one."""
    error = PermissionError(13, "Access is denied")
    error.winerror = code
    return error


def refused(code: int, times: int) -> Callable[[], str]:
    """Return a change that is refused so often before it is made."""
    answers: Iterator[OSError | None] = iter([refusal(code)] * times)

    def change() -> str:
        if error := next(answers, None):
            raise error
        return "done"

    return change


@each("code", [5, 32, 33, 145])
def test_a_scanner_is_waited_for(code):
    """A change that is refused three times because a file is in use is made at the fourth try."""
    assert retry_while_in_use(refused(code, 3)) == "done"


def test_what_stays_in_use_is_an_error_in_the_end(monkeypatch):
    """A program that keeps the file open is told of, after the time that a scanner may take."""
    monkeypatch.setattr(files, "PATIENCE_SECONDS", 0.2)
    with pytest.raises(PermissionError):
        retry_while_in_use(refused(32, 10**6))


def test_another_error_is_not_waited_for(monkeypatch):
    """A full disk, or a refusal of any other system, does not change by itself."""
    monkeypatch.setattr(time, "sleep", lambda _seconds: pytest.fail("it waited"))
    for error in (refusal(112), PermissionError(13, "Permission denied")):
        with pytest.raises(OSError):
            retry_while_in_use(lambda error=error: (_ for _ in ()).throw(error))


def test_no_draft_stays_where_a_rename_fails(tmp_path: Path):
    """A folder stands in the way of the name: the draft goes, and the folder stays."""
    (tmp_path / "name" / "inner").mkdir(parents=True)
    with pytest.raises(OSError):
        write_atomically(tmp_path / "name", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["name"]


def test_a_file_and_a_folder_are_told_apart(tmp_path: Path):
    """What is to be a file is not removed where a folder of the user's stands in its place; nothing there is fine."""
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    with pytest.raises(OSError):
        discard(tmp_path / "folder")
    assert (tmp_path / "folder" / "inner").is_dir()
    discard_folder(tmp_path / "folder")
    discard(tmp_path / "folder")
    assert not list(tmp_path.iterdir())

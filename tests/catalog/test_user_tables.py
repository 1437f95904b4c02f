"""The user's refreshed tables: used while they are whole and no older than the shipped ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from assistant.catalog.refresh import Seen, refreshed
from assistant.catalog.rows import TorchTables
from assistant.catalog.tables import read_tables
from assistant.catalog.user import torch_tables, user_path, write_torch_tables
from assistant.model.errors import WorkFailed
from assistant.model.record import replace, to_plain

SHIPPED = read_tables("torch", TorchTables)
NEW = refreshed(SHIPPED, [Seen("cpu", "torch-9.1.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl")], "2030-01-01").tables

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give this test a data folder of its own."""
    for name in ("XDG_DATA_HOME", "HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


def test_without_a_refresh_the_shipped_tables_are_in_force():
    """Nothing there is nothing to remark."""
    assert torch_tables() == (SHIPPED, "")


def test_refreshed_tables_go_first():
    """What was written is what is read."""
    assert write_torch_tables(NEW) == user_path()
    assert torch_tables() == (NEW, "")


def test_a_newer_assistant_makes_old_refreshed_tables_void():
    """Tables older than the shipped ones are passed over without a word."""
    write_torch_tables(replace(NEW, releases=replace(NEW.releases, as_of="2020-01-01")))
    assert torch_tables() == (SHIPPED, "")


def without_a_release(tables: dict) -> dict:
    """Take the first release out."""
    tables["releases"]["rows"].pop(0)
    return tables


@pytest.mark.parametrize(
    ("spoil", "culprit"),
    [
        (lambda _text: "", "truncated"),
        (lambda text: text[:500], "truncated"),
        (lambda text: text.replace('"releases"', '"realeses"', 1), "realeses"),
        (lambda text: text.replace('"version": "1.13.0"', '"version": 1'), "version"),
        (lambda text: json.dumps(without_a_release(json.loads(text))), "1.13.0"),
    ],
    ids=["empty", "cut off", "unknown key", "wrong type", "release lost"],
)
def test_a_spoilt_file_is_passed_over_with_a_sentence(spoil: Callable[[str], str], culprit: str):
    """The sentence names the file, what is wrong with it, and the way out; plans rest on the shipped tables."""
    write_torch_tables(NEW)
    user_path().write_text(spoil(json.dumps(to_plain(NEW))))
    tables, remark = torch_tables()
    assert tables == SHIPPED
    for word in (str(user_path()), "catalog refresh", culprit):
        assert word in str(remark)


def test_bytes_that_are_no_text_are_passed_over():
    """And so is a folder in the file's place."""
    write_torch_tables(NEW)
    user_path().write_bytes(b"\xff\xfe\x00")
    assert torch_tables().remark
    user_path().unlink()
    user_path().mkdir()
    assert torch_tables().remark


def test_a_place_that_cannot_be_written_is_named(home):
    """One sentence, and no half of a file."""
    (home / "pytorch-setup-assistant").write_text("a file in the way")
    with pytest.raises(WorkFailed, match="cannot be written"):
        write_torch_tables(NEW)

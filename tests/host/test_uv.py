"""Which uv is taken where none came with the assistant, and which is not."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assistant.host.extras import find_uv
from assistant.model.errors import WorkFailed

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform == "win32", reason="programs that are scripts of the shell"),
]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str, str], str]]:
    """Take uv away, and give a function that makes one of a version in a folder and returns its path."""
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(tmp_path)

    def make(folder: str, version: str) -> str:
        (tmp_path / folder).mkdir(exist_ok=True)
        program = tmp_path / folder / "uv"
        program.write_text(f"#!/bin/sh\necho 'uv {version} (x86_64-unknown-linux-gnu)'\n")
        program.chmod(0o755)
        return str(program)

    find_uv.cache_clear()
    yield make
    find_uv.cache_clear()


def test_the_one_that_started_us_comes_first(made, monkeypatch, tmp_path):
    """It names itself in UV; else the one on PATH is taken."""
    on_path = made("bin", "0.13.9")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_uv() == on_path
    find_uv.cache_clear()
    monkeypatch.setenv("UV", made("own", "0.13.9"))
    assert find_uv() == str(tmp_path / "own" / "uv")


def test_what_lies_in_the_current_folder_is_not_taken(made, monkeypatch):
    """Neither by a PATH that leads there nor by a name without a folder."""
    made(".", "0.13.9")
    monkeypatch.setenv("PATH", ".")
    monkeypatch.setenv("UV", "uv")
    assert shutil.which("uv")
    with pytest.raises(WorkFailed, match=r"needs the extra \[uv\]"):
        find_uv()


def test_an_old_one_is_named_with_what_helps(made, monkeypatch):
    """The least release is that of the extra."""
    old = made("bin", "0.4.30")
    monkeypatch.setenv("UV", old)
    with pytest.raises(WorkFailed) as refused:
        find_uv()
    assert old in str(refused.value)
    assert "uv self update" in str(refused.value.hint)

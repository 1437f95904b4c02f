"""Targets that do not suit an environment, and disks that fail, are named with the reason and the way out."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path

import pytest

from assistant.host.base import Answer, Host
from assistant.host.download import Fetch, download
from assistant.host.files import shared_environments_folder, user_data
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.install.environments import (
    LONG_PATHS,
    build_beside,
    check_lengths,
    check_target,
    onedrive_findings,
    resolve_target,
)
from assistant.install.site import Site
from assistant.model.errors import BadInput, WorkFailed

DEEP = "Lib/site-packages/torch/include/" + "x" * 100 + "/y.h"


class Windows(Host):
    """A Windows that answers for its registry alone."""

    def __init__(self, values: dict[str, int] | None) -> None:
        self.values = values

    def ask(self, kind: str, *arguments: str) -> Answer:
        """Answer what stands in the key of long paths."""
        if (kind, *arguments) != ("registry", LONG_PATHS) or self.values is None:
            return Answer(status="denied")
        return Answer(text=json.dumps({"values": self.values, "keys": {}}))


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """Return the folder of an environment that was built, with a deep file in it."""
    (tmp_path / DEEP).parent.mkdir(parents=True)
    (tmp_path / DEEP).touch()
    return tmp_path


def root(length: int) -> Path:
    """Return a folder with a path of so many characters."""
    return Path("/" + "r" * (length - 1))


@pytest.mark.parametrize("values", [{}, {"LongPathsEnabled": 0}])
def test_a_path_that_would_be_too_long_is_refused(built, values):
    """At 259 characters it still works; each folder keeps room for a name of 8.3 characters, or Windows makes none."""
    room = 259 - 1 - len(DEEP)
    check_lengths(Windows(values), built, root(room - 8))
    with pytest.raises(BadInput, match=r"y\.h would have a path of 260 characters") as refused:
        check_lengths(Windows(values), built, root(room + 1))
    assert "LongPathsEnabled to 1 in HKLM" in str(refused.value.hint)
    with pytest.raises(BadInput):
        check_lengths(Windows(values), built, root(room))


@pytest.mark.parametrize("values", [{"LongPathsEnabled": 1}, None])
def test_long_paths_are_fine_where_they_are_allowed(built, values):
    """A Windows that cannot be asked is not taken for one that refuses; other systems have no such key."""
    check_lengths(Windows(values), built, root(200))


@pytest.fixture
def store(tmp_path, monkeypatch) -> Path:
    """Let this Python be the Microsoft Store's; return its folder AppData."""
    monkeypatch.setattr(sys, "base_prefix", r"C:\Program Files\WindowsApps\PythonSoftwareFoundation.Python.3.13_x64")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "home" / "AppData"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home" / "AppData"))
    return tmp_path / "home" / "AppData"


def test_the_stores_python_makes_nothing_where_nobody_finds_it(store, tmp_path):
    """A folder below AppData is refused, and the one offered is fine; by itself the assistant takes such a one."""
    assert user_data().is_relative_to(store)
    with pytest.raises(BadInput, match="Microsoft Store") as refused:
        check_target(store / "env")
    offered = shared_environments_folder() / "env"
    assert str(offered) in str(refused.value.hint)
    assert shared_environments_folder() == tmp_path / "home" / "pytorch-setup-assistant" / "envs"
    check_target(shared_environments_folder() / "env")


def test_any_other_python_may_use_appdata(store, monkeypatch):
    """Only the Store's is redirected."""
    monkeypatch.setattr(sys, "base_prefix", r"C:\Python313")
    check_target(store / "env")
    assert shared_environments_folder() == user_data() / "envs"


def test_onedrive_is_told(tmp_path, monkeypatch):
    """A folder that is is_in_onedrive is a warning, any other is none."""
    monkeypatch.setenv("OneDriveConsumer", str(tmp_path / "OneDrive"))
    (finding,) = onedrive_findings(tmp_path / "OneDrive" / "project" / ".venv")
    assert finding.key == "target-in-onedrive"
    assert onedrive_findings(tmp_path / "project" / ".venv") == ()


def test_a_python_that_does_not_know_its_own_path_is_no_target():
    """A program that embeds Python may leave `sys.executable` empty; the current folder is not meant then."""
    with pytest.raises(BadInput, match="kernel is not an environment"):
        resolve_target("kernel", Windows(None))


@pytest.mark.skipif(os.name == "nt", reason="a script is a program by its first line elsewhere only")
@pytest.mark.process
def test_a_program_that_is_no_python_is_refused(tmp_path):
    """It may end well and print nothing at all."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with pytest.raises(BadInput):
        Site.ask(program, LiveHost())


@pytest.mark.process
def test_a_disk_that_fails_is_no_fault_of_the_assistant(tmp_path):
    """The error names the system's reason, and what was begun is gone; so it is where a download has no folder."""
    with pytest.raises(WorkFailed, match="cannot be written to the disk"), build_beside(tmp_path / "env"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(WorkFailed, match="cannot be written"):
        list(download([Fetch("file:///wheel", str(tmp_path / "file" / "wheel"))], CancelToken()))

"""What `assistant install` refuses as its options are read, and what it tells before it does anything."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import forked
import pytest
from loopback import LoopbackIndex
from refused import refused

pytestmark = pytest.mark.process


def install(tmp_path: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a home of its own, without a terminal to ask, for a user whose pip knows one index."""
    env = forked.at_home(tmp_path / "home", **variables)
    return forked.run("install", "--backend", "cpu", *words, env=env, cwd=tmp_path)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--index-url", "wheels.txt"), "not the address of a package index"),
        (("--index-url", "javascript:alert(1)"), "not the address of a package index"),
        (("--find-links", "no-such-folder"), "no-such-folder is not a folder"),
        (("--pin", "torch; rm -rf ~"), "is not a requirement"),
        (("--pin", "--extra-index-url=https://a.example"), "is not a requirement"),
    ],
)
def test_options_that_are_none_are_refused_at_once(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    """One sentence and exit code 2, before anything is looked at."""
    refused(install(tmp_path, *words), 2, told)
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_writes_nothing_and_tells_all(tmp_path: Path, index: LoopbackIndex) -> None:
    """Commands, packages with their sizes, files and bytes, as text and as JSON; the target is not made."""
    target = tmp_path / "env"
    told = json.loads(install(tmp_path, "--dry-run", "--json", "--target", str(target), index=index.url).stdout)
    assert told["commands"][-1][-1] == str(target)
    assert {"torch", "numpy"} <= {package["name"] for package in told["resolution"]["packages"]}
    assert f"{target}{os.sep}" in told["writes"]
    assert "site" not in told
    shown = install(tmp_path, "--dry-run", "--target", str(target), index=index.url).stdout
    assert "uv pip sync" in shown
    assert f"writes {target}{os.sep}" in shown
    assert "nothing was changed" in shown
    assert not target.exists()


def test_a_folder_may_be_called_kernel(tmp_path: Path, index: LoopbackIndex) -> None:
    """The word alone means this Python's environment, `./kernel` the folder of that name."""
    told = json.loads(install(tmp_path, "--dry-run", "--json", "--target", "./kernel", index=index.url).stdout)
    assert told["target"] == str(tmp_path / "kernel")

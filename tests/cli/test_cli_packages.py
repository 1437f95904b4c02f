"""Setup packages for other PCs at the terminal: what is written, and what is refused in one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import forked
import pytest
from refused import refused

pytestmark = pytest.mark.process

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Give a function that runs the command in a home of its own."""

    def runner(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        home = {name: str(tmp_path / name) for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "JUPYTER_DATA_DIR")}
        return forked.run(*arguments, env={**os.environ, **home, "LANGUAGE": "en", "COLUMNS": "200"})

    return runner


def test_machines_by_name_and_by_file_get_a_package_each(run: Run, tmp_path: Path) -> None:
    """Two that get the same share one; the page names all; written again it replaces what it wrote."""
    file, folder = tmp_path / "room 12.json", tmp_path / "packages"
    file.write_text(json.dumps({"os": "linux", "arch": "x86_64", "glibc": "2.36", "python": "3.11.2", "gpus": []}))
    named = ("windows11-rtx3060", "windows11-two-nvidia", "linux-alpine-musl", file)
    machines = [word for name in named for word in ("--machine", name)]
    for _again in range(2):
        done = run("export", *machines, "--offline", "--to", folder)
        assert done.returncode == 0, done.stderr
        assert "Setup packages ready: 2 of 2" in done.stderr
        (left_out,) = [line for line in done.stderr.splitlines() if "gets no package: " in line]
        assert "musl" in left_out
    assert done.stdout.strip() == f"{folder / 'index.html'} shows which PC gets which package."
    page = (folder / "index.html").read_text("utf-8")
    zips = sorted(path.name for path in folder.glob("*.zip"))
    assert [name.partition("-")[0] for name in zips] == ["linux", "windows"]
    assert all(page.count(name) >= 2 for name in zips)
    assert "room 12" in page
    assert "musl" in page
    assert "is not a lock" in zipfile.ZipFile(folder / zips[0]).read("README.md").decode()


def test_what_is_asked_for_goes_into_the_package(run: Run, tmp_path: Path) -> None:
    """A pin and a backend of the command line are those of every package; --json lists the files."""
    options = ("--backend", "cpu", "--pin", "torch==2.13.0", "--offline", "--json")
    done = run("export", "--machine", "linux-ubuntu2404-rtx4090", *options, "--to", tmp_path)
    page, packed = map(Path, json.loads(done.stdout))
    assert page.name == "index.html"
    lines = zipfile.ZipFile(packed).read("requirements.txt").decode()
    assert "torch==2.13.0" in lines
    assert "whl/cpu" in lines


def test_what_makes_no_package_is_refused(run: Run, tmp_path: Path) -> None:
    """No folder, no such machine, options without a machine; and where nothing fits any PC, that is the answer."""
    refused(run("export", "--machine", "windows11-rtx3060"), 2, "--to")
    refused(run("export", "--machine", "windows11-rtx306", "--to", tmp_path / "x"), 2, "windows11-rtx3060")
    refused(run("export", "--pin", "torch==2.13.0"), 2, "--machine")
    refused(run("export", "--machine", "linux-alpine-musl", "--to", tmp_path / "x"), 3, "No PyTorch wheel fits")
    (tmp_path / "index.html").write_text("mine")
    refused(run("export", "--machine", "windows11-rtx3060", "--offline", "--json", "--to", tmp_path), 1, "index.html")
    assert (tmp_path / "index.html").read_text() == "mine"
    assert not (tmp_path / "x").exists()

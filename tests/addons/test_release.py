"""What a release publishes: built in a clone, the same to the byte each time, and refused where it does not fit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from assistant import __version__

pytestmark = [pytest.mark.process, pytest.mark.full]

ROOT = Path(__file__).parents[2]
MADE = (".git", ".assistant", "__pycache__", ".*_cache", ".hypothesis", "dist", "node_modules")
NAME = f"torch_setup_assistant-{__version__}"


def git(clone: Path, *words: str) -> None:
    """Run git there, as somebody and on a fixed day."""
    who = {"NAME": "Somebody", "EMAIL": "somebody@example.org", "DATE": "2030-01-02T03:04:05Z"}
    named = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
    subprocess.run(["git", "-C", clone, *words], env={**os.environ, **named}, capture_output=True, check=True)


@pytest.fixture(scope="module")
def committed(large_folder) -> Path:
    """Make a repository of a copy of this tree, with one commit."""
    clone = large_folder("committed") / "project"
    shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns(*MADE))
    git(clone, "init")
    git(clone, "add", "--all")
    git(clone, "commit", "--message", "All")
    return clone


@pytest.fixture
def clone(committed: Path, tmp_path: Path) -> Path:
    """Give a clone of its own, under another path."""
    git(tmp_path, "clone", str(committed), "a clone")
    return tmp_path / "a clone"


def release(clone: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run the script of a clone."""
    command = [sys.executable, clone / "release" / "make.py", *words]
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(clone.parent)}
    return subprocess.run(map(str, command), cwd=clone, env=environment, capture_output=True, text=True, check=False)


def test_a_clone_gives_the_same_bytes_as_another(clone: Path, committed: Path, tmp_path: Path):
    """It is tried in an empty environment and listed with its sums; file modes do not matter."""
    dist = tmp_path / "dist"
    (clone / "README.md").chmod(0o600)
    done = release(clone, dist)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PyTorch" in done.stdout  # the plan of the wheel that was installed
    again = release(committed, tmp_path / "again")
    assert again.returncode == 0, again.stdout + again.stderr
    files = sorted(path.name for path in dist.iterdir())
    assert files == [f"{NAME}-py3-none-any.whl", f"{NAME}.tar.gz"]
    for file in files:
        assert (dist / file).read_bytes() == (tmp_path / "again" / file).read_bytes()
        assert f"{file} {(dist / file).stat().st_size} bytes sha256:" in done.stdout
    with zipfile.ZipFile(dist / files[0]) as wheel:
        assert {entry.date_time[:3] for entry in wheel.infolist()} == {(2030, 1, 2)}
    with tarfile.open(dist / files[1]) as archive:
        assert not [entry.name for entry in archive if entry.uname or entry.uid]


def test_what_does_not_fit_is_not_released(clone, tmp_path):
    """A sentence names what is in no commit, and a tag, a version or a changelog that differ; nothing is built."""

    def refused(*words: str) -> str:
        done = release(clone, tmp_path / "dist", *words)
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
        return done.stderr.removeprefix("Nothing was built: ")

    tag = f"v{__version__}"
    for path in (clone / "assistant" / "mine.py", clone / "LICENSE"):
        path.write_text("mine\n")
        assert refused().startswith(f"1 files differ from the commit, such as {path.relative_to(clone).as_posix()};")
        git(clone, "add", "--all")
        git(clone, "commit", "--message", "Mine")
    assert refused("--tag", "v9.9.9").startswith("the tag v9.9.9 does not fit")
    (clone / "CHANGELOG.md").write_text(f"# Changelog\n\n## {__version__} - unreleased\n")
    git(clone, "commit", "--all", "--message", "Not yet")
    assert "write the day of the release there" in refused("--tag", tag)
    (clone / "CHANGELOG.md").write_text("# Changelog\n\n## 9.9.9 - 2030-01-02\n")
    git(clone, "commit", "--all", "--message", "Another version")
    assert refused().startswith(f"assistant/__init__.py says {__version__}, the newest heading of CHANGELOG.md 9.9.9")
    assert not (tmp_path / "dist").exists()

"""Learners' notebooks are run apart: from the grader's secrets, from one another, and within limits."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from refused import refused

from assistant.labs.lab import MIME
from assistant.labs.rerun import rerun

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is on Linux only; elsewhere --run is refused"),
    pytest.mark.usefixtures("sandbox"),
]
# A check's own output, solved where the cell found `good`: what a grade shows is what the cell saw.
TELL = f"""
from IPython.display import display
display({{"{MIME}": {{"lab": "numpy-abi", "solved": bool(good)}}, "text/plain": "x"}}, raw=True)
"""


def learner(folder: Path, name: str, code: str) -> Path:
    """Write a learner's notebook of one cell, in a folder of its own; answer its place."""
    path = folder / name / f"{name}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code + TELL)]), path)
    return path


def graded(folder: Path, *options: str, **variables: str) -> dict[str, dict[str, object]]:
    """Run the command over a class; answer its rows by learner."""
    done = check(folder, *options, **variables)
    assert "Traceback" not in done.stderr, done.stderr
    return {Path(row["notebook"]).stem: row for row in json.loads(done.stdout)}


def check(folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `labs check --run`."""
    command = [sys.executable, "-m", "assistant", "labs", "check", str(folder), "--run", "--json", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})


def snapshot(folder: Path) -> dict[str, bytes]:
    """Read all files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def told_by(conditions: str) -> str:
    """Write a cell that is good where each of these lines is true; one that raises `OSError` counts as refused."""
    return f"""
import os, resource, socket, sys
from pathlib import Path
def refuses(work, *arguments):
    try:
        work(*arguments)
    except OSError:
        return True
checks = {[line.strip() for line in conditions.strip().splitlines()]!r}
failed = [check for check in checks if not eval(check)]
good = not failed
assert good, failed"""


@pytest.mark.parametrize("options", [(), ("--i-trust-these",)], ids=["shut in", "trusted"])
def test_a_notebook_sees_no_secret_and_changes_nothing(options: tuple[str, ...], tmp_path: Path) -> None:
    """The grader's variables and home, classmates and the folder itself are out of reach; its own files are there."""
    home, lessons = tmp_path / "home", tmp_path / "class"
    home.mkdir()
    cell = told_by(f"""
        not any("SECRET" in value for value in os.environ.values())
        Path.home() != Path({str(home)!r})
        not os.path.exists("../zoe") and not os.path.exists("../../zoe")
        resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
        0 < resource.getrlimit(resource.RLIMIT_AS)[1] < 1 << 50
        Path("data.txt").read_text() == "mine"
        Path("data.txt").write_text("changed") and Path("more.txt").write_text("x")
    """)
    learner(lessons, "ann", cell)
    (lessons / "ann" / "data.txt").write_text("mine")
    learner(lessons, "zoe", "good = True")
    before = snapshot(lessons)
    rows = graded(lessons, *options, HOME=str(home), GRADER_TOKEN="SECRET")  # noqa: S106 - a made-up one
    assert {name: row.get("solved") for name, row in rows.items()} == {"ann": True, "zoe": True}
    assert snapshot(lessons) == before


def test_shut_in_it_sees_no_path_of_the_grader_and_no_network(tmp_path: Path) -> None:
    """By its full name neither the class nor the home is there; what may be read cannot be written; nobody answers."""
    lessons, home = tmp_path / "class", tmp_path / "home"
    home.mkdir()
    (home / "secret").write_text("SECRET")
    with socket.create_server(("127.0.0.1", 0)) as server:
        cell = told_by(f"""
            not os.path.exists({str(lessons)!r}) and not os.path.exists({str(home)!r})
            not os.path.exists("/etc/shadow") and not os.path.exists({str(Path.home() / ".bashrc")!r})
            refuses(socket.create_connection, ("127.0.0.1", {server.getsockname()[1]}), 2)
            all(refuses(Path(place, "planted").touch) for place in (sys.prefix, sys.base_prefix, "/usr", "/", "/dev"))
            refuses(os.kill, {os.getpid()}, 0)
        """)
        learner(lessons, "ann", cell)
        learner(lessons, "bob", "good = False")
        done = check(lessons, HOME=str(home))
        rows = {Path(row["notebook"]).stem: row for row in json.loads(done.stdout)}
    assert "--network" in done.stderr
    assert rows["ann"].get("solved") is True


def test_a_check_that_comes_late_is_graded(tmp_path: Path) -> None:
    """On a machine under load a cell's outputs come seconds after its end; none is left out."""
    late = """
import sys, time
sys.stdout.flush_timeout = sys.stderr.flush_timeout = 0.1
get_ipython().kernel.iopub_thread.schedule(lambda: time.sleep(9))
good = True"""
    learner(tmp_path, "ann", late)
    assert graded(tmp_path)["ann"].get("solved") is True


def test_learners_in_one_folder_are_kept_apart(tmp_path: Path) -> None:
    """Of notebooks side by side each is run alone; the files beside them are there for all."""
    code = (
        "import os; good = sorted(name for name in os.listdir() if not name.startswith('.')) == ['{}.ipynb', 'd.csv']"
    )
    for name in ("ann", "bob"):
        learner(tmp_path, name, code.format(name)).rename(tmp_path / f"{name}.ipynb")
        (tmp_path / name).rmdir()
    (tmp_path / "d.csv").write_text("1")
    assert [row["solved"] for row in graded(tmp_path).values()] == [True, True]


ENDLESS = "while True: pass"
FORKS = "import os, time\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        time.sleep(1)"
GREEDY = "good = False\ntry:\n    held = bytearray(1 << 50)\nexcept MemoryError:\n    good = True"
GREEDY_TOGETHER = """import os, time
for _ in range(12):
    if not os.fork():
        held = bytearray(400 << 20)
        held[::4096] = bytes([1]) * len(held[::4096])
        time.sleep(60)
time.sleep(60)"""
BOMBS = {
    "endless": (ENDLESS, "longer than"),
    "forks": (FORKS, "processes"),
    "greedy": (GREEDY, ""),
    "greedy together": (GREEDY_TOGETHER, "of memory"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_limits_end_it_and_the_next_is_graded(name: str, tmp_path: Path) -> None:
    """What is endless, multiplies or wants all memory is told in its own row, leaves nothing, and costs nobody else."""
    code, fault = BOMBS[name]
    learner(tmp_path, "ann", f"mark = {str(tmp_path)!r}\n{code}")
    learner(tmp_path, "bob", "good = True")
    began = time.monotonic()
    ann, bob = rerun(tmp_path, seconds=20.0, memory=1 << 40 if name == "forks" else 3 << 30)
    assert time.monotonic() - began < 60
    assert fault in ann.fault
    assert bool(ann.fault) == bool(fault)
    assert bob.solved
    time.sleep(0.5)
    left = [one for one in psutil.process_iter() if "assistant.labs.runner" in " ".join(_words(one))]
    assert left == []


def _words(one: psutil.Process) -> list[str]:
    try:
        return one.cmdline()
    except psutil.Error:
        return []


def test_a_planted_result_is_not_read(tmp_path: Path) -> None:
    """A link in the result's place leads nowhere; a notebook that is a link or a pipe is not run."""
    secret = learner(tmp_path / "other", "secret", "good = True")
    learner(tmp_path / "class", "ann", f"import os; os.symlink({str(secret)!r}, '.done.ipynb'); good = True")
    (tmp_path / "class" / "link.ipynb").symlink_to(secret)
    os.mkfifo(tmp_path / "class" / "pipe.ipynb")
    rows = rerun(tmp_path / "class", seconds=60.0)
    assert [bool(row.fault) for row in rows] == [True, True, True]


def test_without_a_sandbox_it_is_refused(tmp_path: Path) -> None:
    """Where bubblewrap is not there, nothing is run unless the grader says that all are to be trusted."""
    learner(tmp_path, "ann", f"open({str(tmp_path / 'ran')!r}, 'w'); good = True")
    bare = {"PATH": str(tmp_path)}
    refused(check(tmp_path, **bare), 2, "nothing here can isolate them", "--i-trust-these")
    assert not (tmp_path / "ran").exists()
    assert graded(tmp_path, "--i-trust-these", **bare)["ann"]["solved"]
    assert shutil.which("bwrap")

"""A setup goes on after its process was killed in the midst of an installation, at the first press."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from session.test_installing import Make, make, make_standing, run

from assistant.model.record import to_json
from assistant.model.report import Step
from assistant.session.actions import Resume
from assistant.session.state import Phase, Task

__all__ = ["make"]
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal"),
    pytest.mark.full,
]

# Goes on with a setup, and is killed while the new packages are checked, before anything is committed.
KILLED = """
import os, signal, sys
from pathlib import Path
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.install import Sources, Tools
from assistant.model.report import Progress
from assistant.model.record import from_json
from assistant.session.state import State, Task
from assistant.session.session import perform_task

def kill(event):
    if isinstance(event, Progress) and event.unit == "checks":
        os.kill(os.getpid(), signal.SIGKILL)

state, host = from_json(Path(sys.argv[1]).read_bytes(), State, "state"), LiveHost()
perform_task(Task.INSTALL, state, Tools(host, Sources(host), kill, CancelToken()))
"""


@pytest.mark.parametrize("kind", ["new", "empty folder", "standing"])
@pytest.mark.parametrize("again", [(Task.INSTALL,), (Task.PREPARE, Task.INSTALL)], ids=["install", "prepare"])
def test_what_was_half_made_is_taken_back_before_it_is_looked_at(
    make: Make, kind: str, again: tuple[Task, ...], tmp_path: Path
) -> None:
    """The folder that a kill left is not taken for an environment that stands."""
    session = make()
    if kind == "standing":
        session.state = make_standing(make)
    elif kind == "empty folder":
        Path(session.state.choices.target).mkdir(parents=True)
    run(session, Task.PREPARE)
    saved = tmp_path / "state.json"
    saved.write_text(to_json(session.state), encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", KILLED, saved], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
    resumed = make()
    resumed.dispatch(Resume(state=session.state))
    for task in again:
        resumed.begin(task)
        status = resumed.state.status(Step.INSTALL)
        assert status.phase is not Phase.FAILED, (task, str(status.message))
    assert resumed.state.environment, resumed.state.status(Step.INSTALL)
    assert resumed.state.report.usable, resumed.state.report

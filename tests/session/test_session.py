"""The controller and its runners: real threads, a recorded machine."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from pathlib import Path

import pytest
from runners import InlineRunner, NoHost, wait_for

from assistant.host.base import Answer, ReplayHost
from assistant.install import Sources, Tools
from assistant.machines import load
from assistant.model.machine import Detection, Machine
from assistant.model.plan import Backend
from assistant.model.report import LogLine, Step
from assistant.session.session import TASKS, Runner, Session, ThreadRunner
from assistant.session.state import Detected, Phase, State, Task
from assistant.session.store import Store

MACHINE = "linux-arch-rx6700xt-directml"


def test_a_setup_that_cannot_be_saved_is_told(tmp_path: Path) -> None:
    """The work goes on, and the user hears once that the setup will not be there after a restart, and why."""
    (tmp_path / "taken").write_text("a file where the folder would be")
    host = ReplayHost(load(MACHINE))
    session = Session(host, InlineRunner(), Store(tmp_path / "taken"), sources=Sources(host, offline=True))
    for task in (Task.DETECT, Task.PLAN, Task.PLAN):
        session.begin(task)
    assert session.state.plan is not None
    told = [str(finding.text) for finding in session.state.findings if finding.key == "setup-not-saved"]
    assert len(told) == 1
    assert str(tmp_path / "taken") in told[0]


@pytest.mark.parametrize("runner", [InlineRunner(), ThreadRunner()], ids=["inline", "thread"])
def test_detection_and_plan_run_to_their_results(runner: Runner, tmp_path: Path) -> None:
    """Both runners lead to the same plan, and the state is saved after each task."""
    host = ReplayHost(load(MACHINE))
    session = Session(host, runner, Store(tmp_path), sources=Sources(host, offline=True))
    for task in (Task.DETECT, Task.PLAN):
        session.begin(task)
        wait_for(lambda: session.state.running is None)
    assert session.state.plan is not None
    assert session.state.plan.backend is Backend.ROCM
    # The task is over before its state is saved.
    wait_for(lambda: (saved := Store(tmp_path).load()) and saved.planning == session.state.planning)


def test_a_task_that_cannot_be_done_becomes_a_sentence() -> None:
    """A machine that no wheel fits fails the plan step with exit code 3, and raises nothing."""
    session = Session(NoHost(), InlineRunner(), state=State(machine="linux-alpine-musl"))
    session.begin(Task.DETECT)
    session.begin(Task.PLAN)
    status = session.state.status(Step.PLAN)
    assert (status.phase, status.exit_code) == (Phase.FAILED, 3)
    assert status.message
    assert status.hint


def test_an_unknown_machine_becomes_a_sentence() -> None:
    """A recording that is not there is named."""
    session = Session(NoHost(), InlineRunner(), state=State(machine="nowhere"))
    session.begin(Task.DETECT)
    assert "nowhere" in str(session.state.status(Step.DETECT).message)


class Deaf(ReplayHost):
    """A recorded machine that answers nothing until it may."""

    def __init__(self) -> None:
        super().__init__(load(MACHINE))
        self.may = threading.Event()

    def ask(self, kind: str, *arguments: str) -> Answer:
        """Wait, then answer."""
        self.may.wait(30)
        return super().ask(kind, *arguments)


def test_a_task_knows_what_its_caller_knew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work sees the caller's context variables; without them ipykernel 7.0 sends nothing to the browser."""
    answered: ContextVar[str] = ContextVar("answered")
    answered.set("the message")
    seen: list[str] = []

    def look(_state: State, _tools: Tools) -> Detected:
        seen.append(answered.get())
        return Detected(detection=Detection(machine=Machine()))

    monkeypatch.setitem(TASKS, Task.DETECT, look)
    session = Session(NoHost(), ThreadRunner())
    session.begin(Task.DETECT)
    wait_for(lambda: session.state.running is None)
    assert seen == ["the message"]


def test_a_look_that_hangs_is_cancelled_at_once_and_its_answer_is_not_heard() -> None:
    """A cancel does not wait for a machine that does not answer, and what that says later changes nothing."""
    host = Deaf()
    session = Session(host, ThreadRunner(), sources=Sources(host, offline=True))
    session.begin(Task.DETECT)
    assert session.state.running is Task.DETECT
    session.cancel()
    state = session.state
    assert state.running is None
    assert state.status(Step.DETECT).exit_code == 130
    host.may.set()
    wait_for(lambda: "assistant-job" not in {thread.name for thread in threading.enumerate()})
    assert session.state is state
    session.begin(Task.DETECT)
    wait_for(lambda: session.state.running is None)
    assert session.state.detection is not None


def test_colours_do_not_reach_the_log(tmp_path: Path) -> None:
    """A child that was made to believe in a terminal leaves plain words, in the state and in the file."""
    store = Store(tmp_path)
    coloured = LogLine(step=Step.INSTALL, text="\x1b[32m+\x1b[39m torch")
    assert store.log_event(coloured) == LogLine(step=Step.INSTALL, text="+ torch")
    assert store.log.read_text(encoding="utf-8") == "+ torch\n"
    assert Session(NoHost(), InlineRunner(), store).state.log_file == str(store.log)

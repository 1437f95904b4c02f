"""A guided setup goes on by itself as far as it only reads, and anew where an answer changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from runners import InlineRunner
from tables import each

from assistant.host.base import ReplayHost
from assistant.install import Sources, Tools
from assistant.machines import load
from assistant.model.machine import Detection, Machine
from assistant.model.plan import Backend, Plan, Planning, Request
from assistant.model.record import replace
from assistant.model.report import Environment, Report, Step
from assistant.session.actions import Choose, Failed, Finished, Simulate, next_automatic_task, reduce
from assistant.session.planning import plan_setup
from assistant.session.session import TASKS, Session
from assistant.session.state import Detected, Installed, Phase, Planned, State, StepStatus, Task, Verified
from assistant.session.store import Store

MACHINE = "linux-arch-rx6700xt-directml"
PLAN = Plan(backend=Backend.CPU, variant="cpu", torch="2.13.0", python="3.12")
FOUND = Detected(detection=Detection(machine=Machine(os="linux")))
PLANNED = Planned(planning=Planning(choice=PLAN, plans=(PLAN,)))
MADE = Installed(environment=Environment(path="/env", python="/env/bin/python"))


def ended(state: State, task: Task, result: object) -> State:
    """Give the state after a task that ended well."""
    return reduce(replace(state, running=task), Finished(task=task, result=result))


def test_looking_choosing_and_resolving_follow_one_another() -> None:
    """What only reads needs no press; the installation does, and its proof follows it."""
    state = State()
    assert next_automatic_task(state) is Task.DETECT
    state = ended(state, Task.DETECT, FOUND)
    assert next_automatic_task(state) is Task.PLAN
    state = ended(state, Task.PLAN, PLANNED)
    assert next_automatic_task(state) is Task.PREPARE
    assert next_automatic_task(replace(state, running=Task.PREPARE)) is None
    state = ended(state, Task.INSTALL, MADE)
    assert next_automatic_task(state) is Task.VERIFY


def test_a_second_installation_is_proved_like_the_first() -> None:
    """After looking again, what was proved before is stale: the new installation leads to a proof of its own."""
    first = ended(ended(ended(State(), Task.DETECT, FOUND), Task.PLAN, PLANNED), Task.INSTALL, MADE)
    verified = ended(first, Task.VERIFY, Verified(report=Report(device="cpu")))
    again = ended(ended(verified, Task.DETECT, FOUND), Task.PLAN, PLANNED)
    assert again.status(Step.VERIFY).phase is Phase.STALE
    assert next_automatic_task(ended(again, Task.INSTALL, MADE)) is Task.VERIFY


@each("step", [Step.DETECT, Step.PLAN, Step.INSTALL, Step.VERIFY])
def test_nothing_goes_on_after_a_failure(step: Step) -> None:
    """It would fail again and again: the user decides."""
    state = ended(ended(ended(State(), Task.DETECT, FOUND), Task.PLAN, PLANNED), Task.INSTALL, MADE)
    assert next_automatic_task(reduce(state, Failed(step=step, message="No."))) is None


def test_a_verification_that_was_asked_for_again_is_not_begun_by_itself() -> None:
    """To measure everything takes a minute and is somebody's decision."""
    state = ended(ended(ended(State(), Task.DETECT, FOUND), Task.PLAN, PLANNED), Task.INSTALL, MADE)
    stale = {**state.statuses, Step.VERIFY: StepStatus(phase=Phase.STALE)}
    assert next_automatic_task(replace(state, statuses=stale)) is None


def test_a_simulation_is_planned_for_and_nothing_more() -> None:
    """No package is resolved for a machine that is not there."""
    state = ended(ended(State(machine=MACHINE), Task.DETECT, FOUND), Task.PLAN, PLANNED)
    assert next_automatic_task(state) is None


def test_what_goes_on_by_itself_does_not_replace_an_installed_setup(tmp_path: Path) -> None:
    """Whoever only opens the page, and installs nothing, finds the finished setup again the next time."""
    store, host = Store(tmp_path), ReplayHost(load("macos15-m3max"))
    finished = ended(ended(State(), Task.DETECT, FOUND), Task.INSTALL, MADE)
    store.save(finished)
    session = Session(host, InlineRunner(), store, sources=Sources(host, offline=True), guided=True)
    session.begin(Task.DETECT)
    assert session.state.plan
    assert store.environment() == MADE.environment
    session.drop()
    session.begin(Task.PLAN)
    assert store.load().plan == session.state.plan


def test_one_look_leads_to_a_plan() -> None:
    """A guided session that is begun ends with its plan, and one that is not stops after the task."""
    host = ReplayHost(load(MACHINE))
    for guided in (True, False):
        session = Session(host, InlineRunner(), sources=Sources(host, offline=True), guided=guided)
        session.dispatch(Simulate(machine=MACHINE))
        if not guided:
            session.begin(Task.DETECT)
        assert (session.state.plan is not None) is guided
        assert session.state.detection is not None


class Held:
    """Runs work on threads that wait until they are let go."""

    def __init__(self) -> None:
        self.works: list[Callable[[], object]] = []

    def start(self, work: Callable[[], object]) -> None:
        """Keep the work for later."""
        self.works.append(work)

    def let_go(self, number: int) -> None:
        """Do some work on a thread of its own, to its end."""
        thread = threading.Thread(target=self.works[number])
        thread.start()
        thread.join()


def test_a_wish_gives_up_what_only_reads_and_counts_at_once() -> None:
    """What the task given up still reports is heard by nobody; the setup is looked through anew."""
    host, runner = ReplayHost(load(MACHINE)), Held()
    session = Session(host, runner, sources=Sources(host, offline=True), guided=True)
    session.begin(Task.DETECT)
    runner.let_go(0)
    assert session.state.running is Task.PLAN
    session.dispatch(Choose(request=Request(backend=Backend.CPU)))
    assert session.state.running is Task.PLAN
    assert session.state.choices.request.backend is Backend.CPU
    runner.let_go(1)
    assert session.state.planning is None
    runner.let_go(2)
    assert session.state.plan is not None
    assert session.state.plan.backend is Backend.CPU


class Late:
    """A lock that somebody else gets a moment before whoever asks for it next."""

    def __init__(self, lock: AbstractContextManager[object], other: Callable[[], None]) -> None:
        self._lock, self._others = lock, [other]

    def __enter__(self) -> None:
        while self._others:
            self._others.pop()()
        self._lock.__enter__()

    def __exit__(self, *error: object) -> None:
        self._lock.__exit__(*error)


def test_an_answer_that_comes_with_the_wish_is_no_answer_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that ends in the moment in which it is given up tells nothing of the one that took its place."""
    host, runner = ReplayHost(load(MACHINE)), Held()
    session = Session(host, runner, sources=Sources(host, offline=True), guided=True)
    session.begin(Task.DETECT)
    runner.let_go(0)
    wish = Choose(request=Request(backend=Backend.CPU))

    def plan_while_somebody_wishes(state: State, tools: Tools) -> Planned:
        found = plan_setup(state, tools)
        session._lock = Late(session._lock, lambda: session.dispatch(wish))
        return found

    monkeypatch.setitem(TASKS, Task.PLAN, plan_while_somebody_wishes)
    runner.let_go(1)
    assert session.state.running is Task.PLAN
    assert session.state.planning is None


def test_a_wish_waits_for_nothing_that_writes() -> None:
    """While something is installed an answer changes nothing."""
    state = replace(ended(State(), Task.DETECT, FOUND), running=Task.INSTALL)
    session = Session(ReplayHost(load(MACHINE)), Held(), state=state, guided=True)
    session.dispatch(Choose(request=Request(backend=Backend.CPU)))
    assert session.state.choices.request.backend is None
    assert session.state.running is Task.INSTALL

"""Users of an environment that another looks after begin at what is wrong; who looks after it, as anybody does."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.install.kernel import kernels_for_everybody, register_kernel
from assistant.install.target import write_marker
from assistant.model.event import Step
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Detection, Machine
from assistant.model.plan import Backend, Plan, Planning
from assistant.model.record import replace
from assistant.model.report import Environment
from assistant.session.actions import Aim, Finished, Show
from assistant.session.reducer import following, reduce
from assistant.session.remediation import ways
from assistant.session.shared import beginning, is_others
from assistant.session.state import Detected, Page, Phase, State, StepStatus, Task
from assistant.session.store import Store
from assistant.session.survey import Known
from assistant.session.wanted import mendable
from assistant.wizard.panels.rows import row_of

PLAN = Plan(backend=Backend.CPU, variant="cpu", torch="2.13.0", python="3.12")
FOUND = Detected(detection=Detection(machine=Machine(os="linux")))


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """Give an environment for all users, whose kernel this user's Jupyter finds."""
    for name in ("JUPYTER_DATA_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "prefix" / "share" / "jupyter"))
    folder = tmp_path / "opt" / "pytorch"
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("")
    kernels = str(tmp_path / "prefix" / "share" / "jupyter" / "kernels")
    one = Environment(path=str(folder), python=str(python), kernel="torch-cpu-2.13.0", kernels=kernels)
    write_marker(folder, PLAN, one)
    register_kernel(PLAN, one)
    return one


@pytest.fixture
def others(made: Environment, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """Let this user be one who may not change it; root may write anywhere."""
    monkeypatch.setattr("assistant.session.shared.may_write", lambda folder: str(folder) != made.path)
    return made


def test_who_may_not_change_it_begins_at_what_is_wrong(others: Environment) -> None:
    """With that environment at hand; what was planned for it is known."""
    state = beginning()
    assert (state.page, state.environment, state.plan) == (Page.WRONG, others, PLAN)


def test_who_looks_after_it_begins_as_anybody_does(made: Environment) -> None:
    """The setup is offered."""
    assert not is_others(made.path)
    assert beginning() == State()


def test_who_has_a_setup_begins_with_that(others: Environment) -> None:
    """It is offered to go on with it."""
    Store().save(State(environment=replace(others, path="/mine")))
    assert beginning() == State()


def test_nothing_is_planned_until_somebody_wants_a_setup(others: Environment) -> None:
    """The machine is looked at; the plan waits for the page of the setup."""
    assert is_others(others.path)
    state = beginning()
    assert following(state) is Task.DETECT
    state = reduce(replace(state, running=Task.DETECT), Finished(task=Task.DETECT, result=FOUND))
    assert following(state) is None
    assert following(reduce(state, Show(page=Page.SETUP))) is Task.PLAN


def test_no_fix_is_offered_that_would_change_it(made: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands can still be read."""
    remedy = Remedy(text="Install it", commands=("python -m pip install numpy",))
    finding = Finding(key="torch-missing", severity=Severity.ERROR, text="It is missing.", remedies=(remedy,))
    state = State(environment=made, findings=(finding,))
    assert list(ways(state)) == ["torch-missing#1"]
    monkeypatch.setattr("assistant.session.shared.may_write", lambda _folder: False)
    assert ways(state) == {}


def test_a_row_of_others_offers_nothing_that_changes_it() -> None:
    """It can be checked, and a notebook opened."""
    wrong = Finding(key="requirements-unmet", severity=Severity.ERROR, text="x")
    known = Known(path="/opt/pytorch", name="pytorch", torch="2.13.0", made=True, findings=(wrong,), kernels=("k",))
    assert {key for key, _label in row_of(known)["buttons"]} >= {"remove"}
    shared = replace(known, others=True)
    assert not mendable(shared)
    assert [key for key, _label in row_of(shared)["buttons"]] == ["check", "open"]
    assert row_of(shared)["keeper"] == "another user looks after it"


def test_an_aim_for_all_users_is_kept_when_the_folder_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the plan's packages are resolved anew."""
    state = State(planning=Planning(choice=PLAN, plans=(PLAN,)), statuses={Step.PLAN: StepStatus(phase=Phase.DONE)})
    state = reduce(state, Aim(target="/opt/pytorch", kernels="/usr/local/share/jupyter/kernels"))
    state = reduce(state, Aim(target="/opt/torch"))
    assert (state.target, state.kernels) == ("/opt/torch", "/usr/local/share/jupyter/kernels")
    monkeypatch.setattr("assistant.install.kernel.may_write", lambda _folder: False)
    assert kernels_for_everybody() == ""

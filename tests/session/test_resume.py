"""Going on with a saved setup, or saying why not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tables import each

from assistant import __version__
from assistant.model.machine import Detection, Gpu, Machine
from assistant.model.plan import Backend, Plan, Planning
from assistant.model.record import replace
from assistant.model.report import Environment, Step
from assistant.session.actions import Resume, reduce
from assistant.session.state import Detected, Installed, Phase, Planned, State, StepStatus, Task
from assistant.session.store import (
    Saved,
    continuation_remarks,
    first_step_not_done,
    is_worth_continuing,
    why_not_continuable,
)

MACHINE = Machine(os="linux", arch="x86_64", python="3.12.4")
PLAN = Plan(backend=Backend.CPU, variant="cpu", torch="2.13.0", python="3.12")
STATE = State(
    statuses={step: StepStatus(phase=Phase.DONE) for step in (Step.DETECT, Step.PLAN)},
    detected=Detected(detection=Detection(machine=MACHINE)),
    planned=Planned(planning=Planning(choice=PLAN, plans=(PLAN,))),
)
SAVED = Saved(version=__version__, state=STATE)


def test_a_setup_of_this_machine_goes_on() -> None:
    """It goes on at the first step that is not done, and there is nothing to say about it."""
    assert is_worth_continuing(STATE)
    assert why_not_continuable(SAVED, MACHINE) == ""
    assert continuation_remarks(SAVED) == ()
    assert first_step_not_done(STATE) is Step.INSTALL
    assert reduce(State(), Resume(state=STATE)) == STATE


def test_free_disk_and_other_small_change_do_not_matter() -> None:
    """Facts that change by the hour do not make another machine."""
    assert why_not_continuable(SAVED, replace(MACHINE, disk_free_gb=1.0)) == ""


@each(
    ("changed", "told"),
    [
        ({"gpus": (Gpu(name="New card"),)}, "New card"),
        ({"nvidia_driver": "580"}, "580"),
        ({"python": "3.13.1"}, "3.12.4 → 3.13.1"),
        ({"arch": "aarch64"}, "aarch64"),
    ],
)
def test_another_machine_is_told_by_what_differs(changed: dict[str, object], told: str) -> None:
    """Another GPU, driver, system or Python is another machine, and the sentence names it."""
    other = replace(MACHINE, **changed)
    assert told in str(why_not_continuable(SAVED, other))


def test_a_card_whose_facts_changed_is_another_machine() -> None:
    """The same name with another memory or target does not pass as the same."""
    cards = [replace(MACHINE, gpus=(Gpu(name="card", vram_gb=size),)) for size in (8, 16)]
    assert why_not_continuable(
        replace(SAVED, state=replace(STATE, detected=Detected(detection=Detection(machine=cards[0])))), cards[1]
    )


def test_a_setup_whose_environment_is_gone_is_not_offered(tmp_path: Path) -> None:
    """What was deleted since cannot be gone on with."""
    gone = Environment(path=str(tmp_path), python=str(tmp_path / "bin" / "python"))
    assert str(tmp_path) in str(
        why_not_continuable(replace(SAVED, state=replace(STATE, installed=Installed(environment=gone))), MACHINE)
    )


def test_another_version_is_told() -> None:
    """One that cannot be read stops, one that can is only remarked on."""
    assert "another version" in str(why_not_continuable(Saved(), MACHINE))
    (told,) = continuation_remarks(replace(SAVED, version="0.0.1"))
    assert "0.0.1" in str(told)


@pytest.mark.process
def test_work_of_another_window_is_waited_for_and_a_crash_is_gone_on_after() -> None:
    """A living process keeps its setup to itself; after its death its unfinished work is spoken of."""
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    saved = replace(SAVED, running=Task.INSTALL, process=other.pid)
    with other:
        assert "Another window" in str(why_not_continuable(saved, MACHINE))
    assert why_not_continuable(saved, MACHINE) == ""
    assert "interrupted" in str(continuation_remarks(saved)[0])


def test_a_look_or_a_simulation_is_nothing_to_go_on_with() -> None:
    """Neither a mere detection nor a recorded machine is offered."""
    assert not is_worth_continuing(None)
    assert not is_worth_continuing(replace(STATE, planned=None))
    assert not is_worth_continuing(replace(STATE, machine="some-machine"))

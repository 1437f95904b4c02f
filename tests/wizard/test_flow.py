"""The footer: what the main button offers and does in each state."""

from __future__ import annotations

import pytest

from assistant.model.event import JobFailed, Step
from assistant.model.machine import Detection, Machine
from assistant.model.plan import Backend, Plan, Planning
from assistant.model.record import replace
from assistant.session.actions import Answer, Asked, Begin, Finished, Show
from assistant.session.reducer import reduce
from assistant.session.state import Detected, Planned, Result, State, Task
from assistant.wizard.footer import footer, press

PLAN = Plan(backend=Backend.CPU, variant="cpu", torch="2.13.0", python="3.12")
FOUND = Detected(detection=Detection(machine=Machine(os="linux")))
PLANNED = Planned(planning=Planning(choice=PLAN, plans=(PLAN,)))


def after(*tasks: tuple[Task, Result], machine: str = "") -> State:
    """Give the state after tasks that ended well."""
    state = State(machine=machine)
    for task, result in tasks:
        state = reduce(reduce(state, Begin(task=task)), Finished(task=task, result=result))
    return state


def test_while_something_runs_only_cancel_is_offered() -> None:
    """The main button waits, and a press on it does nothing."""
    state = reduce(State(), Begin(task=Task.DETECT))
    offered = footer(state)
    assert offered.cancel
    assert offered.why
    assert offered.back is None
    assert press(state) == ()


def test_a_question_of_a_running_task_is_answered_by_the_main_button() -> None:
    """Yes goes on, Cancel takes back; the question is gone with the answer."""
    state = reduce(reduce(State(), Begin(task=Task.DETECT)), Asked(question="Keep it?"))
    assert footer(state).cancel
    assert press(state) == (Answer(yes=True),)
    assert str(reduce(state, Answer(yes=True)).question) == ""


def test_after_detection_a_press_makes_the_plan() -> None:
    """Planning needs no agreement, so it starts at once."""
    assert press(after((Task.DETECT, FOUND))) == (Begin(task=Task.PLAN),)


def test_after_the_plan_a_press_works_out_the_packages() -> None:
    """The installation is prepared, not begun."""
    assert press(after((Task.DETECT, FOUND), (Task.PLAN, PLANNED))) == (Begin(task=Task.PREPARE),)


def test_a_step_that_is_done_is_only_shown_again() -> None:
    """Going forward over finished steps repeats nothing."""
    state = reduce(after((Task.DETECT, FOUND), (Task.PLAN, PLANNED)), Show(step=Step.DETECT))
    assert press(state) == (Show(step=Step.PLAN),)


def test_a_failed_step_can_be_tried_again() -> None:
    """The button says so, and does it."""
    state = reduce(after((Task.DETECT, FOUND)), Begin(task=Task.PLAN))
    state = reduce(state, JobFailed(step=Step.PLAN, message="No."))
    assert footer(state).label == "Try again"
    assert press(state) == (Begin(task=Task.PLAN),)


def test_a_simulation_stops_before_the_installation() -> None:
    """The reason stands beside the button."""
    state = after((Task.DETECT, FOUND), (Task.PLAN, PLANNED), machine="some")
    assert press(state) == ()
    assert "simulation" in " ".join(map(str, footer(state).why))


@pytest.mark.parametrize("step", list(Step)[1:])
def test_there_is_always_a_way_back(step: Step) -> None:
    """Every step but the first leads back to the nearest one before it that has been opened."""
    assert footer(State(current=step)).back is Step.DETECT
    planned = replace(after((Task.DETECT, FOUND), (Task.PLAN, PLANNED)), current=step)
    earlier = [before for before in (Step.DETECT, Step.PLAN, Step.INSTALL, Step.DIAGNOSE) if before is not step]
    steps = list(Step)
    assert footer(planned).back is [before for before in earlier if steps.index(before) < steps.index(step)][-1]

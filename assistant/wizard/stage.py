"""How far the setup is: which of five views its page shows, read off the state."""

from __future__ import annotations

from enum import Enum

from assistant.model.errors import Cancelled
from assistant.model.event import Step
from assistant.session.state import Phase, State, Task


class Stage(Enum):
    """The five views of the setup's page."""

    LOOKING = "looking"
    READY = "ready"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"


def find_stage(state: State) -> Stage:
    """Return which view the setup's page shows; a plan whose packages could not be resolved still counts as ready."""
    if state.running in {Task.INSTALL, Task.VERIFY}:
        return Stage.WORKING
    if failed_step(state) and not is_unresolved(state):
        return Stage.FAILED
    if state.status(Step.INSTALL).phase is Phase.DONE and state.report:
        return Stage.DONE
    return Stage.LOOKING if state.plan is None or state.detection is None else Stage.READY


def failed_step(state: State) -> Step | None:
    """Return the first that failed of detecting, planning, installing and verifying; None if none of them did."""
    steps = (Step.DETECT, Step.PLAN, Step.INSTALL, Step.VERIFY)
    return next((step for step in steps if state.status(step).phase is Phase.FAILED), None)


def has_no_plan(state: State) -> bool:
    """Return whether planning failed, so that no setup is possible unless something else is chosen."""
    return failed_step(state) is Step.PLAN


def is_unresolved(state: State) -> bool:
    """Return whether the packages of the plan could not be worked out, before anybody asked to install them."""
    return failed_step(state) is Step.INSTALL and state.preview is None


def is_cancelled(state: State) -> bool:
    """Return whether the step that failed did so because the user stopped it."""
    step = failed_step(state)
    return step is not None and state.status(step).exit_code == Cancelled.exit_code


def task_to_repeat(state: State) -> Task:
    """Return the task of the step that failed: resolving, if installing could not begin; detecting, if none failed."""
    return Task.PREPARE if is_unresolved(state) else Task((failed_step(state) or Step.DETECT).value)

"""How a setup's state changes with tasks about existing environments, which are not steps of the setup."""

from __future__ import annotations

from collections.abc import Iterable

from assistant.i18n import Message, _
from assistant.model.event import Event, JobFailed, LogLine, Progress, Step
from assistant.model.record import replace
from assistant.session.actions import Finished, LookIn, Pick
from assistant.session.state import Exported, Page, Phase, State, StepStatus, Surveyed, Task
from assistant.session.survey import Survey


def blockers(state: State, task: Task) -> tuple[Message, ...]:
    """List what a task lacks: the environment that it is about, or the change that was shown."""
    here = state.environments
    lacks = {Task.SURVEY: False, Task.REPAIR: here.repair is None}.get(task, not here.picked)
    return (_("No environment was chosen."),) if lacks else ()


def begun(state: State, task: Task) -> State:
    """Begin a task; only the one that looks for environments may go on behind another page."""
    page = state.page if task is Task.SURVEY else Page.ENVIRONMENTS
    log = () if task in {Task.REPAIR, Task.UNDO} else state.log
    begun = replace(state, running=task, stopping=False, page=page, log=log)
    return begun.with_environments(status=StepStatus(phase=Phase.RUNNING))


def told(state: State, events: Iterable[Event], most: int) -> State:
    """Keep how far a task is, and the lines of one that changes something."""
    for event in events:
        if isinstance(event, Progress):
            state = state.with_environments(status=replace(state.environments.status, progress=event))
        elif isinstance(event, LogLine) and state.running in {Task.REPAIR, Task.UNDO}:
            state = replace(state, log=(*state.log, event.text)[-most:])
    return state


def finished(state: State, end: Finished, result: Surveyed) -> State:
    """Keep what is known now; what is wrong with the setup's own environment is judged anew where it was changed."""
    status = StepStatus(phase=Phase.DONE, seconds=end.seconds)
    # The real setup is laid aside while a recorded machine is looked at; what was changed here may be its environment.
    picked = state.environments.picked
    aside = finished(state.aside.with_environments(picked=picked), end, result) if state.aside else None
    new = replace(state, aside=aside)
    new = new.with_environments(survey=result.survey, repair=result.repair, status=status)
    known = result.survey.of(picked)
    own = state.environment is not None and state.environment.path == picked
    if end.task in {Task.REPAIR, Task.UNDO} and own and known and state.detection and state.installed:
        installed = replace(state.installed, proof=None)
        again = {**state.statuses, Step.VERIFY: StepStatus(phase=Phase.READY)}
        findings = (*state.detection.findings, *known.findings)
        proved = {"installed": installed, "verified": None, "statuses": again}
        return replace(new, findings=findings, raised=known.findings, **proved)
    if end.task is Task.REMOVE and own:
        kept = {step: state.statuses[step] for step in (Step.DETECT, Step.PLAN) if step in state.statuses}
        return replace(new, installed=None, verified=None, preview=None, exported=Exported(), statuses=kept)
    return new


def failed(state: State, failure: JobFailed) -> State:
    """Keep why a task failed, and what was known before."""
    status = StepStatus(phase=Phase.FAILED, message=failure.message, hint=failure.hint, exit_code=failure.exit_code)
    return replace(state, running=None, stopping=False, question="").with_environments(status=status)


def pick_other(state: State, pick: Pick) -> State:
    """Choose another environment: what was offered for the last one is no longer meant."""
    return state.with_environments(picked=pick.path, repair=None, status=StepStatus())


def looked_in(state: State, wish: LookIn) -> State:
    """Have one more folder searched."""
    before = state.environments.survey or Survey()
    folders = tuple(dict.fromkeys((*before.folders, wish.folder)))
    return state.with_environments(survey=replace(before, folders=folders)) if wish.folder else state

"""The state of a guided setup and the actions that change it: pure values, no effects."""

from __future__ import annotations

from enum import Enum
from typing import Literal

from assistant.i18n import _
from assistant.install.resolution import Resolution
from assistant.model.event import Event, FindingRaised, JobFailed, LogLine, Progress, Step
from assistant.model.finding import Diagnosis, Finding
from assistant.model.machine import Detection
from assistant.model.plan import Plan, Planning, Request
from assistant.model.record import Record, replace
from assistant.model.report import Environment, Report, Status

__all__ = [
    "Action",
    "Aim",
    "Begin",
    "Choose",
    "Finished",
    "Paste",
    "Phase",
    "Preview",
    "Resume",
    "SetFact",
    "Show",
    "Simulate",
    "State",
    "StepStatus",
    "Task",
    "Told",
    "Wish",
    "blockers",
    "failures",
    "reduce",
]

LOG_LINES = 200


class Phase(Enum):
    """Where a step stands; a stale result is kept but must be confirmed again, because an earlier answer changed."""

    LOCKED = "locked"
    READY = "ready"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STALE = "stale"


class Task(Enum):
    """The jobs of a setup; `prepare` belongs to the install step and only reads."""

    DETECT = "detect"
    PLAN = "plan"
    PREPARE = "prepare"
    INSTALL = "install"
    VERIFY = "verify"
    DIAGNOSE = "diagnose"
    EXPORT = "export"

    @property
    def step(self) -> Step:
        """Name the step that shows this task."""
        return Step.INSTALL if self is Task.PREPARE else Step(self.value)


class StepStatus(Record, frozen=True):
    """One step's phase, its latest progress, and one sentence with a next step when it failed."""

    phase: Phase = Phase.LOCKED
    progress: Progress | None = None
    message: str = ""
    hint: str = ""
    exit_code: int = 0
    seconds: float = 0.0


class Preview(Record, frozen=True):
    """What an installation would do: where, by which commands, how much; `ready` when it is there already."""

    target: str
    commands: tuple[tuple[str, ...], ...]
    resolution: Resolution
    ready: Environment | None = None


class State(Record, frozen=True):
    """Everything that a setup knows; `machine` names a replayed recording ("" is the machine at hand).

    `overrides` are facts that the user set; `target`, `device` and `folder` are the user's own choices, "" where the
    plan decides. `pasted` is a log that the user gave to be diagnosed.
    """

    schema: Literal[1] = 1
    current: Step = Step.DETECT
    statuses: dict[Step, StepStatus] = {}
    running: Task | None = None
    machine: str = ""
    overrides: dict[str, str] = {}
    request: Request = Request()
    target: str = ""
    device: str = ""
    level: Literal["quick", "full"] = "quick"
    folder: str = ""
    formats: tuple[str, ...] = ()
    chosen: int = 0
    detection: Detection | None = None
    planning: Planning | None = None
    preview: Preview | None = None
    environment: Environment | None = None
    report: Report | None = None
    figures: dict[str, str] = {}
    findings: tuple[Finding, ...] = ()
    pasted: str = ""
    diagnoses: tuple[Diagnosis, ...] = ()
    exported: tuple[str, ...] = ()
    log: tuple[str, ...] = ()

    def status(self, step: Step) -> StepStatus:
        """Give a step's status; the first is ready from the start, any other that was never reached is locked."""
        return self.statuses.get(step, StepStatus(phase=Phase.READY if step is Step.DETECT else Phase.LOCKED))

    @property
    def plan(self) -> Plan | None:
        """The plan that the user chose, the first one unless said otherwise."""
        plans = self.planning.plans if self.planning else ()
        return plans[self.chosen] if self.chosen < len(plans) else None


class Begin(Record, frozen=True):
    """Start a task."""

    task: Task


class Told(Record, frozen=True):
    """A running task spoke: its events since the last time."""

    events: tuple[Event, ...]


class Finished(Record, frozen=True):
    """A task ended well; `changes` are the fields of the state that it fills."""

    task: Task
    changes: dict[str, object] = {}
    seconds: float = 0.0


class Show(Record, frozen=True):
    """Look at a step; nothing is lost by going back."""

    step: Step


class Choose(Record, frozen=True):
    """Take another of the plans."""

    index: int


class Wish(Record, frozen=True):
    """Ask for a backend, a Python or pins."""

    request: Request


class Aim(Record, frozen=True):
    """Set where the environment goes ("" for the default folder)."""

    target: str


class SetFact(Record, frozen=True):
    """Set a fact of the machine by hand, such as `nvidia_driver`; "" takes the setting back."""

    fact: str
    value: str


class Paste(Record, frozen=True):
    """Give a log to be diagnosed."""

    log: str


class Simulate(Record, frozen=True):
    """Look at a recorded machine instead of this one ("" for this one)."""

    machine: str


class Resume(Record, frozen=True):
    """Go on from a state that was saved before the kernel restarted."""

    state: State


Action = Begin | Told | Finished | JobFailed | Show | Choose | Wish | Aim | Paste | Resume | SetFact | Simulate

STEPS = tuple(Step)


def blockers(state: State, task: Task) -> tuple[str, ...]:
    """List, as sentences, why a task cannot begin now; empty when it can."""
    reasons = []
    if state.running:
        reasons.append(_("Something is still running; wait for it or cancel it."))
    if task is not Task.DETECT and state.detection is None:
        reasons.append(_("The hardware has not been detected yet."))
    if task in _NEED_PLAN and state.plan is None:
        reasons.append(_("There is no plan for this machine yet."))
    if task in _WRITE and state.machine:
        reasons.append(_("This is a simulation of another machine, so nothing can be installed."))
    if task is Task.INSTALL and state.preview is None:
        reasons.append(_("The packages have not been resolved yet."))
    if task in {Task.VERIFY, Task.EXPORT} and state.environment is None:
        reasons.append(_("There is no installed environment yet."))
    if task is Task.EXPORT and state.report is None:
        reasons.append(_("The environment has not been verified yet."))
    return tuple(reasons)


_WRITE = {Task.PREPARE, Task.INSTALL, Task.VERIFY, Task.EXPORT}
_RAISE = {Task.PREPARE, Task.VERIFY}  # what they raised the last time no longer counts
_NEED_PLAN = {Task.PREPARE, Task.INSTALL, Task.EXPORT}


def reduce(state: State, action: Action) -> State:
    """Answer the state after an action; an action that makes no sense now changes nothing."""
    match action:
        case Begin(task=task):
            return state if blockers(state, task) else _begun(state, task)
        case Told(events=events):
            return _told(state, events)
        case Finished(task=task, changes=changes, seconds=seconds):
            return _finished(state, task, changes, seconds) if state.running is task else state
        case JobFailed():
            return _failed(state, action)
        case Show(step=step):
            return state if state.status(step).phase is Phase.LOCKED else replace(state, current=step)
        case _:
            return state if state.running else _changed(state, action)


def _changed(state: State, answer: Choose | Wish | Aim | Paste | Resume | SetFact | Simulate) -> State:
    """Take an answer of the user; what rested on the old one turns stale."""
    match answer:
        case Paste(log=log):
            return replace(state, pasted=log)
        case Resume(state=saved):
            return saved
        case SetFact() | Simulate():
            return _stale(_other_machine(state, answer), Step.DETECT, itself=True)
        case Wish(request=request):
            return _stale(replace(state, request=request, chosen=0, preview=None), Step.PLAN, itself=True)
        case Aim(target=target):
            return _stale(replace(state, target=target, preview=None), Step.PLAN)
        case Choose(index=index):
            known = state.planning is not None and 0 <= index < len(state.planning.plans)
            return _stale(replace(state, chosen=index, preview=None), Step.PLAN) if known else state


def _other_machine(state: State, answer: SetFact | Simulate) -> State:
    """Look at another machine, or at this one with a fact set by hand."""
    if isinstance(answer, Simulate):
        return replace(state, machine=answer.machine, overrides={}, preview=None, chosen=0)
    kept = {fact: value for fact, value in state.overrides.items() if fact != answer.fact}
    return replace(state, overrides=kept | ({answer.fact: answer.value} if answer.value else {}), preview=None)


def failures(state: State) -> list[str]:
    """Gather what there is to diagnose: the sentences of failed steps, their log, and what failed checks said."""
    told = [status.message for status in state.statuses.values() if status.phase is Phase.FAILED]
    checks = state.report.checks if state.report else ()
    said = [check.detail for check in checks if check.status not in {Status.PASSED, Status.SKIPPED}]
    return [*told, *(state.log if told else ()), *said]


def _begun(state: State, task: Task) -> State:
    new = _with(state, task.step, StepStatus(phase=Phase.RUNNING))
    if task in _RAISE and state.detection:
        new = replace(new, findings=state.detection.findings)
    log = state.log if task is Task.DIAGNOSE else ()  # what the failed task said is what there is to diagnose
    return replace(new, running=task, current=task.step, log=log)


def _told(state: State, events: tuple[Event, ...]) -> State:
    lines = [event.text for event in events if isinstance(event, LogLine)]
    progress = [event for event in events if isinstance(event, Progress)]
    findings = [event.finding for event in events if isinstance(event, FindingRaised)]
    new = state
    if lines:
        new = replace(new, log=(*new.log, *lines)[-LOG_LINES:])
    if findings:
        new = replace(new, findings=(*new.findings, *findings))
    if progress and state.running:
        step = state.running.step
        new = _with(new, step, replace(new.status(step), progress=progress[-1]))
    return new


def _finished(state: State, task: Task, changes: dict[str, object], seconds: float) -> State:
    done = replace(state, running=None, **changes)
    if task is Task.PREPARE:
        return _with(done, Step.INSTALL, StepStatus(phase=Phase.READY, seconds=seconds))
    done = _with(_stale(done, task.step), task.step, StepStatus(phase=Phase.DONE, seconds=seconds))
    following = STEPS[STEPS.index(task.step) + 1 :][:1]
    for step in (*following, Step.DIAGNOSE):  # a log can be pasted at any time
        if done.status(step).phase is Phase.LOCKED:
            done = _with(done, step, StepStatus(phase=Phase.READY))
    return done


def _failed(state: State, failure: JobFailed) -> State:
    status = StepStatus(phase=Phase.FAILED, message=failure.message, hint=failure.hint, exit_code=failure.exit_code)
    return replace(_with(state, failure.step, status), running=None)


def _stale(state: State, changed: Step, *, itself: bool = False) -> State:
    """Mark what rests on a changed step as stale; its results are kept until they are made anew."""
    for step in STEPS[STEPS.index(changed) + (not itself) :]:
        status = state.status(step)
        if status.phase in {Phase.DONE, Phase.FAILED}:
            state = _with(state, step, replace(status, phase=Phase.STALE))
    return state


def _with(state: State, step: Step, status: StepStatus) -> State:
    return replace(state, statuses={**state.statuses, step: status})

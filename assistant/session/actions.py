"""What can happen to a guided setup, and the state after it; when a task can begin, and which goes on by itself.

Each action is a record whose `after` is a pure function; one that makes no sense now changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assistant.i18n import Message, Text, _
from assistant.install import Prepared
from assistant.model.finding import Finding
from assistant.model.plan import Plan, Request
from assistant.model.record import Record, replace
from assistant.model.report import Event, FindingRaised, Level, LogLine, PartDone, Progress, Report, Step
from assistant.session.state import (
    Adding,
    Detected,
    Diagnosed,
    Drawn,
    Exported,
    Extra,
    Installed,
    Mended,
    Page,
    Pasted,
    Phase,
    Planned,
    Result,
    State,
    StepStatus,
    Surveyed,
    Task,
    Verified,
    unique,
)
from assistant.verify import report_findings

LOG_LINES = 200  # that the panels show; the file of `State.log_file` has every line
STEPS = tuple(Step)

_WRITE = {Task.PREPARE, Task.INSTALL, Task.VERIFY, Task.EXPORT, Task.MEND, Task.ADD}
_NEED_PLAN = {Task.PREPARE, Task.INSTALL, Task.EXPORT}
# What these report is about the environment: once one has ended well, it replaces what was wrong with that before.
# Until then, and where it fails, nothing counts as mended.
_RAISE = {Task.PREPARE, Task.INSTALL, Task.VERIFY}
_CHANGE_OTHERS = {Task.REPAIR, Task.UNDO}  # of the tasks about environments those whose output is worth reading


def blockers(state: State, task: Task) -> tuple[Message, ...]:
    """Return each reason why a task cannot begin now, as a sentence for the user; () if it can."""
    here = state.environments
    fact_changed = state.status(Step.DETECT).phase is Phase.STALE
    answer_changed = state.status(Step.PLAN).phase is Phase.STALE and not fact_changed
    of_setup = not task.is_about_environments
    picks = task.is_about_environments and task not in {Task.SURVEY, Task.REPAIR}
    lacks = (
        (state.running is not None, _("Something is still running; wait for it or cancel it.")),
        ((picks and not here.picked) or (task is Task.REPAIR and not here.repair), _("No environment was chosen.")),
        (of_setup and task is not Task.DETECT and not state.detection, _("The hardware has not been detected yet.")),
        (
            task in {Task.PLAN, *_NEED_PLAN} and fact_changed,
            _("A fact has changed, so the hardware has to be looked at again."),
        ),
        (task in _NEED_PLAN and answer_changed, _("An earlier answer has changed, so the plan has to be made again.")),
        (task in _NEED_PLAN and state.plan is None, _("There is no plan for this machine yet.")),
        (
            task in _WRITE and bool(state.machine),
            _("This is a simulation of another machine, so nothing can be installed."),
        ),
        (task is Task.INSTALL and state.preview is None, _("The packages have not been resolved yet.")),
        (
            task in {Task.VERIFY, Task.EXPORT, Task.ADD} and state.environment is None,
            _("There is no installed environment yet."),
        ),
        (task is Task.EXPORT and state.report is None, _("The environment has not been verified yet.")),
        (task is Task.ADD and not (state.adding and state.adding.requirements), _("No packages were named.")),
        (task is Task.ADDON and state.addon not in state.extras, _("There is nothing to work on yet.")),
    )
    return tuple(reason for lacking, reason in lacks if lacking)


def next_automatic_task(state: State) -> Task | None:
    """Return the task that a guided session starts by itself now; None if one runs or failed, or if the user must act.

    It detects, plans and resolves the packages, up to the user's confirmation, and verifies after an installation. Once
    the machine is detected, the page of environments has them listed instead, and a failed cell is diagnosed instead.
    """
    if state.running:
        return None
    for task in (Task.DETECT, Task.PLAN):
        phase = state.status(task.step).phase
        if task is Task.PLAN and state.page is Page.ENVIRONMENTS and phase is not Phase.RUNNING:
            looks = state.environments.survey is None and state.environments.status.phase is not Phase.FAILED
            return Task.SURVEY if looks else _verification_due(state)  # the plan waits until somebody wants to see it
        if task is Task.PLAN and state.page is Page.WRONG and phase is Phase.READY and state.failed_cell:
            return Task.DIAGNOSE if state.status(Step.DIAGNOSE).phase is Phase.READY else None
        if phase is not Phase.DONE:
            return None if phase is Phase.FAILED else task
    prepares = state.preview is None and state.plan and not state.machine
    installed = state.status(Step.INSTALL).phase
    return Task.PREPARE if prepares and installed not in {Phase.DONE, Phase.FAILED} else _verification_due(state)


def _verification_due(state: State) -> Task | None:
    """Return `Task.VERIFY` if an installation is done and its verification was not yet begun; None otherwise."""
    waits = state.status(Step.VERIFY).phase in {Phase.LOCKED, Phase.READY}
    return Task.VERIFY if waits and state.status(Step.INSTALL).phase is Phase.DONE else None


class Action(Record, frozen=True):
    """Something that the user does, or that a task reports."""

    def after(self, state: State) -> State:
        """Return the state after the action."""
        raise NotImplementedError


class Choice(Action, frozen=True):
    """What the user may choose while nothing runs; steps that depend on the old choice turn stale."""


def reduce(state: State, action: Action) -> State:
    """Return the state after an action; unchanged by a `Choice` while a task runs."""
    return state if state.running and isinstance(action, Choice) else action.after(state)


class Begin(Action, frozen=True):
    """Start a task."""

    task: Task

    def after(self, state: State) -> State:
        """Return the state with the task running and its page shown; unchanged if the task is blocked.

        The log is emptied, but not for verifying, diagnosing, adding packages, add-ons and, except repair and undo,
        tasks about environments.
        """
        task = self.task
        if blockers(state, task):
            return state
        new = state.with_status(task, StepStatus(phase=Phase.RUNNING))
        # What the failed task said is what there is to diagnose, and what an installation said is asked for after it.
        keeps = task in {Task.VERIFY, Task.DIAGNOSE, Task.ADD, Task.ADDON} or (
            task.is_about_environments and task not in _CHANGE_OTHERS
        )
        log = state.log if keeps else ()
        return replace(new, running=task, stopping=False, page=task.page or state.page, log=log)


class Reported(Action, frozen=True):
    """A running task has reported something: its events since the last time."""

    events: tuple[Event, ...]

    def after(self, state: State) -> State:
        """Return the state with what the events bring: lines of the log, findings, the progress, an add-on's record.

        The log keeps its last `LOG_LINES` lines. Findings of tasks about environments are left out, and so are their
        lines, except those of a repair and an undo.
        """
        task, new = state.running, state
        of_others = task is not None and task.is_about_environments
        lines = [event.text for event in self.events if isinstance(event, LogLine)]
        progress = [event for event in self.events if isinstance(event, Progress)]
        findings = [event.finding for event in self.events if isinstance(event, FindingRaised)]
        parts = [event.value for event in self.events if isinstance(event, PartDone)]
        if parts and task is Task.ADDON:
            new = new.with_extra(replace(new.extras[new.addon], value=parts[-1]))
        if lines and (not of_others or task in _CHANGE_OTHERS):
            new = replace(new, log=(*new.log, *lines)[-LOG_LINES:])
        if findings and task is None:
            new = replace(new, raised=unique(new.raised, findings))
        elif findings and not of_others:
            new = replace(new, reported=unique(new.reported, findings))
        if progress and task:
            new = new.with_status(task, replace(new.status_of(task), progress=progress[-1]))
        return new


class Asked(Action, frozen=True):
    """A running task needs an answer of the user before it can go on."""

    question: Message

    def after(self, state: State) -> State:
        """Show the question."""
        return replace(state, question=self.question) if state.running else state


class Answer(Action, frozen=True):
    """Answer the question of the running task."""

    yes: bool

    def after(self, state: State) -> State:
        """Take the question away; the session hands the answer to the task."""
        return replace(state, question="")


class Finished(Action, frozen=True):
    """A task ended well with its result; `detected` is what detection had found and is still true, None if unasked."""

    task: Task
    result: Result
    seconds: float = 0.0
    detected: tuple[Finding, ...] | None = None

    def after(self, state: State) -> State:
        """Return the state with the task's result; unchanged if the task is not the running one.

        A task that completes a step unlocks the next one; add-ons, preparing, and adding packages without a change do
        not. What depended on an earlier result is dropped, or its step turns stale.
        """
        task = self.task
        if state.running is not task:
            return state
        idle = _without_running(state)
        if isinstance(self.result, Surveyed):
            return _with_survey(idle, self, self.result)
        if task in {Task.PREPARE, Task.ADD, Task.ADDON}:  # their steps are not done yet, or stay as they are
            phase = Phase.READY if task is Task.PREPARE else Phase.DONE
            done = _keep_result(idle, self.result).with_status(task, StepStatus(phase=phase, seconds=self.seconds))
        else:
            done = _unlock_next(with_result(idle, task, self.result, self.seconds), task)
        added = isinstance(self.result, Adding) and self.result.changed
        if added:
            done = _unlock_next(_mark_stale(done, _steps_after(Step.INSTALL)), task)
        if task in _RAISE or added:
            done = replace(done, raised=state.reported)
        elif task is Task.ADD:  # nothing was changed
            done = replace(done, raised=state.raised)
        return done if self.detected is None else _with_machine_findings(done, self.detected)


class Failed(Action, frozen=True):
    """A task failed; `message` and `hint` are one sentence each, `exit_code` is the command's.

    `unreachable` is the address at which no package index answered, "" for any other failure.
    """

    step: Step
    message: Text
    hint: Text = ""
    exit_code: int = 1
    unreachable: str = ""

    def after(self, state: State) -> State:
        """Return the state with the running task, or `step` if none runs, failed with this message and hint.

        Earlier results stay, but if adding packages failed, what was prepared and reported for that is dropped.
        """
        status = StepStatus(
            phase=Phase.FAILED,
            message=self.message,
            hint=self.hint,
            exit_code=self.exit_code,
            unreachable=self.unreachable,
        )
        if state.running is Task.ADD and state.adding:  # what was worked out does not hold, and nothing was changed
            state = replace(state, adding=replace(state.adding, prepared=None), reported=())
        return _without_running(state).with_status(state.running or self.step, status)


class Abandoned(Action, frozen=True):
    """A task that only reads was given up, because an answer that it rests on has changed."""

    def after(self, state: State) -> State:
        """Return the state without a running task; its step is ready again, or the status of environments locked."""
        if state.running is None:
            return state
        phase = Phase.LOCKED if state.running.is_about_environments else Phase.READY
        return _without_running(state).with_status(state.running, StepStatus(phase=phase))


class Drew(Action, frozen=True):
    """An environment begins to draw a picture, or has drawn one."""

    drawn: Drawn

    def after(self, state: State) -> State:
        """Keep the picture."""
        return replace(state, drawn=self.drawn)


class Stop(Action, frozen=True):
    """Ask the running task to stop."""

    def after(self, state: State) -> State:
        """Set `stopping`, until the task has ended."""
        return replace(state, stopping=True) if state.running and not state.stopping else state


class Show(Action, frozen=True):
    """Look at a page; nothing is lost by going back."""

    page: Page

    def after(self, state: State) -> State:
        """Show the page."""
        return replace(state, page=self.page)


class Paste(Action, frozen=True):
    """Set the log to diagnose; no other task rests on it."""

    log: Pasted | str

    def after(self, state: State) -> State:
        """Keep the log."""
        pasted = Pasted(text=self.log) if isinstance(self.log, str) else self.log
        return replace(state, pasted=pasted, edited=False)


class Edited(Action, frozen=True):
    """The page holds another log now than the one that was set last; it is sent when it is to be diagnosed."""

    def after(self, state: State) -> State:
        """Mark the diagnoses as not about the log on the page."""
        return replace(state, edited=True)


class Choose(Choice, frozen=True):
    """Choose something for a step, in the field that `Choices` has for it; None leaves a choice as it is.

    At least one must be given. A new request also chooses the first plan again.
    """

    overrides: dict[str, str] | None = None
    request: Request | None = None
    plan: int | None = None
    target: str | None = None
    level: Level | None = None
    folder: str | None = None
    formats: tuple[str, ...] | None = None
    purpose: str | None = None

    def after(self, state: State) -> State:
        """Return the state with what was chosen, and dependent steps stale.

        Unchanged, whatever else was chosen, for a plan that does not exist or is chosen already. A changed request
        chooses the first plan again, unless one is chosen with it; a changed target forgets what was found in the old.
        """
        plans = state.planning.plans if state.planning else ()
        if self.plan is not None and (self.plan == state.choices.plan or not 0 <= self.plan < len(plans)):
            return state
        fields = {name: getattr(self, name) for name in _REPEATED}
        changed = {name: value for name, value in fields.items() if value is not None}
        repeated = STEPS[min(STEPS.index(_REPEATED[name]) for name in changed) :]
        new = state.with_choices(**{"plan": 0} | changed if self.request else changed)
        if Step.INSTALL in repeated:
            new = replace(new, preview=None)
        if self.target is not None:  # what was wrong with the former one is forgotten
            new = replace(new, raised=())
        return _mark_stale(new, repeated)


_REPEATED = {  # the first step that each choice makes stale
    "overrides": Step.DETECT,
    "request": Step.PLAN,
    "plan": Step.INSTALL,
    "target": Step.INSTALL,
    "level": Step.VERIFY,
    "folder": Step.EXPORT,
    "formats": Step.EXPORT,
    "purpose": Step.EXPORT,
}


class Mend(Choice, frozen=True):
    """Choose a remedy, by its cause's key and its number as in "oom#1", for `Task.MEND` to apply."""

    way: str

    def after(self, state: State) -> State:
        """Name the remedy."""
        return replace(state, way=self.way)


class Add(Choice, frozen=True):
    """Name packages, as requirements, for `Task.ADD` to add to the environment."""

    requirements: tuple[str, ...]

    def after(self, state: State) -> State:
        """Set the packages to add; a change that was worked out for others is dropped."""
        return replace(state, adding=Adding(requirements=self.requirements))


class Supply(Choice, frozen=True):
    """Give an add-on, by its name, the record that its task works on when `Task.ADDON` is begun."""

    addon: str
    value: Any

    def after(self, state: State) -> State:
        """Keep the record."""
        return replace(state, addon=self.addon).with_extra(Extra(value=self.value))


class Pick(Choice, frozen=True):
    """Choose the environment, by its path, that the tasks about environments are about."""

    path: str

    def after(self, state: State) -> State:
        """Choose the environment; a repair that was offered for the last one is dropped."""
        return state.with_environments(picked=self.path, repair=None, status=StepStatus())


class LookIn(Choice, frozen=True):
    """Name a folder in which environments are looked for as well."""

    folder: str

    def after(self, state: State) -> State:
        """Add the folder to those that are searched; "" adds none."""
        folders = tuple(dict.fromkeys((*state.survey.folders, self.folder)))
        return state.with_environments(survey=replace(state.survey, folders=folders)) if self.folder else state


class Simulate(Choice, frozen=True):
    """Look at a recorded machine instead of this one; "" goes back to this one, as it was left."""

    machine: str

    def after(self, state: State) -> State:
        """Return an empty setup of the recorded machine, with the real one in `aside`; for "" the real one again."""
        if self.machine == state.machine:
            return state
        real = state if not state.machine else state.aside or State()
        return State(machine=self.machine, aside=real) if self.machine else replace(real, page=Page.SETUP)


class Resume(Choice, frozen=True):
    """Go on from a state that was saved before the kernel restarted."""

    state: State

    def after(self, state: State) -> State:  # noqa: ARG002 - nothing of it is left
        """Take the saved state."""
        return self.state


def _without_running(state: State) -> State:
    """Return the state with no task running, its question gone, and the findings that it reported added to `raised`."""
    raised = unique(state.raised, state.reported)
    return replace(state, running=None, stopping=False, question="", raised=raised, reported=())


def _steps_after(step: Step) -> tuple[Step, ...]:
    """Return the steps that come after a step."""
    return STEPS[STEPS.index(step) + 1 :]


def _mark_stale(state: State, steps: Iterable[Step]) -> State:
    """Return the state with those of the steps stale that are done or failed; results are kept until they run again."""
    for step in steps:
        status = state.status(step)
        if status.phase in {Phase.DONE, Phase.FAILED}:
            state = state.with_status(step, replace(status, phase=Phase.STALE))
    return state


def _keep_result(state: State, result: Result) -> State:  # noqa: C901, PLR0911, PLR0912 - one for each kind
    """Return the state with a task's result in its field, without the results that depended on an earlier one."""
    match result:
        case Detected():
            return replace(state, detected=result, preview=None)
        case Planned():
            return replace(state.with_choices(plan=0), planned=result, preview=None)
        case Prepared():
            return replace(_with_plan(state, result.plan), preview=result)
        case Installed():
            return replace(state, installed=result, verified=None, exported=Exported(), failed_cell=False)
        case Verified():
            return replace(state, verified=result)
        case Diagnosed():
            seen = {str(finding.text) for finding in state.detection.findings} if state.detection else set()
            found = tuple(finding for finding in result.findings if str(finding.text) in seen)
            others = tuple(finding for finding in result.findings if str(finding.text) not in seen)
            return _with_machine_findings(replace(state, diagnosed=result, raised=others, mended={}), found)
        case Mended():
            new = replace(state, mended={**state.mended, result.way: result})
            if result.summary and new.environments.survey:
                new = new.with_environments(survey=new.environments.survey.with_summary(result.summary))
            return new if result.raised is None else replace(new, raised=result.raised)
        case Exported():
            return replace(state.with_choices(overwrite=False), exported=result)
        case Extra():
            return state.with_extra(replace(result, status=state.extras[state.addon].status))
        case Adding(changed=True, installed=made, prepared=done) if done:
            # The plan asks for the packages too from now on, and its lock holds them.
            new = replace(_with_plan(state, done.plan), adding=result, preview=done, installed=made)
            return replace(new, verified=None, exported=Exported())
        case Adding():
            return replace(state, adding=result)
        case _:
            raise TypeError(type(result))


def with_result(state: State, task: Task, result: Result, seconds: float = 0.0) -> State:
    """Return the state with a task's result and its step done; later steps that had ended turn stale."""
    done = StepStatus(phase=Phase.DONE, seconds=seconds)
    return _mark_stale(_keep_result(state, result), _steps_after(task.step)).with_status(task, done)


def _unlock_next(state: State, task: Task) -> State:
    """Return the state with the step after a task's, and diagnosis, ready if locked; after installing verify anyway."""
    if task.step is Step.INSTALL:  # what was verified of an earlier installation is not of this one
        state = state.with_status(Step.VERIFY, StepStatus(phase=Phase.DONE if state.report else Phase.READY))
    for step in (*_steps_after(task.step)[:1], Step.DIAGNOSE):
        if state.status(step).phase is Phase.LOCKED:
            state = state.with_status(step, StepStatus(phase=Phase.READY))
    return state


def with_report(state: State, report: Report) -> State:
    """Return the state with the report of a verification; its findings replace those of earlier verifications only."""
    others = (finding for finding in state.raised if not finding.key.startswith("verify."))
    found = (*others, *report_findings(report))
    return with_result(replace(state, raised=found), Task.VERIFY, Verified(report=report))


def _with_plan(state: State, plan: Plan) -> State:
    """Return the state with `plan` chosen, in place of the plan of its backend and variant, else of the chosen one."""
    if state.planned is None or state.plan == plan:
        return state
    planning = state.planned.planning
    builds, own = [(other.backend, other.variant) for other in planning.plans], (plan.backend, plan.variant)
    place = builds.index(own) if own in builds else state.choices.plan
    plans = (*planning.plans[:place], plan, *planning.plans[place + 1 :])
    planned = replace(state.planned, planning=replace(planning, plans=plans, choice=plans[0]))
    return replace(state, planned=planned).with_choices(plan=place)


def _with_machine_findings(state: State, found: tuple[Finding, ...]) -> State:
    """Return the state with `found` in place of the findings of detection; unchanged without a detection."""
    if state.detected is None:
        return state
    detection = replace(state.detected.detection, findings=found)
    return replace(state, detected=replace(state.detected, detection=detection))


def _with_survey(state: State, end: Finished, result: Surveyed) -> State:
    """Return the state with the survey and the repair that is offered, the real setup of a simulation (`aside`) too.

    If the setup's own environment was changed, its findings are replaced and it must be verified again; if it was
    removed, all results after the plan are dropped.
    """
    # The real setup is laid aside while a recorded machine is looked at; what was changed here may be its environment.
    picked = state.environments.picked
    aside = _with_survey(state.aside.with_environments(picked=picked), end, result) if state.aside else None
    status = StepStatus(phase=Phase.DONE, seconds=end.seconds)
    new = replace(state, aside=aside)
    new = new.with_environments(survey=result.survey, repair=result.repair, status=status)
    entry = result.survey.summary_at(picked)
    own = state.environment is not None and state.environment.path == picked
    if end.task in _CHANGE_OTHERS and own and entry and state.detection and state.installed:
        installed = replace(state.installed, proof=None)
        new = replace(new, raised=entry.findings, installed=installed, verified=None)
        return new.with_status(Task.VERIFY, StepStatus(phase=Phase.READY))
    if end.task is Task.REMOVE and own:
        left = {step: state.statuses[step] for step in (Step.DETECT, Step.PLAN) if step in state.statuses}
        return replace(new, installed=None, verified=None, preview=None, exported=Exported(), statuses=left)
    return new

"""How a guided setup changes: the state after each action, as a pure function; and why a task cannot begin."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from assistant.i18n import Message, _
from assistant.install import Prepared
from assistant.model.event import Event, FindingRaised, JobFailed, LogLine, PartDone, Progress, Step
from assistant.model.finding import Finding
from assistant.model.plan import Plan
from assistant.model.record import replace
from assistant.session.actions import (
    Abandoned,
    Action,
    Add,
    Aim,
    Answer,
    Asked,
    Begin,
    Choose,
    Edited,
    Fill,
    Finished,
    LookIn,
    Mend,
    Paste,
    Pick,
    Resume,
    SetFact,
    Show,
    Simulate,
    Stop,
    Supply,
    Told,
    Wish,
)
from assistant.session.state import (
    Adding,
    Detected,
    Diagnosed,
    Exported,
    Extra,
    Installed,
    Mended,
    Page,
    Pasted,
    Phase,
    Planned,
    State,
    StepResult,
    StepStatus,
    Surveyed,
    Task,
    Verified,
)
from assistant.session.survey import Survey

LOG_LINES = 200  # that the panels show; the file of `State.log_file` has every line
STEPS = tuple(Step)


def blockers(state: State, task: Task) -> tuple[Message, ...]:
    """List, why a task cannot begin now; empty when it can."""
    running = (_("Something is still running; wait for it or cancel it."),) if state.running else ()
    return (*running, *(environment_blockers(state, task) if task.is_about_environments else _blockers(state, task)))


def _blockers(state: State, task: Task) -> list[Message]:
    """List what a task of the setup's own still lacks."""
    fact_changed = state.status(Step.DETECT).phase is Phase.STALE
    answer_changed = state.status(Step.PLAN).phase is Phase.STALE and not fact_changed
    lacks = (
        (task is not Task.DETECT and state.detection is None, _("The hardware has not been detected yet.")),
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
    return [reason for lacking, reason in lacks if lacking]


def following(state: State) -> Task | None:
    """Return the task that goes on by itself: up to the user's agreement, and from the installation to its proof."""
    if state.running:
        return None
    for task in (Task.DETECT, Task.PLAN):
        phase = state.status(task.step).phase
        if task is Task.PLAN and state.page is Page.ENVIRONMENTS and phase is not Phase.RUNNING:
            looks = state.environments.survey is None and state.environments.status.phase is not Phase.FAILED
            return Task.SURVEY if looks else _proof(state)  # the plan waits until somebody wants to see it
        if task is Task.PLAN and state.page is Page.WRONG and phase is Phase.READY and state.failed_cell:
            return Task.DIAGNOSE if state.status(Step.DIAGNOSE).phase is Phase.READY else None
        if phase is not Phase.DONE:
            return None if phase is Phase.FAILED else task
    prepares = state.preview is None and state.plan and not state.machine
    installed = state.status(Step.INSTALL).phase
    return Task.PREPARE if prepares and installed not in {Phase.DONE, Phase.FAILED} else _proof(state)


def _proof(state: State) -> Task | None:
    """Return the verification, where an installation has been made and nobody has verified it yet."""
    waits = state.status(Step.VERIFY).phase in {Phase.LOCKED, Phase.READY}
    return Task.VERIFY if waits and state.status(Step.INSTALL).phase is Phase.DONE else None


_WRITE = {Task.PREPARE, Task.INSTALL, Task.VERIFY, Task.EXPORT, Task.MEND, Task.ADD}
_BESIDE = {Task.ADDON, Task.ADD}  # what their steps told stays, and how they end stands in a record of their own
# What these raise is about the environment: once one has ended well, it replaces what was known of that before. Until
# then, and where it fails, nothing that was wrong counts as mended.
_RAISE = {Task.PREPARE, Task.INSTALL, Task.VERIFY}
_NEED_PLAN = {Task.PREPARE, Task.INSTALL, Task.EXPORT}


def reduce(state: State, action: Action) -> State:
    """Return the state after an action; an action that makes no sense now changes nothing."""
    wished = _WISHES.get(type(action))
    if wished:
        return state if state.running else wished(state, action)
    return _EVENTS[type(action)](state, action)


def _chosen(state: State, index: int) -> State:
    known = state.planning is not None and 0 <= index < len(state.planning.plans)
    if not known or index == state.choices.plan:
        return state
    return _stale(replace(state.with_choices(plan=index), preview=None), Step.PLAN)


def _other_machine(state: State, machine: str) -> State:
    """Look at a recorded machine with the real setup laid aside, or go back to that."""
    real = state if not state.machine else state.aside or State()
    return State(machine=machine, aside=real) if machine else replace(real, page=Page.SETUP)


def _with_fact(state: State, answer: SetFact) -> State:
    """Set a fact of the machine by hand, or take the setting back."""
    kept = {fact: value for fact, value in state.choices.overrides.items() if fact != answer.fact}
    overrides = kept | ({answer.fact: answer.value} if answer.value else {})
    return replace(state.with_choices(overrides=overrides), preview=None)


def _begun(state: State, task: Task) -> State:
    if task.is_about_environments:
        return begin_environment_task(state, task)
    if task in _BESIDE:
        return replace(state, running=task, stopping=False, page=task.page or state.page)
    new = _with(state, task.step, StepStatus(phase=Phase.RUNNING))
    if task in _RAISE:
        new = replace(new, raised=())
    log = state.log if task is Task.DIAGNOSE else ()  # what the failed task said is what there is to diagnose
    return replace(new, running=task, stopping=False, page=task.page or state.page, log=log)


def _told(state: State, events: tuple[Event, ...]) -> State:
    if state.running and state.running.is_about_environments:
        return tell_of_environments(state, events, LOG_LINES)
    lines = [event.text for event in events if isinstance(event, LogLine)]
    progress = [event for event in events if isinstance(event, Progress)]
    findings = [event.finding for event in events if isinstance(event, FindingRaised)]
    new = state
    parts = [event.value for event in events if isinstance(event, PartDone)]
    if parts and state.running is Task.ADDON:
        new = _with_extra(new, Extra(value=parts[-1]))
    if lines:
        new = replace(new, log=(*new.log, *lines)[-LOG_LINES:])
    if findings and state.running is not Task.ADD:  # a verification tells them, once the packages are there
        new = replace(new, findings=_both(new.findings, findings), raised=_both(new.raised, findings))
    if progress and state.running:
        step = state.running.step
        new = _with(new, step, replace(new.status(step), progress=progress[-1]))
    return new


def _both(old: Iterable[Finding], new: Iterable[Finding]) -> tuple[Finding, ...]:
    """Put findings behind others; what is said already is not said again."""
    return tuple({(one.key, str(one.text)): one for one in (*old, *new)}.values())


def _finished(state: State, end: Finished) -> State:
    task, seconds = end.task, end.seconds
    if isinstance(end.result, Surveyed):
        return finish_environment_task(replace(state, running=None, stopping=False, question=""), end, end.result)
    done = _filled(replace(state, running=None, stopping=False, question=""), end.result)
    if task in _RAISE and done.detection:
        done = replace(done, findings=_both(done.detection.findings, state.raised))
    if task in _BESIDE:
        done = _with(done, task.step, replace(done.status(task.step), progress=None))
        changed = isinstance(end.result, Adding) and end.result.changed
        return _with(_stale(done, Step.INSTALL), Step.VERIFY, StepStatus(phase=Phase.READY)) if changed else done
    if task is Task.PREPARE:
        return _with(done, Step.INSTALL, StepStatus(phase=Phase.READY, seconds=seconds))
    done = _with(_stale(done, task.step), task.step, StepStatus(phase=Phase.DONE, seconds=seconds))
    following = STEPS[STEPS.index(task.step) + 1 :][:1]
    for step in (*following, Step.DIAGNOSE):  # a log can be pasted at any time
        anew = task is Task.INSTALL and step is Step.VERIFY  # what an earlier installation proved is not proved of this
        if anew or done.status(step).phase is Phase.LOCKED:
            done = _with(done, step, StepStatus(phase=Phase.READY))
    return done


def _filled_in(state: State, fill: Fill) -> State:
    new = state.with_choices(
        level=fill.level or state.choices.level,
        folder=state.choices.folder if fill.folder is None else fill.folder,
        formats=state.choices.formats if fill.formats is None else fill.formats,
        purpose=state.choices.purpose if fill.purpose is None else fill.purpose,
    )
    return _stale(new, Step.VERIFY if fill.level else Step.EXPORT, itself=True)


def _filled(state: State, result: StepResult) -> State:  # noqa: C901, PLR0911 - one for each kind of result
    """Keep a task's result, and drop what rested on an earlier one."""
    match result:
        case Detected():
            findings = _both(result.detection.findings, state.raised)
            return replace(state, detected=result, findings=findings, preview=None)
        case Planned():
            return replace(state.with_choices(plan=0), planned=result, preview=None)
        case Prepared():
            return replace(_with_plan(state, result.plan), preview=result)
        case Installed():
            made = replace(result, detected=None)
            new = replace(state, installed=made, verified=None, exported=Exported(), failed_cell=False)
            return _seen_again(new, result.detected)
        case Verified():
            new = replace(state, installed=_without_proof(state), verified=replace(result, detected=None))
            return _seen_again(new, result.detected)
        case Diagnosed():
            return replace(state, diagnosed=result, findings=result.findings, mended={})
        case Mended():
            new = _seen_again(replace(state, mended={**state.mended, result.way: result}), result.detected)
            if result.known and new.environments.survey:
                new = new.with_environments(survey=new.environments.survey.with_known(result.known))
            if result.raised is None:
                return new
            known = new.detection.findings if new.detection else ()
            return replace(new, raised=result.raised, findings=_both(known, result.raised))
        case Exported():
            return replace(state.with_choices(overwrite=False), exported=result)
        case Extra():
            return _with_extra(state, result)
        case Adding():
            return _with_added(state, result)


def _with_plan(state: State, plan: Plan) -> State:
    """Put a plan in the place of the one that was chosen, as what stands in for it was found."""
    if state.planned is None or state.plan == plan:
        return state
    planning = state.planned.planning
    alike = (
        place for place, one in enumerate(planning.plans) if (one.backend, one.variant) == (plan.backend, plan.variant)
    )
    place = next(alike, state.choices.plan)
    plans = (*planning.plans[:place], plan, *planning.plans[place + 1 :])
    planned = replace(state.planned, planning=replace(planning, plans=plans, choice=plans[0]))
    return replace(state, planned=planned).with_choices(plan=place)


def _with_extra(state: State, extra: Extra) -> State:
    """Keep what the add-on that is at work has come to."""
    return replace(state, extras={**state.extras, state.addon: extra})


def _aimed(state: State, aim: Aim) -> State:
    """Take another target; what is wrong with the former one is forgotten."""
    findings = state.detection.findings if state.detection else ()
    return replace(state.with_choices(target=aim.target), preview=None, raised=(), findings=findings)


def _without_proof(state: State) -> Installed | None:
    """Return what was installed, without what its installation verified, once it is verified by itself."""
    return replace(state.installed, proof=None) if state.installed else None


def _seen_again(state: State, found: tuple[Finding, ...] | None) -> State:
    """Keep what is still true of what detection had found, and say no more what is not."""
    if found is None or state.detected is None or state.detection is None:
        return state
    stays = {str(one.text) for one in (*found, *state.raised)}
    gone = {str(one.text) for one in state.detection.findings} - stays
    findings = tuple(one for one in state.findings if str(one.text) not in gone)
    detected = replace(state.detected, detection=replace(state.detection, findings=found))
    return replace(state, detected=detected, findings=findings)


def _with_added(state: State, adding: Adding) -> State:
    """Keep what adding came to; once it is done, the plan asks for the packages too, and its lock holds them."""
    new, done = replace(state, adding=adding), adding.prepared
    made = adding.environment
    if not (adding.changed and made and done and state.planned):
        return new
    planned = _with_plan(new, done.plan).planned
    installed = Installed(environment=made, proof=adding.proof)
    return replace(new, planned=planned, preview=done, installed=installed, verified=None, exported=Exported())


def _failed(state: State, failure: JobFailed) -> State:
    if state.running and state.running.is_about_environments:
        return fail_environment_task(state, failure)
    why = {"message": failure.message, "hint": failure.hint, "exit_code": failure.exit_code}
    if state.running is Task.ADDON:
        return _finished(state, Finished(task=Task.ADDON, result=replace(state.extras[state.addon], **why)))
    if state.running is Task.ADD and state.adding:
        return _finished(state, Finished(task=Task.ADD, result=replace(state.adding, prepared=None, **why)))
    status = StepStatus(
        phase=Phase.FAILED,
        message=failure.message,
        hint=failure.hint,
        exit_code=failure.exit_code,
        unreachable=failure.unreachable,
    )
    return replace(_with(state, failure.step, status), running=None, stopping=False, question="")


def _abandoned(state: State) -> State:
    if state.running is None:
        return state
    if state.running.is_about_environments:
        return replace(state, running=None, stopping=False, question="").with_environments(status=StepStatus())
    return replace(
        _with(state, state.running.step, StepStatus(phase=Phase.READY)), running=None, stopping=False, question=""
    )


def _stale(state: State, changed: Step, *, itself: bool = False) -> State:
    """Mark what rests on a changed step as stale; its results are kept until they are made anew."""
    for step in STEPS[STEPS.index(changed) + (not itself) :]:
        status = state.status(step)
        if status.phase in {Phase.DONE, Phase.FAILED}:
            state = _with(state, step, replace(status, phase=Phase.STALE))
    return state


def _with(state: State, step: Step, status: StepStatus) -> State:
    return replace(state, statuses={**state.statuses, step: status})


def environment_blockers(state: State, task: Task) -> tuple[Message, ...]:
    """List what a task lacks: the environment that it is about, or the change that was shown."""
    here = state.environments
    lacks = {Task.SURVEY: False, Task.REPAIR: here.repair is None}.get(task, not here.picked)
    return (_("No environment was chosen."),) if lacks else ()


def begin_environment_task(state: State, task: Task) -> State:
    """Begin a task; only the one that looks for environments may go on behind another page."""
    page = state.page if task is Task.SURVEY else Page.ENVIRONMENTS
    log = () if task in {Task.REPAIR, Task.UNDO} else state.log
    begun = replace(state, running=task, stopping=False, page=page, log=log)
    return begun.with_environments(status=StepStatus(phase=Phase.RUNNING))


def tell_of_environments(state: State, events: Iterable[Event], most: int) -> State:
    """Keep how far a task is, and the lines of one that changes something."""
    for event in events:
        if isinstance(event, Progress):
            state = state.with_environments(status=replace(state.environments.status, progress=event))
        elif isinstance(event, LogLine) and state.running in {Task.REPAIR, Task.UNDO}:
            state = replace(state, log=(*state.log, event.text)[-most:])
    return state


def finish_environment_task(state: State, end: Finished, result: Surveyed) -> State:
    """Keep what is known now; what is wrong with the setup's own environment is judged anew where it was changed."""
    status = StepStatus(phase=Phase.DONE, seconds=end.seconds)
    # The real setup is laid aside while a recorded machine is looked at; what was changed here may be its environment.
    picked = state.environments.picked
    aside = finish_environment_task(state.aside.with_environments(picked=picked), end, result) if state.aside else None
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


def fail_environment_task(state: State, failure: JobFailed) -> State:
    """Keep why a task failed, and what was known before."""
    status = StepStatus(phase=Phase.FAILED, message=failure.message, hint=failure.hint, exit_code=failure.exit_code)
    return replace(state, running=None, stopping=False, question="").with_environments(status=status)


def pick_environment(state: State, pick: Pick) -> State:
    """Choose another environment: what was offered for the last one is no longer meant."""
    return state.with_environments(picked=pick.path, repair=None, status=StepStatus())


def look_in(state: State, wish: LookIn) -> State:
    """Have one more folder searched."""
    before = state.environments.survey or Survey()
    folders = tuple(dict.fromkeys((*before.folders, wish.folder)))
    return state.with_environments(survey=replace(before, folders=folders)) if wish.folder else state


Change = Callable[[State, Any], State]  # each takes the action that stands beside it in its table

_EVENTS: dict[type[Action], Change] = {
    Abandoned: lambda state, _: _abandoned(state),
    Begin: lambda state, begin: state if blockers(state, begin.task) else _begun(state, begin.task),
    Told: lambda state, told: _told(state, told.events),
    Asked: lambda state, asked: replace(state, question=asked.question) if state.running else state,
    Answer: lambda state, _: replace(state, question=""),
    Finished: lambda state, end: _finished(state, end) if state.running is end.task else state,
    JobFailed: _failed,
    Show: lambda state, show: replace(state, page=show.page),
    Stop: lambda state, _: replace(state, stopping=True) if state.running and not state.stopping else state,
    # No other task rests on what is pasted.
    Paste: lambda state, paste: replace(
        state, pasted=Pasted(text=paste.log) if isinstance(paste.log, str) else paste.log, edited=False
    ),
    Edited: lambda state, _: replace(state, edited=True),
}
# What the user may answer while nothing runs; what rested on the old answer turns stale.
_WISHES: dict[type[Action], Change] = {
    LookIn: look_in,
    Pick: pick_environment,
    Mend: lambda state, mend: replace(state, way=mend.way),
    Add: lambda state, wish: replace(state, adding=Adding(requirements=wish.requirements)),
    Supply: lambda state, wish: _with_extra(replace(state, addon=wish.addon), Extra(value=wish.value)),
    Resume: lambda _, resume: resume.state,
    Simulate: lambda state, wish: state if wish.machine == state.machine else _other_machine(state, wish.machine),
    SetFact: lambda state, fact: _stale(_with_fact(state, fact), Step.DETECT, itself=True),
    Wish: lambda state, wish: _stale(
        replace(state.with_choices(request=wish.request, plan=0), preview=None), Step.PLAN, itself=True
    ),
    Aim: lambda state, aim: _stale(_aimed(state, aim), Step.PLAN),
    Choose: lambda state, choice: _chosen(state, choice.index),
    Fill: _filled_in,
}

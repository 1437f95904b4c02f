"""The reducer: what each action does to a setup."""

from __future__ import annotations

from tables import each

from assistant.i18n import Message
from assistant.install import Prepared, Resolution
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Detection, Machine
from assistant.model.plan import Backend, Plan, Planning, Request
from assistant.model.record import from_json, replace, to_json
from assistant.model.report import Environment, FindingRaised, LogLine, Report, Step
from assistant.session.actions import Begin, Choose, Failed, Finished, Reported, Simulate, Stop, blockers, reduce
from assistant.session.state import (
    Detected,
    Diagnosed,
    Exported,
    Installed,
    Mended,
    Outcome,
    Page,
    Phase,
    Planned,
    Result,
    Source,
    State,
    Task,
    Verified,
)

PLANS = tuple(Plan(backend=Backend.CPU, variant="cpu", torch=version, python="3.12") for version in ("2.14", "2.13"))
PLANNING = Planning(choice=PLANS[0], plans=PLANS)
PREVIEW = Prepared(plan=PLANS[0], target="/env", resolution=Resolution(lock="", packages=()))
VERIFIED = Verified(report=Report(device="cpu"))


def after(*actions: object, state: State | None = None) -> State:
    """Apply actions one after the other."""
    state = state or State()
    for action in actions:
        state = reduce(state, action)
    return state


def done(task: Task, result: Result) -> tuple[Begin, Finished]:
    """Give the two actions of a task that ends well."""
    return Begin(task=task), Finished(task=task, result=result, seconds=1.0)


DETECTED = done(Task.DETECT, Detected(detection=Detection(machine=Machine(os="linux"))))
PLANNED = (*DETECTED, *done(Task.PLAN, Planned(planning=PLANNING)))
PREPARED = (*PLANNED, *done(Task.PREPARE, PREVIEW))
MADE = Environment(path="/env", python="/env/bin/python")
INSTALLED = (*PREPARED, *done(Task.INSTALL, Installed(environment=MADE)))


def test_a_second_press_is_harmless() -> None:
    """A task cannot begin while one runs."""
    state = after(Begin(task=Task.DETECT))
    assert reduce(state, Begin(task=Task.DETECT)) is state
    assert reduce(state, Begin(task=Task.PLAN)) is state


def test_a_finished_step_opens_the_next() -> None:
    """When detection is done, the plan is ready and nothing beyond it."""
    state = after(*DETECTED)
    assert [state.status(step).phase for step in (Step.DETECT, Step.PLAN, Step.INSTALL)] == [
        Phase.DONE,
        Phase.READY,
        Phase.LOCKED,
    ]


def test_preparing_leaves_the_installation_to_be_agreed_to() -> None:
    """After the packages are worked out the install step waits for a press."""
    state = after(*PREPARED)
    assert state.status(Step.INSTALL).phase is Phase.READY
    assert not blockers(state, Task.INSTALL)


def test_another_plan_makes_the_later_steps_stale_and_loses_nothing() -> None:
    """Choosing another plan keeps the environment but asks to repeat the installation."""
    state = after(*INSTALLED, Choose(plan=1))
    assert state.plan == PLANS[1]
    assert state.environment is not None
    assert state.status(Step.INSTALL).phase is Phase.STALE
    assert state.preview is None


@each("answer", [Choose(request=Request(backend=Backend.CUDA)), Choose(overrides={"glibc": "2.17"})])
def test_another_wish_makes_the_plan_itself_stale(answer: object) -> None:
    """A wish or a fact set by hand asks for a new plan, keeps the old one in sight, and lets nothing rest on it."""
    state = after(*INSTALLED, answer)
    assert state.status(Step.PLAN).phase is Phase.STALE
    assert state.plan == PLANS[0]
    assert blockers(state, Task.PREPARE)


def test_a_simulation_lays_the_real_setup_aside() -> None:
    """A recorded machine starts afresh, another one too, and coming back finds everything as it was left."""
    real = after(*INSTALLED)
    state = after(Simulate(machine="one"), *DETECTED, Simulate(machine="two"), state=real)
    assert (state.machine, state.detection, state.environment) == ("two", None, None)
    assert after(Simulate(machine=""), state=state) == replace(real, page=Page.SETUP)
    assert after(Simulate(machine=""), state=State(machine="one")) == State()


@each(
    ("answer", "step"),
    [
        ({"level": "full"}, Step.VERIFY),
        ({"folder": "/out"}, Step.EXPORT),
        ({"formats": ("markdown",)}, Step.EXPORT),
    ],
)
def test_other_answers_make_their_own_step_stale(answer: dict[str, object], step: Step) -> None:
    """How thoroughly to verify and where to write do not touch what came before."""
    state = after(*INSTALLED, *done(Task.VERIFY, VERIFIED), *done(Task.EXPORT, Exported()))
    state = after(Choose(**answer), state=state)
    assert {name: getattr(state.choices, name) for name in answer} == answer
    assert state.status(step).phase is Phase.STALE
    assert state.status(Step.INSTALL).phase is Phase.DONE


def test_a_request_to_stop_is_shown_until_the_task_has_ended() -> None:
    """The wizard can say that it is stopping, and the next task starts without that."""
    assert reduce(State(), Stop()) == State()
    state = after(*PREPARED, Begin(task=Task.INSTALL), Stop())
    assert state.stopping
    state = after(Failed(step=Step.INSTALL, message="Stopped."), state=state)
    assert not state.stopping


def test_answers_wait_while_something_runs() -> None:
    """Nothing can be changed under a running task."""
    state = after(*PREPARED, Begin(task=Task.INSTALL))
    for answer in (Choose(plan=1), Choose(target="/other"), Simulate(machine="x")):
        assert reduce(state, answer) is state


def test_a_failure_is_told_and_may_be_tried_again() -> None:
    """A failed step keeps the sentence, the next step and the exit code."""
    failure = Failed(step=Step.PLAN, message="No.", hint="Do this.", exit_code=3)
    state = after(*DETECTED, Begin(task=Task.PLAN), failure)
    status = state.status(Step.PLAN)
    assert (status.phase, status.message, status.hint, status.exit_code) == (Phase.FAILED, "No.", "Do this.", 3)
    assert not blockers(state, Task.PLAN)


def test_a_simulation_can_never_install() -> None:
    """A recorded machine can be looked at and planned for, and no more."""
    state = replace(after(*PREPARED), machine="some-machine")
    for task in (Task.PREPARE, Task.INSTALL, Task.VERIFY, Task.EXPORT):
        assert blockers(state, task)
    assert not blockers(state, Task.PLAN)


def test_a_repeated_verification_starts_with_a_clean_sheet() -> None:
    """What an earlier verification raised does not pile up; what detection found stays."""
    known, raised = (Finding(key=key, severity=Severity.WARNING, text=key) for key in ("known", "raised"))
    found = done(Task.DETECT, Detected(detection=Detection(machine=Machine(), findings=(known,))))
    state = after(*found, *INSTALLED[2:], Begin(task=Task.VERIFY))
    for _round in range(2):
        state = after(Reported(events=(FindingRaised(step=Step.VERIFY, finding=raised),)), state=state)
        assert state.findings == (known, raised)
        state = after(Finished(task=Task.VERIFY, result=VERIFIED), Begin(task=Task.VERIFY), state=state)


def test_each_result_fills_its_fields() -> None:
    """What the later tasks told is kept beside what came before, and takes the place of what it replaces."""
    found = Finding(key="slow", severity=Severity.INFO, text="slow")
    ends = {
        Task.VERIFY: VERIFIED,
        Task.DIAGNOSE: Diagnosed(findings=(found,), source=Source(elsewhere=True), markdown="?"),
        Task.MEND: Mended(way="slow#1", outcome=Outcome.FIXED),
        Task.EXPORT: Exported(files=("/out/report.md",)),
    }
    state = after(*INSTALLED, *(action for task, result in ends.items() for action in done(task, result)))
    assert (state.detection, state.planning, state.preview) == (
        Detection(machine=Machine(os="linux")),
        PLANNING,
        PREVIEW,
    )
    assert (state.environment, state.report) == (MADE, VERIFIED.report)
    assert (state.findings, state.diagnosed.source.elsewhere, state.diagnosed.markdown) == (
        (found,),
        True,
        "?",
    )
    assert (state.mended, state.exported.files) == ({"slow#1": ends[Task.MEND]}, ("/out/report.md",))
    proof = Report(device="cuda")
    again = after(*done(Task.INSTALL, Installed(environment=MADE, proof=proof)), state=state)
    assert (again.report, again.status(Step.VERIFY).phase, again.exported.files) == (proof, Phase.DONE, ())
    again = after(*done(Task.INSTALL, Installed(environment=MADE)), state=state)
    assert (again.report, again.status(Step.VERIFY).phase) == (None, Phase.READY)


def test_a_state_survives_the_trip_through_json() -> None:
    """What is saved is what is loaded."""
    ours = LogLine(step=Step.INSTALL, text=Message("Removing {path}").format(path="/env"))
    state = after(*INSTALLED, Begin(task=Task.VERIFY), Reported(events=(ours, LogLine(step=Step.INSTALL, text="ok"))))
    assert from_json(to_json(state), State, "state") == state


CONFLICT = Finding(key="onnxruntime-packages-conflict", severity=Severity.WARNING, text="They share one folder.")


def told(task: Task, *findings: Finding) -> tuple[Begin, Reported]:
    """Give the actions of a task that has raised findings and is still at work."""
    return Begin(task=task), Reported(
        events=tuple(FindingRaised(step=task.step, finding=finding) for finding in findings)
    )


@each("task", [Task.PREPARE, Task.INSTALL, Task.VERIFY])
@each("end", ["running", "failed", "found again", "gone"])
def test_a_problem_vanishes_only_once_it_was_looked_for_and_not_found(task: Task, end: str) -> None:
    """Whichever task looks at the environment: while it works, and where it fails, nothing counts as mended."""
    results = {Task.PREPARE: PREVIEW, Task.INSTALL: Installed(environment=MADE), Task.VERIFY: VERIFIED}
    state = after(*INSTALLED, *told(Task.VERIFY, CONFLICT), Finished(task=Task.VERIFY, result=VERIFIED))
    assert state.findings == (CONFLICT,)
    state = after(*told(task, *[CONFLICT] * (end == "found again")), state=state)
    assert state.findings == (CONFLICT,)
    if end == "failed":
        state = after(Failed(step=task.step, message="No."), state=state)
    elif end != "running":
        state = after(Finished(task=task, result=results[task]), state=state)
    assert state.findings == (() if end == "gone" else (CONFLICT,))


def test_what_a_task_has_mended_on_the_machine_is_said_no_more() -> None:
    """What detection had found goes with its cause, also from what is exported; what was not found by it stays."""
    broken = Finding(key="kernel-broken", severity=Severity.WARNING, text="It cannot start.")
    slow = Finding(key="slow", severity=Severity.INFO, text="It is slow.")
    found = Detected(detection=Detection(machine=Machine(), findings=(broken, slow)))
    state = replace(after(*INSTALLED), detected=found, raised=(CONFLICT,))
    end = Finished(task=Task.MEND, result=Mended(way="cause#1", outcome=Outcome.DONE), detected=(slow,))
    state = after(Begin(task=Task.MEND), end, state=state)
    assert state.findings == (slow, CONFLICT)
    assert state.detection.findings == (slow,)


def test_another_look_at_the_machine_mends_no_environment() -> None:
    """Detection says nothing of the environment; another folder is another environment."""
    state = after(*INSTALLED, *told(Task.VERIFY, CONFLICT), Finished(task=Task.VERIFY, result=VERIFIED), *DETECTED)
    assert state.findings == (CONFLICT,)
    assert after(Choose(target="/other"), state=state).findings == ()

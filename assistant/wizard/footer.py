"""What the footer offers in each state, and the words for steps and phases: pure functions over the state."""

from __future__ import annotations

from assistant.i18n import Text, say
from assistant.model.errors import Cancelled
from assistant.model.event import Step
from assistant.model.record import Record
from assistant.session.actions import Action, Answer, Begin, Show
from assistant.session.reducer import blockers
from assistant.session.state import Phase, State, StepStatus, Task
from assistant.wizard.html import ICONS

STEPS = tuple(Step)
# What the stepper draws beside the word; a step that waits bears its number instead.
SIGNS = {
    Phase.LOCKED: "",
    Phase.READY: "",
    Phase.RUNNING: ICONS["running"],
    Phase.DONE: ICONS["ok"],
    Phase.FAILED: ICONS["error"],
    Phase.STALE: ICONS["stale"],
}


class Footer(Record, frozen=True):
    """The footer: the main button's words, what it does, and why it cannot be pressed (`why` empty when it can)."""

    label: str
    actions: tuple[Action, ...] = ()
    why: tuple[Text, ...] = ()
    back: Step | None = None
    cancel: bool = False


def titles() -> dict[Step, str]:
    """Return the name of each step."""
    return {
        Step.DETECT: say("Detect"),
        Step.PLAN: say("Plan"),
        Step.INSTALL: say("Install"),
        Step.VERIFY: say("Verify"),
        Step.DIAGNOSE: say("Diagnose"),
        Step.EXPORT: say("Export"),
    }


def about(step: Step, text: str) -> str:
    """Put a text behind the name of its step."""
    return say("{step}: {text}", step=titles()[step], text=text)


def word(status: StepStatus) -> str:
    """Return one word for the phase of a step."""
    if status.exit_code == Cancelled.exit_code:
        return say("cancelled")
    return {
        Phase.LOCKED: say("not yet"),
        Phase.READY: say("ready"),
        Phase.RUNNING: say("running"),
        Phase.DONE: say("done"),
        Phase.FAILED: say("failed"),
        Phase.STALE: say("to repeat"),
    }[status.phase]


def footer(state: State) -> Footer:
    """Return what the footer offers in this state."""
    step = state.current
    earlier = [before for before in STEPS[: STEPS.index(step)] if state.status(before).phase is not Phase.LOCKED]
    back = earlier[-1] if earlier and not state.running else None
    if state.question and not state.stopping:
        return Footer(label=say("Yes"), actions=(Answer(yes=True),), cancel=True)
    if state.running:
        label = say("Stopping…") if state.stopping else say("Working…")
        return Footer(label=label, why=(say("Something is still running."),), cancel=not state.stopping)
    if state.status(step).phase is Phase.DONE:
        following = STEPS[STEPS.index(step) + 1 :]
        if following:
            return _offer(state, say("Continue"), following[0], back)
        return Footer(label=say("Write the files again"), actions=(Begin(task=Task.EXPORT),), back=back)
    task = next_task(state, step)
    return Footer(label=_words(state, task), actions=(Begin(task=task),), why=blockers(state, task), back=back)


def press(state: State) -> tuple[Action, ...]:
    """Return the actions of a press on the main button; none when it cannot be pressed."""
    offered = footer(state)
    return () if offered.why else offered.actions


def next_task(state: State, step: Step) -> Task:
    """Return the task that a step needs next; an installation is prepared before it can be agreed to."""
    if step is Step.INSTALL:
        return Task.PREPARE if state.preview is None else Task.INSTALL
    return Task(step.value)


def _offer(state: State, label: str, step: Step, back: Step | None) -> Footer:
    """Go on to a step: look at it when it is done or needs an agreement, else start it at once."""
    task = next_task(state, step)
    waits = state.status(step).phase is Phase.DONE or task in {Task.INSTALL, Task.EXPORT}
    action: Action = Show(step=step) if waits else Begin(task=task)
    return Footer(label=label, actions=(action,), why=() if waits else blockers(state, task), back=back)


def _words(state: State, task: Task) -> str:
    if state.status(task.step).phase is Phase.FAILED:
        return say("Try again")
    return {
        Task.DETECT: say("Detect the hardware"),
        Task.PLAN: say("Make the plan"),
        Task.PREPARE: say("Resolve the packages"),
        Task.INSTALL: say("Install"),
        Task.VERIFY: say("Verify"),
        Task.DIAGNOSE: say("Diagnose"),
        Task.EXPORT: say("Write the files"),
    }[task]

"""What the footer offers: records that the pages give it, and the words for phases."""

from __future__ import annotations

from assistant.export import first_notebook, write_first_notebook
from assistant.host.folders import here
from assistant.i18n import Text, render, say, sentences
from assistant.model.errors import AssistantError, Cancelled
from assistant.model.event import Step
from assistant.model.record import Record
from assistant.session.actions import Action
from assistant.session.state import Phase, State, StepStatus
from assistant.wizard import html
from assistant.wizard.shared_widgets import Foot

# Events for JupyterLab's extension (labextension/static/remoteEntry.js).
OPEN_NOTEBOOK, SHOW_FOLDER = "ptsa-open-notebook", "ptsa-open-file"


class OpenNotebook(Record, frozen=True):
    """Open a first notebook on the kernel of the environment that was made."""


class ShowFolder(Record, frozen=True):
    """Show a folder in JupyterLab's file browser."""

    path: str


ButtonAction = Action | OpenNotebook | ShowFolder  # what a button does


class Other(Record, frozen=True):
    """A button beside the main one."""

    label: str
    actions: tuple[ButtonAction, ...]


class Footer(Record, frozen=True):
    """The main button's words and what it does, a sentence beside it, further buttons, and whether Cancel is there.

    Without words there is no main button.
    """

    label: str
    actions: tuple[ButtonAction, ...] = ()
    able: bool = True
    note: Text = ""
    others: tuple[Other, ...] = ()
    cancel: bool = False

    @property
    def offer(self) -> tuple[object, ...]:
        """What a press means: one on words that meant something else must do nothing."""
        return (self.label, self.actions, self.able)


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


NOTEBOOK = "first-steps.ipynb"


def send_notebook(state: State, foot: Foot, view: object) -> None:
    """Let JupyterLab open a first notebook on the kernel of the environment that was made, and run it."""
    made, plan = state.environment, state.plan
    if made and plan:
        detail = {"name": NOTEBOOK, "kernel": made.kernel, "notebook": first_notebook(made, plan)}
        foot.send({"event": OPEN_NOTEBOOK, "detail": detail, "view": view})


def put_notebook(state: State, foot: Foot) -> None:
    """Write the first notebook beside this one, where nobody can open it, and say where it is."""
    made, plan = state.environment, state.plan
    if made is None or plan is None:
        return
    try:
        path, name = write_first_notebook(here(), made, plan), made.launcher_name
        note = say("The notebook {path} is ready; open it and choose the kernel “{name}”.", path=path, name=name)
    except AssistantError as error:
        note = render(sentences((error.message, error.hint)))
    foot.note = html.inline(note)

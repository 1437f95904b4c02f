"""What surrounds the pages: the head, the progress, the machine that is simulated, and the buttons at the foot."""

from __future__ import annotations

from assistant.export import first_notebook, write_first_notebook
from assistant.host.files import current_folder
from assistant.i18n import Text, language, render, say
from assistant.machines import label, load
from assistant.model.errors import Cancelled
from assistant.model.finding import Severity
from assistant.model.plan import Plan
from assistant.model.record import Record
from assistant.model.report import Environment, Part, Step
from assistant.model.visible import Markup, style, tag, visible
from assistant.session.actions import Action
from assistant.session.remediation import is_diagnosis_current
from assistant.session.state import Page, Phase, State, StepStatus, find_stage, is_unresolved
from assistant.wizard import html
from assistant.wizard.shared_widgets import Foot, Head

NOTEBOOK = "first-steps.ipynb"
# Events for JupyterLab's extension (labextension/static/remoteEntry.js).
OPEN_NOTEBOOK, SHOW_FOLDER, USE_KERNEL = "ptsa-open-notebook", "ptsa-open-file", "ptsa-use-kernel"


class OpenNotebook(Record, frozen=True):
    """Open a first notebook on the kernel of an environment that was made by a plan."""

    made: Environment
    plan: Plan
    name: str = NOTEBOOK


class AskBrowser(Record, frozen=True):
    """Send JupyterLab's page an event; `done` is said at once, `refused` in its place if nobody there takes it."""

    event: str
    detail: dict[str, str]
    refused: Text
    done: Text = ""


def show_folder(path: str) -> AskBrowser:
    """Return what shows a folder in JupyterLab's file browser."""
    refused = say("JupyterLab cannot show the folder here; its name is above.")
    return AskBrowser(event=SHOW_FOLDER, detail={"path": path}, refused=refused)


def use_kernel(kernel: str) -> AskBrowser:
    """Return what changes the notebook that asked what is wrong with its cell to a kernel."""
    refused = say("Choose the new kernel in the notebook: menu Kernel, Change Kernel.")
    done = say("The notebook has its new kernel. Run the cell again there.")
    return AskBrowser(event=USE_KERNEL, detail={"kernel": kernel}, refused=refused, done=done)


ButtonAction = Action | OpenNotebook | AskBrowser  # what a button does


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
        """What a press means; if that has changed since the button was drawn, the press must do nothing."""
        return (self.label, self.actions, self.able)


def titles() -> dict[Step, str]:
    """Return the titles of the steps, in the language in force."""
    return {
        Step.DETECT: say("Detect"),
        Step.PLAN: say("Plan"),
        Step.INSTALL: say("Install"),
        Step.VERIFY: say("Verify"),
        Step.DIAGNOSE: say("Diagnose"),
        Step.EXPORT: say("Export"),
    }


def with_step(step: Step, text: str) -> str:
    """Return a text after the name of its step."""
    return say("{step}: {text}", step=titles()[step], text=text)


def status_word(status: StepStatus) -> str:
    """Return the status of a step in a word or two; "cancelled" in any phase if the user cancelled it."""
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


def send_notebook(foot: Foot, opened: OpenNotebook, view: object) -> None:
    """Ask JupyterLab, in the page `view`, to open a first notebook on the kernel of an environment, and to run it."""
    made = opened.made
    given = {"name": opened.name, "kernel": made.kernel, "notebook": first_notebook(made, opened.plan)}
    foot.send({"event": OPEN_NOTEBOOK, "detail": given, "view": view})


def write_notebook(opened: OpenNotebook) -> str:
    """Write a first notebook for an environment into the current folder, and return a sentence on where it is.

    It is for front ends that cannot open it; one for the same kernel that is there already is not written again. Raises
    `WorkFailed` if it cannot be written.
    """
    path = write_first_notebook(current_folder(), opened.made, opened.plan)
    name = opened.made.launcher_name
    return say("The notebook {path} is ready; open it and choose the kernel “{name}”.", path=path, name=name)


COMMAND = "python -m pip install ipywidgets anywidget"
# Where Jupyter's server has its front end in an environment of its own, that may lack a widget library. The kernel
# cannot see it, so the hint is always sent. It comes into sight after some seconds, unless the head's style sheet,
# which hides it, has arrived by then.
LATE = """
.ptsa-late { position: absolute; visibility: hidden; animation: ptsa-late 0s 6s forwards; }
@keyframes ptsa-late { to { position: static; visibility: visible; } }
"""


def no_widgets_text() -> str:
    """Return plain text, shown if the server knows no widgets at all: why there are no controls, and what to do."""
    return "\n".join(
        (
            say("If you still see this text after the cell has run, the guided setup cannot be drawn here."),
            say("Jupyter's own environment lacks ipywidgets or anywidget."),
            say("Run there: {command}", command=COMMAND),
            say(
                "Then restart Jupyter and run the cell again; or do everything in a terminal: {command}",
                command="python -m assistant setup",
            ),
        )
    )


def draw_banner(state: State) -> Markup:
    """Return a hint on how to install anywidget, which the head hides, and the warning of a simulated machine."""
    text = say("The setup cannot be drawn: Jupyter's own environment lacks anywidget, or has one that is too old.")
    then = say("Run this there, restart Jupyter and open this page again:")
    late = tag("div", f"{text} {then} ", tag("code", COMMAND), class_="ptsa-late")
    return style(LATE) + late + (draw_simulation(state.machine) if state.machine else "")


def draw_simulation(machine: str) -> Markup:
    """Return the warning that a machine is simulated and nothing can be installed, with the source of its facts."""
    recording = load(machine)
    text = say("Simulation of {machine}: nothing can be installed.", machine=label(machine))
    origin = (
        say("Recorded on such a machine on {date}.")
        if recording.origin == "recorded"
        else say("Composed from published output ({date}): {source}")
    )
    source = html.details(
        say("Where its facts come from"), html.lead_line(origin.format(date=recording.date, source=recording.source))
    )
    return html.note(Severity.WARNING, text, source)


def draw_head(head: Head, state: State) -> None:
    """Set the head's words, links, language, page and view to those of a state."""
    names = {
        Page.SETUP: say("The setup"),
        Page.ENVIRONMENTS: say("My environments"),
        Page.WRONG: say("Something is wrong?"),
    }
    head.words = {
        "title": say("Set up PyTorch"),
        "language": say("Language"),
        "copied": say("copied"),
        "not_copied": say("could not be copied"),
        "gone": say(
            "The kernel was restarted or has stopped. If the setup does not come back by itself, run its cell again."
        ),
    }
    head.links = [(page.value, name) for page, name in names.items()]
    head.language, head.page = language(), state.page.value
    head.held = state.held
    head.view = f"{state.page.value} {find_stage(state).value}" if state.page is Page.SETUP else state.page.value
    if state.page is Page.ENVIRONMENTS and state.environments.repair:
        head.view += " difference"
    if state.page is Page.WRONG and is_diagnosis_current(state) and state.pasted.text:
        found = state.diagnosed.diagnoses
        head.view += f" {found[0].key if found else 'unknown'}"  # its heading is the answer, which is then read out


def status_line(state: State) -> str:
    """Return what is going on, to be read out, else the status of the furthest step that began; "" if none did.

    On the page of environments it is the status of its own last task; if packages could not be resolved, the reason.
    """
    if state.running:
        progress = state.progress
        text = visible(render(progress.text)) if progress else ""
        stopping = say("Stopping; changes made so far are being rolled back.") if state.stopping else ""
        said = stopping or text or status_word(state.status_of(state.running))
        return said if state.running.is_about_environments else with_step(state.running.step, said)
    if state.page is Page.ENVIRONMENTS:
        status = state.environments.status
        return say("My environments: {text}", text=status_word(status)) if status.phase is not Phase.LOCKED else ""
    if is_unresolved(state):
        return visible(render(state.status(Step.INSTALL).message))
    reached = [step for step in Step if state.status(step).phase not in {Phase.LOCKED, Phase.READY}]
    return with_step(reached[-1], status_word(state.status(reached[-1]))) if reached else ""


def draw_progress(foot: Foot, state: State, since: float) -> None:
    """Set the foot's bar, its text and figures; `since` is when the running task began, in seconds since 1970."""
    foot.words = {
        "progress": say("Progress"),
        "elapsed": say("{time} so far"),
        "checks": say("{done} of {total} checks done"),
    }
    progress = state.progress
    share = progress.share if progress else None
    checks = share if progress and progress.unit == "checks" else 0
    after_checks = progress is not None and progress.part is Part.REGISTER
    shown = {
        "running": state.running is not None,
        "quiet": bool(state.running and state.running.only_reads),
        "share": None if share is None else int(100 * share),
        "text": visible(render(progress.text)) if progress else "",
        "checks": 1 if after_checks else checks,
        "since": since,
    }
    foot.send_progress(shown, {"figures": render(progress.figures) if progress else ""})

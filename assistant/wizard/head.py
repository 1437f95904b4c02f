"""What surrounds the pages: the head, the progress, and which machine is simulated."""

from __future__ import annotations

from assistant.i18n import language, render, say
from assistant.machines import label, load
from assistant.markup import Markup, style, tag
from assistant.model.event import Step
from assistant.model.finding import Severity
from assistant.model.visible import visible
from assistant.session.state import Page, Phase, State
from assistant.wizard import html
from assistant.wizard.footer import about, word
from assistant.wizard.shared_widgets import Foot, Head
from assistant.wizard.stage import stage, unresolved

COMMAND = "python -m pip install ipywidgets anywidget"
# Where Jupyter's server has its front end in an environment of its own, that may lack a widget library. The kernel
# cannot see it, so the hint is always sent. It comes into sight after some seconds, unless the head's style sheet,
# which hides it, has arrived by then.
LATE = """
.ptsa-late { position: absolute; visibility: hidden; animation: ptsa-late 0s 6s forwards; }
@keyframes ptsa-late { to { position: static; visibility: visible; } }
"""


def instead_of_wizard() -> str:
    """Say, in plain text, why there are no controls where the server knows no widgets at all, and what to do."""
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


def banner(state: State) -> Markup:
    """Say what is missing where the server knows widgets but not the head's, and that a machine is simulated."""
    text = say("The setup cannot be drawn: Jupyter's own environment lacks anywidget, or has one that is too old.")
    then = say("Run this there, restart Jupyter and open this page again:")
    late = tag("div", f"{text} {then} ", tag("code", COMMAND), class_="ptsa-late")
    return style(LATE) + late + (simulation(state.machine) if state.machine else "")


def simulation(machine: str) -> Markup:
    """Name the machine that is simulated, and the source of what is known of it."""
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
    """Bring the head up to date."""
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
    head.view = f"{state.page.value} {stage(state).value}" if state.page is Page.SETUP else state.page.value
    if state.page is Page.ENVIRONMENTS and state.environments.repair:
        head.view += " difference"
    head.status = _status(state)


def _status(state: State) -> str:
    """Say in one line what is going on, or how the last task ended."""
    if state.running:
        progress = state.doing.progress
        text = visible(render(progress.text)) if progress else ""
        stopping = say("Stopping; changes made so far are being rolled back.") if state.stopping else ""
        if state.running.is_errand:
            return stopping or text or word(state.environments.status)
        return about(state.running.step, stopping or text or word(state.status(state.running.step)))
    if state.page is Page.ENVIRONMENTS:
        status = state.environments.status
        return say("My environments: {text}", text=word(status)) if status.phase is not Phase.LOCKED else ""
    if unresolved(state):
        return visible(render(state.status(Step.INSTALL).message))
    reached = [step for step in Step if state.status(step).phase not in {Phase.LOCKED, Phase.READY}]
    return about(reached[-1], word(state.status(reached[-1]))) if reached else ""


def draw_progress(foot: Foot, state: State, since: float) -> None:
    """Bring the bar up to date; `since` is when the running task began, in seconds since 1970."""
    foot.words = {"progress": say("Progress"), "elapsed": say("{time} so far")}
    progress = state.doing.progress if state.running else None
    share = progress.share if progress else None
    shown = {
        "running": state.running is not None,
        "quiet": bool(state.running and state.running.only_reads),
        "share": None if share is None else int(100 * share),
        "text": visible(render(progress.text)) if progress else "",
        "since": since,
    }
    foot.send_progress(shown, {"figures": render(progress.figures) if progress else ""})

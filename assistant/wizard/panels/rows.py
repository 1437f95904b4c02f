"""What the page of the environments shows: a row for each, what a check found, what a change would do."""

from __future__ import annotations

from pathlib import Path

from assistant.host.folders import shortened
from assistant.i18n import as_typed, render, say
from assistant.markup import Markup, joined, tag
from assistant.model.errors import Cancelled
from assistant.model.finding import Severity
from assistant.session.state import Phase, State, Task
from assistant.session.survey import Known, Repair, Survey, move_words
from assistant.session.wanted import mendable
from assistant.wizard import html


def draw_lead(state: State) -> Markup:
    """Write the heading, how the last task ended, and what the last change reported."""
    survey = state.survey
    waits = state.running is not None and not state.running.is_errand
    lead = say("The list comes when the work below is done.") if waits else say("Looking for environments …")
    if state.errand.phase is Phase.FAILED:
        lead = ""
    if survey:
        lead = say(
            "Nothing in an environment is started until you press one of its buttons; "
            "before that, what you see is read from its files."
        )
    if survey and not survey.environments and state.errand.phase is Phase.DONE:
        lead = say("No environments were found.")
    notes = joined(map(html.finding, survey.notes)) if survey else html.NOTHING
    known = survey.of(state.picked) if survey else None
    told = draw_known(known) if known and known.checked and state.errand.phase is Phase.DONE else html.NOTHING
    return html.heading(say("On this machine"), lead) + _failure(state) + notes + told


def draw_known(known: Known) -> Markup:
    """Tell what a check found: that all is well, or each problem with its fixes."""
    size = say("{size} MB on disk.", size=known.size // 10**6) if known.size else ""
    if known.findings:
        title = tag("p", tag("strong", known.name), f": {size}" if size else "")
        return title + joined(map(html.finding, known.findings))
    text = say("{name}: {state}", name=known.name, state=known.state)
    return html.note(Severity.OK, f"{text} {size}".strip())


def draw_repair(state: State, repair: Repair) -> Markup:
    """Show what would change, what that mends and what it leaves as it is."""
    running = state.running is Task.REPAIR
    known = state.survey.of(repair.path) if state.survey else None
    name = known.name if known else Path(repair.path).name
    title = say("Mending {name} …", name=name) if running else say("What would change in {name}", name=name)
    moves = tag("ul", *(tag("li", move_words(move)) for move in repair.difference.moves), class_="ptsa-moves")
    return joined(
        [
            html.heading(title, "" if running else say("Nothing has been changed yet.")),
            _failure(state),
            html.section(say("Packages"), moves),
            html.section(say("What this mends"), html.bullets([as_typed(one.text) for one in repair.mends], "ok")),
            html.section(say("What stays as it is"), joined(map(html.finding, repair.remains))),
            joined(map(html.finding, repair.difference.findings)),
        ]
    )


def _failure(state: State) -> Markup:
    errand = state.errand
    if state.question and state.running:
        return html.note(Severity.WARNING, state.question)
    if errand.phase is not Phase.FAILED:
        return html.NOTHING
    severity = Severity.INFO if errand.exit_code == Cancelled.exit_code else Severity.ERROR
    return html.failure(errand.message, errand.hint, severity)


def caption(survey: Survey) -> str:
    """Say where was looked, and whether that was everywhere."""
    where = say(
        "Searched for: Jupyter kernels, virtual environments, conda, uv, "
        "Stability Matrix, ComfyUI, InvokeAI and others."
    )
    short = say("There are more folders than could be searched; name one below.") if survey.cut_short else ""
    return f"{where} {short}".strip()


def row_of(known: Known) -> dict[str, object]:
    """Put what is known of an environment into words for its row."""
    buttons = [("check", say("Check"))] if not (known.own or known.unread) else []
    buttons += [("mend", say("Mend …"))] if mendable(known) else []
    buttons += [("undo", say("Undo"))] if known.undo and not known.others else []
    buttons += [("open", say("Open a notebook"))] if known.kernels and known.torch and not known.own else []
    buttons += [("remove", say("Remove …"))] if known.made and not (known.own or known.others) else []
    return {
        "path": known.path,
        "light": known.light.value,
        "word": render(known.light.word),
        "name": known.name,
        "keeper": render(known.keeper),
        "place": shortened(known.path),
        "torch": render(known.build),
        "python": f"Python {known.python}" if known.python else "",
        "state": as_typed(known.state),
        "buttons": buttons,
    }

"""A setup as one page to keep or to send: it can only be read, runs no script, and has private things taken out."""

from __future__ import annotations

from assistant.host.live import private_names_here
from assistant.i18n import say
from assistant.model.finding import Severity
from assistant.model.report import Step
from assistant.model.visible import Markup, joined, tag, web_page
from assistant.privacy import redact
from assistant.session.state import Phase, State
from assistant.wizard import html
from assistant.wizard.head import draw_simulation, status_word, titles, with_step
from assistant.wizard.panels import (
    PACK,
    PAGE,
    draw_causes,
    draw_checks,
    draw_commands,
    draw_machine,
    draw_ready,
    draw_why,
    failure,
    log_view,
    plan_headline,
    read_files,
    zip_files,
)
from assistant.wizard.shared_widgets import STATIC

SIGNS = {Phase.DONE: "ok", Phase.FAILED: "error", Phase.STALE: "stale"}  # of steps that were reached
# A browser that opens the page loads nothing and runs nothing, whatever a text might hold.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
OUTSIDE = "body { margin: 1.5rem; background: #fff; } .ptsa-wizard { margin: auto; }"


def write_page(state: State) -> str:
    """Return a setup as a page of HTML, in the language in force, without private information.

    It has the steps that are done, failed or to be repeated.
    """
    shown = redact(state, known=private_names_here())
    steps = [
        tag(
            "section",
            html.heading(titles()[step]),
            _draw_result(shown, step),
            failure(shown, step),
            html.paragraph(with_step(step, status_word(status)), SIGNS[status.phase]),
        )
        for step in Step
        if (status := shown.status(step)).phase in SIGNS
    ]
    banner = draw_simulation(state.machine) if state.machine else ""
    sheet = (STATIC / "wizard.css").read_text(encoding="utf-8") + OUTSIDE
    return web_page(say("Set up PyTorch"), POLICY, sheet, joined([banner, *steps]), "ptsa-wizard")


def _draw_result(state: State, step: Step) -> Markup:  # noqa: PLR0911 - one for each step
    """Return the result of a step, as the wizard shows it; nothing if it has none."""
    plan, found, report = state.plan, state.detection, state.report
    match step:
        case Step.DETECT:
            return draw_machine(state) + joined(map(html.finding, found.findings if found else ()))
        case Step.PLAN if plan and found and state.planning:
            warnings = joined(html.note(Severity.WARNING, line) for line in plan.warnings)
            return html.paragraph(plan_headline(plan, found.machine)) + warnings + draw_why(state, state.planning, plan)
        case Step.INSTALL if state.preview:
            return draw_commands(state) + draw_ready(state)
        case Step.VERIFY if report:
            return draw_checks(report)
        case Step.DIAGNOSE:
            return draw_causes(state) + html.details(say("Log"), log_view(state.log))
        case Step.EXPORT:
            return html.bullets(state.exported.files)
        case _:
            return html.NOTHING


def find_file(state: State, key: str) -> tuple[str, bytes] | None:
    """Return name and content of the file that a link of the export page asks for by `key`.

    They are for `PAGE` the page as it would be written now, for `PACK` a zip of all files, and for a number the file at
    that place among them. None for any other key, before any file is written, and if the file cannot be read.
    """
    if key == PAGE and state.exported.files:
        return PAGE, write_page(state).encode()
    if key == PACK and state.exported.files:
        return PACK, zip_files(state.exported.files)
    paths = [path for number, path in enumerate(state.exported.files) if str(number) == key]
    return next(((file.name, file.content) for file in read_files(paths) if not file.fault), None)

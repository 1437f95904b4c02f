"""A setup as one page to keep or to send: it can only be read, runs no script, and has private things taken out."""

from __future__ import annotations

from assistant.host.identity import known_here
from assistant.i18n import language, say
from assistant.model.event import Step
from assistant.privacy import redact
from assistant.session.nouns import Phase, State
from assistant.wizard import html
from assistant.wizard.app import simulation
from assistant.wizard.flow import about, titles, word
from assistant.wizard.panels import PANELS, Panel
from assistant.wizard.panels.base import log_view
from assistant.wizard.panels.verify import plots
from assistant.wizard.stepper import STATIC

SIGNS = {Phase.DONE: "ok", Phase.FAILED: "error", Phase.STALE: "stale"}  # of steps that were reached
# A browser that opens the page loads nothing and runs nothing, whatever a text might hold.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
OUTSIDE = "body { margin: 1.5rem; background: #fff; } .ptsa-wizard { margin: auto; }"


def page(state: State) -> str:
    """Give the HTML of a setup, step by step as the panels draw it, in the language in force."""
    shown = redact(state, known=known_here())
    title = html.esc(say("Set up PyTorch"))
    style = (STATIC / "wizard.css").read_text(encoding="utf-8")
    steps = "".join(_step(shown, step, PANELS[step]) for step in Step if shown.status(step).phase in SIGNS)
    banner = simulation(state.machine) if state.machine else ""
    return (
        f'<!doctype html>\n<html lang="{language().replace("_", "-")}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{title}</title><style>{style}{OUTSIDE}</style></head>"
        f'<body><main class="ptsa-wizard"><h1>{title}</h1>{banner}{steps}</main></body></html>\n'
    )


def _step(state: State, step: Step, kind: type[Panel]) -> str:
    panel = kind.__new__(kind)  # without its widgets: to draw, a panel needs to know its step only
    panel.step = step
    phase = state.status(step).phase
    stands = html.paragraph(about(step, word(state.status(step))), SIGNS[phase])
    if step is Step.EXPORT:
        return f"<section>{html.heading(titles()[step])}{stands}{html.bullets(state.exported)}</section>"
    more = {Step.VERIFY: plots(state), Step.DIAGNOSE: html.details(say("Log"), log_view(state.log))}.get(step, "")
    return f"<section>{panel.draw(state)}{panel.failure(state)}{stands}{more}</section>"

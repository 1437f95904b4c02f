"""A setup as one page to keep or to send: it can only be read, runs no script, and has private things taken out."""

from __future__ import annotations

from assistant.host.redact import own_secrets, redact_text
from assistant.i18n import language, say
from assistant.model.event import Step
from assistant.model.record import from_plain, to_plain
from assistant.session.nouns import Phase, State
from assistant.wizard import html
from assistant.wizard.app import simulation
from assistant.wizard.flow import about, titles, word
from assistant.wizard.panels import PANELS, Panel
from assistant.wizard.panels.base import log_view
from assistant.wizard.panels.verify import plots
from assistant.wizard.stepper import STATIC

__all__ = ["page"]

# What others wrote freely: in it, four numbers with dots are an address, elsewhere a version.
FREE = frozenset({"log", "pasted", "statuses", "findings", "diagnoses"})
SIGNS = {Phase.DONE: "ok", Phase.FAILED: "error", Phase.STALE: "stale"}  # of steps that were reached
# A browser that opens the page loads nothing and runs nothing, whatever a text might hold.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
OUTSIDE = "body { margin: 1.5rem; background: #fff; } .ptsa-wizard { margin: auto; }"


def page(state: State) -> str:
    """Give the HTML of a setup, step by step as the panels draw it, in the language in force."""
    shown = _without_secrets(state)
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


def _without_secrets(state: State) -> State:
    """Take out of every text what tells who and where."""
    secrets = own_secrets()

    def cleaned(value: object, kind: str) -> object:
        if isinstance(value, str):
            for secret in secrets:
                value = value.replace(secret, "SECRET")
            return redact_text(value, kind)
        if isinstance(value, dict):
            return {key: cleaned(item, kind) for key, item in value.items()}
        return [cleaned(item, kind) for item in value] if isinstance(value, list | tuple) else value

    plain = to_plain(state)
    fields = plain.items() if isinstance(plain, dict) else ()
    kept = {name: cleaned(value, "" if name in FREE else "packages") for name, value in fields}
    return from_plain(kept, State, "the setup")

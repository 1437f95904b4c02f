"""What every panel shares: an HTML part drawn from the state, controls that post actions, the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import ipywidgets as widgets

from assistant.i18n import say
from assistant.model.errors import Cancelled
from assistant.model.event import Step
from assistant.model.finding import Severity
from assistant.session.actions import Action
from assistant.session.nouns import Phase, State
from assistant.wizard import html
from assistant.wizard.parts import made

Dispatch = Callable[[Action], None]


class Panel:
    """A step's view in three parts: what was found and what will happen (`draw`), what can be changed (`controls`).

    `views` come between: pictures and logs, which are sent on their own. `follow` brings controls and views up to date.
    """

    step: Step

    def __init__(self, dispatch: Dispatch) -> None:
        self.dispatch = dispatch
        self.body = made(widgets.HTML)
        self._quiet = False
        self.handles, self.pictures = tuple(self.controls()), tuple(self.views())

    def controls(self) -> Iterable[widgets.Widget]:
        """Make the panel's own controls, once."""
        return ()

    def views(self) -> Iterable[widgets.Widget]:
        """Make the panel's further pictures, once."""
        return ()

    def draw(self, state: State) -> str:
        """Give the panel's HTML."""
        raise NotImplementedError

    def follow(self, state: State) -> None:
        """Bring controls and views up to date with the state."""

    def update(self, state: State) -> None:
        """Show a state; values that the state sets do not come back as actions of the user."""
        self.body.value = self.draw(state)
        self._quiet = True
        try:
            self.follow(state)
        finally:
            self._quiet = False

    def adopt(self, other: Panel) -> None:
        """Take over what was typed into a panel that this one replaces."""
        self._quiet = True
        for name, old in vars(other).items():
            if isinstance(old, widgets.Text | widgets.Textarea):
                getattr(self, name).value = old.value
        self._quiet = False

    def close(self) -> None:
        """Free the panel's models."""
        for widget in (self.body, *self.handles, *self.pictures):
            widget.close()

    def failure(self, state: State) -> str:
        """Give the sentence and the next step of a failed or outdated step, or the question of a running one."""
        status = state.status(self.step)
        if state.question and status.phase is Phase.RUNNING:
            no = say("Press Yes; or press Cancel to take everything back.")
            return html.note(Severity.WARNING, state.question, html.bullets([no]))
        if status.phase is Phase.FAILED:
            severity = Severity.INFO if status.exit_code == Cancelled.exit_code else Severity.ERROR
            return html.failure(status.message, status.hint, severity)
        if status.phase is Phase.STALE:
            return html.note(Severity.WARNING, say("An earlier answer has changed, so this step should be repeated."))
        return ""

    def on_value(self, widget: widgets.Widget, action: Callable[[Any], Action]) -> None:
        """Post an action when the user changes a control."""

        def changed(change: dict[str, Any]) -> None:
            if not self._quiet:
                self.dispatch(action(change["new"]))

        widget.observe(changed, "value")


def changes() -> str:
    """Give the heading of the controls."""
    title = say("What you can change")
    return f'<h3 class="ptsa-changes">{html.esc(title)}</h3>'


def log_view(lines: Iterable[str], file: str = "") -> str:
    """Give the last lines of a running job, the newest in sight, and the file that holds all of them."""
    text = "\n".join(lines)
    name, where = say("Log"), ""
    if file:
        where = say("The last lines; all of them are in {path}.", path=file)
    box = f'<div class="ptsa-logbox" tabindex="0" role="log" aria-label="{html.esc(name)}">'
    told = f'{box}<pre class="ptsa-log">{html.esc(text)}</pre></div><p class="ptsa-lead">{html.esc(where)}</p>'
    return told if text else ""

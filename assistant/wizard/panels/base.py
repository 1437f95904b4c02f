"""What every panel shares: an HTML part drawn from the state, controls that post actions, the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import ipywidgets as widgets

from assistant.i18n import say
from assistant.markup import Markup, tag
from assistant.model.errors import Cancelled
from assistant.model.event import Step
from assistant.model.finding import Severity
from assistant.session.actions import Action
from assistant.session.state import Phase, State
from assistant.wizard import html
from assistant.wizard.shared_widgets import Drawing, make

Dispatch = Callable[[Action], None]


class Panel:
    """A step's view in three parts: what was found and what will happen (`draw`), what can be changed (`controls`).

    `views` come between: pictures and logs, which are sent on their own. `follow` brings controls and views up to date.
    """

    step: Step

    def __init__(self, dispatch: Dispatch) -> None:
        self.dispatch = dispatch
        self.body = make(Drawing)
        self._quiet = False
        self.handles, self.pictures = tuple(self.controls()), tuple(self.views())

    def controls(self) -> Iterable[widgets.Widget]:
        """Make the panel's own controls, once."""
        return ()

    def views(self) -> Iterable[widgets.Widget]:
        """Make the panel's further pictures, once."""
        return ()

    def draw(self, state: State) -> Markup:
        """Write the panel's HTML."""
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

    def failure(self, state: State) -> Markup:
        """Write the sentence and the next step of a failed or outdated step, or the question of a running one."""
        status = state.status(self.step)
        if state.question and status.phase is Phase.RUNNING:
            no = say("Press Yes to go on, or Cancel to roll everything back.")
            return html.note(Severity.WARNING, state.question, html.bullets([no]))
        if status.phase is Phase.FAILED:
            severity = Severity.INFO if status.exit_code == Cancelled.exit_code else Severity.ERROR
            return html.failure(status.message, status.hint, severity)
        if status.phase is Phase.STALE:
            return html.note(Severity.WARNING, say("An earlier answer has changed, so this step should be repeated."))
        return html.NOTHING

    def on_value(self, widget: widgets.Widget, action: Callable[[Any], Action]) -> None:
        """Post an action when the user changes a control."""

        def changed(change: dict[str, Any]) -> None:
            if not self._quiet:
                self.dispatch(action(change["new"]))

        widget.observe(changed, "value")


def log_view(lines: Iterable[str], file: str = "") -> Markup:
    """Show the last lines of a running job, the newest in sight, and name the file that holds all of them."""
    text = "\n".join(lines)
    if not text:
        return html.NOTHING
    log = tag("pre", text, class_="ptsa-log")
    where = say("The last lines; all of them are in {path}.", path=file) if file else ""
    return tag("div", log, class_="ptsa-logbox", tabindex=0, role="log", aria_label=say("Log")) + html.lead_line(where)

"""What every panel shares: an HTML part drawn from the state, controls that post actions, the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import ipywidgets as widgets

from assistant.i18n import _
from assistant.model.event import Step
from assistant.model.finding import Severity
from assistant.session.state import Action, Phase, State
from assistant.wizard import html

__all__ = ["Panel"]

Dispatch = Callable[[Action], None]


class Panel:
    """A step's view; `draw` gives its HTML, `controls` its widgets, `follow` brings them up to date."""

    step: Step

    def __init__(self, dispatch: Dispatch) -> None:
        self.dispatch = dispatch
        self.body = widgets.HTML()
        self._quiet = False
        self.box = widgets.VBox([self.body, *self.controls()])

    def controls(self) -> Iterable[widgets.Widget]:
        """Make the panel's own controls, once."""
        return ()

    def draw(self, state: State) -> str:
        """Give the panel's HTML."""
        raise NotImplementedError

    def follow(self, state: State) -> None:
        """Bring the controls up to date with the state."""

    def update(self, state: State) -> None:
        """Show a state; values that the state sets do not come back as actions of the user."""
        self.body.value = self.draw(state) + self.failure(state)
        self._quiet = True
        try:
            self.follow(state)
        finally:
            self._quiet = False

    def failure(self, state: State) -> str:
        """Give the sentence and the next step of a failed or outdated step."""
        status = state.status(self.step)
        if status.phase is Phase.FAILED:
            return html.note(Severity.ERROR, status.message, html.bullets([status.hint] if status.hint else []))
        if status.phase is Phase.STALE:
            return html.note(Severity.WARNING, _("An earlier answer has changed, so this step should be repeated."))
        return ""

    def on_value(self, widget: widgets.Widget, action: Callable[[Any], Action]) -> None:
        """Post an action when the user changes a control."""

        def changed(change: dict[str, Any]) -> None:
            if not self._quiet:
                self.dispatch(action(change["new"]))

        widget.observe(changed, "value")


def log_view(lines: Iterable[str]) -> str:
    """Give the last lines of a running job, the newest in sight."""
    text = "\n".join(lines)
    box = f'<div class="ptsa-logbox" tabindex="0" role="log" aria-label="{html.esc(_("Log"))}">'
    return f'{box}<pre class="ptsa-log">{html.esc(text)}</pre></div>' if text else ""

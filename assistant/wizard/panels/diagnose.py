"""Diagnose: what is worth mending, gathered from detection and verification."""

from __future__ import annotations

from assistant.i18n import _
from assistant.model.finding import Severity
from assistant.session.state import State
from assistant.wizard import html
from assistant.wizard.panels.base import Panel

__all__ = ["DiagnosePanel"]


class DiagnosePanel(Panel):
    """The findings with their remedies."""

    def draw(self, state: State) -> str:
        """Show every finding, or that there is none."""
        top = html.heading(_("Is anything to mend?"), _("What detection and verification noticed."))
        worth = [finding for finding in state.findings if finding.severity in {Severity.WARNING, Severity.ERROR}]
        return top + (
            "".join(html.finding(finding) for finding in worth) or html.note(Severity.OK, _("Nothing needs mending."))
        )

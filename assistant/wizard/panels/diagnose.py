"""Diagnose: the causes of what failed or of a pasted log, and what else is worth mending."""

from __future__ import annotations

from collections.abc import Iterable

import ipywidgets as widgets

from assistant.i18n import _
from assistant.model.event import Step
from assistant.model.finding import Diagnosis, Severity
from assistant.session.state import Begin, Paste, Phase, State, Task
from assistant.wizard import html
from assistant.wizard.panels.base import Panel

__all__ = ["DiagnosePanel"]

SURE = 0.8  # confidence from which a cause is told as a problem, below it as a note


class DiagnosePanel(Panel):
    """Causes with their ways out, findings, and a place to paste a log from anywhere."""

    def controls(self) -> Iterable[widgets.Widget]:
        """Let the user paste a log."""
        self.log = widgets.Textarea(
            description=_("A log"), placeholder=_("Paste an error message or a whole log."), rows=6
        )
        self.find = widgets.Button(description=_("Find the cause"))
        self.find.on_click(lambda _button: self._find())
        return [self.log, self.find]

    def _find(self) -> None:
        self.dispatch(Paste(log=self.log.value))
        self.dispatch(Begin(task=Task.DIAGNOSE))

    def draw(self, state: State) -> str:
        """Show causes and findings, or that there is none."""
        top = html.heading(_("Is anything to mend?"), _("What detection and verification noticed, and what failed."))
        worth = [finding for finding in state.findings if finding.severity in {Severity.WARNING, Severity.ERROR}]
        told = "".join(map(_cause, state.diagnoses)) + "".join(map(html.finding, worth))
        following = _("What is pasted is read here, in this kernel, and sent nowhere. Nothing is changed.")
        return (
            top
            + html.section(_("What was found"), told or _nothing(state))
            + html.section(_("What will happen"), f"<p>{html.esc(following)}</p>")
        )

    def follow(self, state: State) -> None:
        """Keep the controls still while something runs."""
        self.log.disabled = self.find.disabled = state.running is not None


def _nothing(state: State) -> str:
    if state.status(Step.DIAGNOSE).phase is not Phase.DONE:
        return ""
    if state.pasted:
        return html.note(Severity.INFO, _("Nothing in this log points to a cause that is known here."))
    return html.note(Severity.OK, _("Nothing needs mending."))


def _cause(diagnosis: Diagnosis) -> str:
    evidence = html.code("\n".join(diagnosis.evidence)) if diagnosis.evidence else ""
    severity = Severity.ERROR if diagnosis.confidence >= SURE else Severity.INFO
    text = f"{diagnosis.title}. {diagnosis.cause}"
    return html.note(severity, text, html.details(_("What shows it"), evidence) + html.remedies(diagnosis.remedies))

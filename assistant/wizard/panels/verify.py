"""Verify: every check with its result, and a picture of the times."""

from __future__ import annotations

from collections.abc import Iterable

import ipywidgets as widgets

from assistant.i18n import _
from assistant.model.finding import Severity
from assistant.model.report import Check, Status, duration, status_word
from assistant.session.state import State
from assistant.verify.run import check_title
from assistant.wizard import html
from assistant.wizard.panels.base import Panel, log_view

__all__ = ["VerifyPanel"]

SIGNS = {Status.PASSED: "✓", Status.SLOW: "!", Status.SKIPPED: "–"}


class VerifyPanel(Panel):
    """The results as a table and a plot."""

    def controls(self) -> Iterable[widgets.Widget]:
        """Keep the plot apart: it is drawn once per report."""
        self.plot = widgets.HTML()
        self.log = widgets.HTML()
        return [self.plot, self.log]

    def draw(self, state: State) -> str:
        """Show the table."""
        top = html.heading(
            _("Does it compute correctly?"),
            _("Each check runs in the new environment and is compared with NumPy in double precision."),
        )
        report = state.report
        if report is None:
            return top
        failed = sum(check.status not in SIGNS for check in report.checks)
        text = (
            _("All checks passed on the device {device}.")
            if report.passed
            else _("{failed} checks failed on {device}.")
        )
        severity = Severity.OK if report.passed else Severity.ERROR
        headings = (_("Check"), _("Result"), _("Time"), _("Error"), _("Detail"))
        return (
            top
            + html.note(severity, text.format(device=report.device, failed=failed))
            + html.table((_row(check) for check in report.checks), headings)
        )

    def follow(self, state: State) -> None:
        """Show the plot and the log."""
        self.log.value = log_view(state.log)
        self.plot.value = "".join(f'<div class="ptsa-plot">{figure}</div>' for figure in state.figures.values())


def _row(check: Check) -> tuple[str, ...]:
    error = "" if check.error is None else f"{check.error:.1e}"
    return (
        check_title(check.key),
        f"{SIGNS.get(check.status, '✗')} {status_word(check.status)}",
        duration(check.seconds),
        error,
        check.detail,
    )

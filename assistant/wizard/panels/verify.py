"""Verify: every check with its result, and a picture of the times."""

from __future__ import annotations

from collections.abc import Iterable

import ipywidgets as widgets

from assistant.i18n import _
from assistant.model.finding import Severity
from assistant.model.report import Check, Report, Status, duration, status_word, verdict
from assistant.model.speed import limit_rows, speed_headings, speed_rows
from assistant.session.state import Fill, State
from assistant.verify.run import check_title
from assistant.wizard import html
from assistant.wizard.panels.base import Panel, log_view
from assistant.wizard.parts import made

__all__ = ["VerifyPanel"]

SIGNS = {Status.PASSED: "✓", Status.SLOW: "!", Status.SKIPPED: "–"}


class VerifyPanel(Panel):
    """The results as a table and a plot."""

    def controls(self) -> Iterable[widgets.Widget]:
        """Let the user choose how thoroughly to look."""
        options = [
            (_("The most important operations (seconds)"), "quick"),
            (_("Everything, and speed (a minute)"), "full"),
        ]
        self.level = made(widgets.Dropdown, options=options, description=_("How much"))
        self.on_value(self.level, lambda level: Fill(field="level", value=level))
        return [self.level]

    def views(self) -> Iterable[widgets.Widget]:
        """Keep the plot apart: it is drawn once per report."""
        self.plot = made(widgets.HTML)
        self.log = made(widgets.HTML)
        return [self.plot, self.log]

    def draw(self, state: State) -> str:
        """Show the table."""
        top = html.heading(
            _("Does it compute correctly?"),
            _("Each check runs in the new environment and is compared with NumPy in double precision."),
        )
        report = state.report
        following = _("The checks run in a process of their own, each with a time limit. Nothing is changed.")
        if report is None:
            return top + html.section(_("What will happen"), html.paragraph(following))
        severity = Severity.OK if report.passed else Severity.WARNING if report.usable else Severity.ERROR
        headings = (_("Check"), _("Result"), _("Time"), _("Error"), _("Detail"))
        found = html.note(severity, verdict(report)) + html.table((_row(check) for check in report.checks), headings)
        return top + html.section(_("What was found"), found) + _speeds(report)

    def follow(self, state: State) -> None:
        """Show the plot and the log."""
        self.level.value = state.level
        self.level.disabled = state.running is not None
        self.log.value = log_view(state.log, state.log_file)
        self.plot.value = "".join(f'<div class="ptsa-plot">{figure}</div>' for figure in state.figures.values())


def _speeds(report: Report) -> str:
    """Show what was measured, beside this machine's CPU and what the device can reach; nothing after a quick look."""
    rows = [(check_title(key), *cells) for key, *cells in speed_rows(report.speeds, report.limits)]
    limits = html.bullets(": ".join(row) for row in limit_rows(report.limits))
    told = html.table(rows, speed_headings()) + html.details(_("The limits"), limits)
    return html.section(_("How fast it is"), told) if rows else ""


def _row(check: Check) -> tuple[str, ...]:
    error = "" if check.error is None else f"{check.error:.1e}"
    return (
        check_title(check.key),
        f"{SIGNS.get(check.status, '✗')} {status_word(check.status)}",
        duration(check.seconds),
        error,
        check.detail,
    )

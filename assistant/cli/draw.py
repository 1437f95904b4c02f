"""How the terminal draws facts, plans and progress; text from outside is never read as markup."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from assistant.cli.console import console
from assistant.i18n import Message, _, as_typed, render, say
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Detection
from assistant.model.plan import Planning
from assistant.model.report import Report, Status
from assistant.views import (
    CHECK_HEADINGS,
    SPEED_HEADINGS,
    check_rows,
    machine_rows,
    plan_summary,
    rejected_name,
    rejection_reason,
    remedy_lines,
    speed_rows,
)

SIGNS = {
    Severity.OK: ("✓", "green"),
    Severity.INFO: ("·", "blue"),
    Severity.WARNING: ("!", "yellow"),
    Severity.ERROR: ("✗", "red"),
}
STYLES = {Status.PASSED: "green", Status.SKIPPED: "dim"}


def draw_detection(found: Detection) -> None:
    """Print what was found on a machine: its facts, its GPUs, what is worth knowing."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    for label, value in machine_rows(found.machine):
        table.add_row(Text(render(label), style="bold"), Text(render(value)))
    console.print(table)
    draw_findings(found.findings)


def draw_findings(findings: Iterable[Finding]) -> None:
    """Print findings, one line each, remedies below."""
    for finding in findings:
        sign, style = SIGNS[finding.severity]
        console.print(Text.assemble((f"{sign} ", style), render(finding.text)))
        for remedy in finding.remedies:
            draw_remedy(remedy, "    →", style="dim", hide="check")


def draw_remedy(remedy: Remedy, sign: str, style: str, hide: str = "") -> None:
    """Print a way out behind its sign, and below it what to set, to type and to change; one kind may be hidden."""
    console.print(Text(f"{sign} {as_typed(remedy.text)}"))
    for kind, line in remedy_lines(remedy):
        if kind == hide:
            continue
        text = as_typed(line)
        if kind == "check":
            text = say("check: {command}", command=text)
        elif kind == "place":
            text += ":"
        indent = " " * (len(sign) + 1 + 2 * (kind == "change"))
        look = {"check": "green", "place": ""}.get(kind, style)
        console.print(Text(indent + text, style=look))


def draw_planning(planning: Planning, *, brief: bool = False) -> None:
    """Print the chosen plan with its reasons, the other plans in a line each, and what was rejected.

    `brief` leaves out every why, for who prints the whole explanation behind it.
    """
    for index, plan in enumerate(planning.plans):
        summary = render(plan_summary(plan))
        console.print(Text(f"→ {summary}", style="bold") if index == 0 else Text(f"  {summary}"))
        if brief:
            continue
        file = plan.wheel.filename if plan.wheel else None
        _bullets((reason for reason in plan.reasons if index == 0 or (file and file in render(reason))), "  ", "·")
        _bullets(plan.warnings, "  ", "!")
    for rejection in () if brief else planning.rejected:
        console.print(Text(f"✗ {rejected_name(rejection)}: {render(rejection_reason(rejection))}", style="dim"))


def draw_report(report: Report) -> None:
    """Print every check of a verification."""
    styles = (STYLES.get(check.status, "red") for check in report.checks)
    rows = [
        (row.title, Text(render(row.result), style=style), row.later, row.detail)
        for row, style in zip(check_rows(report), styles, strict=True)
    ]
    named = CHECK_HEADINGS
    draw_rows((named.title, named.result, _("Time"), named.detail), rows)
    draw_rows(SPEED_HEADINGS, speed_rows(report))


def draw_rows(headings: Iterable[str | Message], rows: Iterable[Iterable[str | Message | Text]]) -> None:
    """Print a table; nothing at all where it has no rows."""
    table = Table(*map(render, headings), box=None, padding=(0, 2))
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(render(cell)) for cell in row))
    if table.rows:
        console.print(table)


def _bullets(lines: Iterable[str | Message], indent: str, sign: str) -> None:
    for line in lines:
        console.print(Text(f"{indent}  {sign} {as_typed(line)}"))

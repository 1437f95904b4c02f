"""How the terminal draws facts, plans, causes, reports and models; text from outside is never read as markup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from assistant.cli.console import console
from assistant.i18n import Message, _, as_typed, render, say
from assistant.model.finding import Diagnosis, Finding, Remedy, Severity
from assistant.model.report import Status, duration
from assistant.model.visible import one_line, visible
from assistant.onnx.answers import (
    HEADINGS_OF_AGREEMENT,
    HEADINGS_OF_CHANGES,
    HEADINGS_OF_RUNS,
    Attempt,
    Checked,
    Conversion,
    operator_rows,
    operator_table,
    rows_of_agreement,
    rows_of_changes,
    rows_of_runs,
)
from assistant.views import (
    CHECK_HEADINGS,
    SPEED_HEADINGS,
    against,
    check_rows,
    machine_rows,
    plan_summary,
    rejected_name,
    remedy_lines,
    speed_rows,
)

if TYPE_CHECKING:
    from assistant.diagnose import Log, Rule
    from assistant.export.drift import Drift
    from assistant.model.machine import Detection
    from assistant.model.plan import Plan, Planning
    from assistant.model.report import Report
    from assistant.session.apply import Course

SIGNS = {
    Severity.OK: ("✓", "green"),
    Severity.INFO: ("·", "blue"),
    Severity.WARNING: ("!", "yellow"),
    Severity.ERROR: ("✗", "red"),
}
STYLES = {Status.PASSED: "green", Status.SKIPPED: "dim"}
LOG_WIDTH = 160  # chosen: characters of a log's line, of which some hold thousands


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
    """Print a remedy behind its sign, and below it what to set, to type and to change; one kind may be hidden."""
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

    With `brief`, reasons are left out: the caller prints the full explanation.
    """
    for index, plan in enumerate(planning.plans):
        if index == 0:
            draw_plan(plan, brief=brief)
            continue
        console.print(Text(f"  {render(plan_summary(plan))}"))
        if not brief:
            file = plan.wheel.filename if plan.wheel else None
            _bullets((reason for reason in plan.reasons if file and file in render(reason)), "·")
            _bullets(plan.warnings, "!")
    for rejection in () if brief else planning.rejected:
        console.print(Text(f"✗ {rejected_name(rejection)}: {render(against(rejection))}", style="dim"))


def draw_plan(plan: Plan, *, brief: bool = False) -> None:
    """Print the chosen plan with its reasons and warnings; with `brief` only its name."""
    console.print(Text(f"→ {render(plan_summary(plan))}", style="bold"))
    if not brief:
        _bullets(plan.reasons, "·")
        _bullets(plan.warnings, "!")


def _bullets(lines: Iterable[str | Message], sign: str) -> None:
    for line in lines:
        console.print(Text(f"    {sign} {as_typed(line)}"))


def draw_course(course: Course) -> None:
    """Print what has changed on the machine, and whether the configuration is applied to the letter."""
    draw_drifts(course.differs)
    if course.plan:
        requirements = ", ".join(one_line(text)[:300] for text in course.plan.requirements)
        console.print(Text(say("The configuration is applied to the letter: the same packages, file by file.")))
        console.print(Text(f"    {requirements}", style="dim"))
    else:
        console.print(Text(say("The configuration does not fit this machine as it is, so a new plan is made.")))


def draw_drifts(found: Iterable[Drift]) -> None:
    """Print differences, one line each."""
    for drift in found:
        console.print(Text(f"  ≠ {drift.text}", style="yellow"))


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
    """Print a table; nothing at all where it has no rows. What is too long for its column goes on below."""
    table = Table(box=None, padding=(0, 2))
    for heading in headings:
        table.add_column(render(heading), overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(render(cell)) for cell in row))
    if table.rows:
        console.print(table)


def draw_diagnoses(found: Iterable[tuple[Diagnosis, int | None]], log: Log | None = None) -> None:
    """Print causes, best first: the line of the log that shows it, why, the fixes, how to tell that one worked."""
    for diagnosis, line in found:
        sign = ("✗ ", "red") if diagnosis.sure else ("? ", "yellow")
        console.print(Text.assemble(sign, (render(diagnosis.title), "bold"), (f"  {diagnosis.confidence:.0%}", "dim")))
        if log and line is not None:
            _draw_context(log, line)
        console.print(Text(f"  {render(diagnosis.cause)}"))
        for number, remedy in enumerate(diagnosis.remedies, 1):
            draw_remedy(remedy, f"  {number}.", style="cyan")
        for source in diagnosis.sources:
            console.print(Text(f"  {source}", style="dim"))
        console.print()


def _draw_context(log: Log, index: int) -> None:
    marked = log.lines[index][0]
    for number, line in log.around(index, 2):
        text = visible(line)[:LOG_WIDTH]
        style = "bold red" if number == marked else "dim"
        console.print(Text(f"  {'→' if number == marked else ' '} {number:>6} │ {text}", style=style))


def draw_unknown(rules: Iterable[Rule]) -> None:
    """Say that no rule matches this log, which come nearest, and how to ask others."""
    console.print(Text(say("No known problem matches this log.")))
    for rule in rules:
        console.print(Text(say("  nearest: {title} ({key})", title=say(rule.title), key=rule.key), style="dim"))
    text = say("If something did fail, `assistant diagnose LOG --report FILE.md` writes a report to paste.")
    console.print(Text(as_typed(text)))


def draw_check(answer: Checked) -> None:
    """Print the verdict, a row for each operator, and what to do."""
    console.print(Text(render(answer.verdict), style="bold"))
    if answer.npu:
        console.print(Text(render(answer.npu)))
    table = Table(box=None, padding=(0, 2))
    headings, rows = operator_table(answer)
    for place, heading in enumerate(headings):
        table.add_column(render(heading), justify="right" if 0 < place < len(headings) - 1 else "left")
    for counts, (operator, *cells) in zip(operator_rows(answer), rows, strict=True):
        style = "red" if counts.nowhere else "yellow" if counts.cpu else ""
        table.add_row(Text(render(operator), style=style), *(Text(render(cell)) for cell in cells))
    console.print(table)
    draw_findings(answer.findings)


def draw_conversion(done: Conversion) -> None:
    """Print what was changed and where the result is."""
    draw_rows(HEADINGS_OF_CHANGES, rows_of_changes(done))
    text = say("Written: {file}, opset {opset}, in {seconds}.")
    console.print(Text(text.format(file=done.output, opset=done.opset, seconds=duration(done.seconds)), style="bold"))


def draw_attempt(answer: Attempt) -> None:
    """Print the verdict, the two runs, and how each output compares."""
    if answer.passed:  # a failure ends the command with its sentence
        console.print(Text(render(answer.verdict), style="bold green"))
    for note in answer.notes:
        console.print(Text(render(note)))
    draw_rows(HEADINGS_OF_RUNS, rows_of_runs(answer))
    draw_rows(HEADINGS_OF_AGREEMENT, rows_of_agreement(answer))

"""How the terminal draws facts, plans, causes, reports and models; text from outside is never read as markup."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from assistant.cli.console import console, draw_command, draw_rows
from assistant.host.process import shell_for
from assistant.i18n import Message, _, as_typed, ngettext, render, say
from assistant.model.finding import Diagnosis, Finding, Remedy, Severity
from assistant.model.report import Status, verdict
from assistant.model.visible import one_line, visible
from assistant.views import (
    CHECK_HEADINGS,
    change_rows,
    check_rows,
    folded,
    gpu_line,
    machine_rows,
    plan_summary,
    rejected_name,
    rejection_reason,
    remedy_lines,
    speed_lines,
)

if TYPE_CHECKING:
    from assistant.diagnose import Log
    from assistant.export import Drift
    from assistant.install import Prepared
    from assistant.model.machine import Detection
    from assistant.model.plan import Plan, Planning
    from assistant.model.report import Report
    from assistant.session.apply import Approach
    from assistant.session.state import State, Unexplained

SIGNS = {
    Severity.OK: ("✓", "green"),
    Severity.INFO: ("·", "blue"),
    Severity.WARNING: ("!", "yellow"),
    Severity.ERROR: ("✗", "red"),
}
STYLES = {Status.PASSED: "green", Status.SKIPPED: "dim"}
MOST_FILES = 9  # chosen: whose names are printed
CAUSES = 3  # chosen: that are drawn of one log or failure, best first
LOG_WIDTH = 160  # chosen: characters of a log's line, of which some hold thousands


def draw_detection(found: Detection) -> None:
    """Print what was found on a machine: its facts, its GPUs, what is worth knowing."""
    draw_rows((), ((Text(render(label), style="bold"), value) for label, value in machine_rows(found.machine)))
    draw_findings(found.findings)


def draw_findings(findings: Iterable[Finding]) -> None:
    """Print findings, one line each, remedies below."""
    for finding in findings:
        sign, style = SIGNS[finding.severity]
        console.print(Text.assemble((f"{sign} ", style), render(finding.text)))
        for remedy in finding.remedies:
            draw_remedy(remedy, "    →", style="dim", hide="check")


def draw_remedy(remedy: Remedy, sign: str, style: str, hide: str = "", system: str | None = None) -> None:
    """Print a remedy behind its sign, and below what to set, type and change on a system; one kind may be hidden."""
    console.print(Text(f"{sign} {as_typed(remedy.text)}"))
    for kind, line in remedy_lines(remedy, shell_for(system)):
        if kind == hide:
            continue
        text = as_typed(line)
        if kind == "check":
            text = say("check: {command}", command=text)
        elif kind == "plan" and remedy.commands:
            text = say("or in a new environment: {command}", command=text)
        elif kind == "place":
            text += ":"
        indent = " " * (len(sign) + 1 + 2 * (kind == "change"))
        look = {"check": "green", "place": ""}.get(kind, style)
        if kind in {"command", "plan", "check"}:
            draw_command(text, indent, look)
        else:
            console.print(Text(indent + text, style=look))


def draw_planning(planning: Planning, *, brief: bool = False) -> None:
    """Print the chosen plan with its reasons, the other plans, and what was rejected.

    With `brief`, reasons are left out: the caller prints the full explanation.
    """
    for index, plan in enumerate(planning.plans):
        if index == 0:
            draw_plan(plan, brief=brief)
            continue
        console.print(Text(f"  {render(plan_summary(plan))}"))
        if not brief:
            _bullets(plan.warnings, "!")
    for rejection in () if brief else planning.rejected:
        console.print(Text(f"✗ {rejected_name(rejection)}: {render(rejection_reason(rejection))}", style="dim"))


def draw_plan(plan: Plan, *, brief: bool = False) -> None:
    """Print the chosen plan with its reasons and warnings; with `brief` only its name."""
    console.print(Text(f"→ {render(plan_summary(plan))}", style="bold"))
    if not brief:
        _bullets(plan.reasons, "·")
        _bullets(plan.warnings, "!")


def _bullets(lines: Iterable[str | Message], sign: str) -> None:
    for line in lines:
        console.print(Text(f"    {sign} {as_typed(line)}"))


def draw_approach(approach: Approach) -> None:
    """Print what has changed on the machine, and whether the configuration is applied to the letter."""
    draw_drifts(approach.differs)
    if approach.plan:
        requirements = ", ".join(one_line(text)[:300] for text in approach.plan.requirements)
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
    report = folded(report)
    styles = (STYLES.get(check.status, "red") for check in report.checks)
    rows = [
        (row.title, Text(render(row.result), style=style), row.later, row.detail)
        for row, style in zip(check_rows(report), styles, strict=True)
    ]
    named = CHECK_HEADINGS
    draw_rows((named.title, named.result, _("Time"), named.detail), rows)
    for line in speed_lines(report):
        console.print(Text(render(line)))


def draw_diagnoses(
    found: Iterable[tuple[Diagnosis, int | None]], log: Log | None = None, system: str | None = None
) -> None:
    """Print causes, best first: the line of the log that shows it, why, the fixes, how to tell that one worked."""
    for diagnosis, line in islice(found, CAUSES):
        sign = ("✗ ", "red") if diagnosis.sure else ("? ", "yellow")
        console.print(Text.assemble(sign, (render(diagnosis.title), "bold"), (f"  {diagnosis.confidence:.0%}", "dim")))
        if log and line is not None:
            _draw_context(log, line)
        console.print(Text(f"  {render(diagnosis.cause)}"))
        for number, remedy in enumerate(diagnosis.remedies, 1):
            draw_remedy(remedy, f"  {number}.", style="cyan", system=system)
        for source in diagnosis.sources:
            console.print(Text(f"  {source}", style="dim"))
        console.print()


def _draw_context(log: Log, index: int) -> None:
    marked = log.lines[index][0]
    for number, line in log.around(index, 2):
        text = visible(line)[:LOG_WIDTH]
        style = "bold red" if number == marked else "dim"
        console.print(Text(f"  {'→' if number == marked else ' '} {number:>6} │ {text}", style=style))


def draw_unknown(answer: Unexplained) -> None:
    """Say that the cause is not known, what is told, what is wrong anyway, what to find out, and how to ask others."""
    console.print(Text(say("No known problem matches this log.")))
    for symptom in answer.symptoms:
        console.print(Text(say("  What it tells: {symptom}", symptom=symptom.text)))
    draw_findings(answer.findings)
    if answer.question:
        draw_remedy(answer.question, "  ?", style="cyan")
    text = say("If something did fail, `assistant diagnose LOG --report FILE.md` writes a report to paste.")
    console.print(Text(as_typed(text)))


def draw_detected(state: State) -> None:
    """Print what was detected, in a line, and what is wrong."""
    machine = state.detection.machine if state.detection else None
    if machine is None:
        return
    gpus = ", ".join(gpu_line(gpu) for gpu in machine.gpus) or say("no GPU found")
    system = machine.os_version or machine.os
    _draw_done(say("Detect"), say("{system}, Python {python}, {gpus}", system=system, python=machine.python, gpus=gpus))
    draw_findings(state.findings)


def draw_planned(state: State) -> None:
    """Print the plan, in a line, with its reasons."""
    if state.plan:
        _draw_done(say("Plan"), render(plan_summary(state.plan)))
        for line in state.plan.reasons:
            console.print(Text(f"    {render(line)}", style="dim"))
        for line in state.plan.warnings:
            console.print(Text(f"  ! {as_typed(line)}", style="yellow"))


def draw_prepared(state: State) -> None:
    """Print how much would be installed, by which commands."""
    preview = state.preview
    if preview is None:
        return
    count, size = len(preview.resolution.packages), preview.download / 10**6
    changes = change_rows(preview.resolution.versions, preview.site.versions) if preview.site else []
    if preview.ready:
        text = say("  all {count} packages are already in {target}")
    elif preview.site:
        text = say("  {changed} of {count} packages change in {target}, {size:.0f} MB to download")
    else:
        text = say("  {count} packages, {size:.0f} MB to download, into {target}")
    console.print(Text(text.format(count=count, changed=len(changes), size=size, target=preview.target)))
    draw_rows((), ((Text(f"  {name}"), change) for name, change in changes))
    draw_findings(preview.findings)
    for command in preview.commands:
        draw_command(command)


def draw_preview(preview: Prepared) -> None:
    """Print every package with its size, and every file that an installation would write."""
    unknown = say("unknown")
    rows = (
        (one.name, one.version, unknown if one.size is None else f"{one.size / 1e6:.2f} MB", one.url)
        for one in preview.resolution.packages
    )
    draw_rows((say("Package"), say("Version"), say("Size"), say("Source")), rows)
    if preview.ready:
        console.print(say("This environment is there already and holds exactly these packages."))
    for path in preview.writes:
        console.print(Text(say("  writes {path}", path=path)))
    total, fetched = preview.resolution.download / 1e6, preview.download / 1e6
    text = say("  {total:.1f} MB in all, {fetched:.1f} MB of it still to download; nothing was changed")
    console.print(Text(text.format(total=total, fetched=fetched)))


def draw_installed(state: State) -> None:
    """Print where the environment is."""
    if state.environment and state.preview:
        done = say("changed {path}") if state.preview.site else say("created {path}")
        text = say("already there, in {path}") if state.preview.ready else done
        _draw_done(say("Install"), text.format(path=state.environment.path))


def draw_verified(state: State) -> None:
    """Print every check, and the verdict."""
    if state.report:
        draw_report(state.report)
        _draw_done(say("Verify"), render(verdict(state.report)), good=state.report.passed)


def draw_diagnosed(state: State) -> None:
    """Print the causes, and how many problems there are."""
    draw_causes(state)
    worth = sum(finding.wrong for finding in state.findings)
    text = render(ngettext("{count} problem found, see above", "{count} problems found, see above", worth))
    _draw_done(say("Diagnose"), text if worth else say("no problems found"), good=not worth)


def draw_causes(state: State) -> None:
    """Print the causes of what failed, best first."""
    draw_diagnoses((diagnosis, None) for diagnosis in state.diagnosed.diagnoses)


def draw_exported(state: State) -> None:
    """Print the files that were written; of many, the folder says more than their names."""
    files = [Path(path) for path in state.exported.files]
    folder = os.path.commonpath([path.parent for path in files]) if files else ""
    text = ngettext("{count} file in {folder}", "{count} files in {folder}", len(files), folder=folder)
    _draw_done(say("Export"), render(text))
    for path in files if len(files) <= MOST_FILES else ():
        console.print(Text(f"    {path.relative_to(folder)}"))


def draw_next(state: State, *, offline: bool) -> None:
    """Print what to type now: in this terminal, and for JupyterLab, which the assistant may have to fetch first."""
    from assistant.export import terminal_line  # noqa: PLC0415 - only an installation needs it

    made, report, plan = state.environment, state.report, state.plan
    if not (made and plan and report and report.usable):
        return
    lines = {say("In this terminal:"): terminal_line(made, plan, shell_for())}
    if made.launcher_name and offline:
        lines[say("In JupyterLab, choose the kernel {kernel}.", kernel=f"“{made.launcher_name}”")] = ""
    elif made.launcher_name:
        lines[say("In JupyterLab, with the kernel “{name}”:", name=made.launcher_name)] = as_typed("assistant lab")
    for text, command in lines.items():
        console.print(Text(f"  {text}"))
        if command:
            draw_command(command, style="bold")


def _draw_done(step: str, text: str, *, good: bool = True) -> None:
    sign = ("✓ ", "green") if good else ("✗ ", "red")
    console.print(Text.assemble(sign, (f"{step}  ", "bold"), text))

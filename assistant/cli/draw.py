"""How the terminal draws, by rich: tables and commands at any width, facts, plans, causes, reports.

Text from outside is never read as markup, and is cleaned of hidden characters here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from assistant.cli.terminal import columns, convert_print_errors, find_unbroken, indent, split_line
from assistant.host.process import shell_for
from assistant.i18n import Message, _, as_typed, ngettext, render, say
from assistant.model.finding import Diagnosis, Finding, Remedy, Severity
from assistant.model.report import Status, verdict
from assistant.model.shell import command_line
from assistant.model.visible import one_line, visible
from assistant.views import (
    CHECK_HEADINGS,
    change_rows,
    check_rows,
    fold_packages,
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
SHORT = 12  # chosen: columns of a cell that stays in one line, such as "2.41 s" or "20.1 GB"
UNBOUND = 10_000  # chosen: columns; more than any row of ours has


class Terminal(Console):
    """Draws as rich does; colours and moves are rich's own, never those that a text brings along.

    A line that is wider than the terminal goes on below it, lined up; what is not shown on a terminal keeps its lines.
    """

    @property
    def size(self) -> ConsoleDimensions:
        """The columns and lines that there are; a file or a pipe has as many columns as a table needs."""
        found = super().size
        return found if self.is_terminal else ConsoleDimensions(UNBOUND, found.height)

    @size.setter
    def size(self, new: tuple[int, int]) -> None:
        Console.size.fset(self, new)  # type: ignore[attr-defined] # mypy sees no setter of a property

    def print(self, *objects: Any, folds: bool = True, **options: Any) -> None:  # noqa: ANN401 - rich's signature
        """Print as rich does; on a terminal a single `Text` is folded at its width, unless `folds` is false.

        Raises `WorkFailed` if it cannot be written.
        """
        if folds and self.is_terminal and len(objects) == 1 and isinstance(objects[0], Text):
            for line in objects[0].split("\n", allow_blank=True):
                margin = " " * indent(line.plain, self.width)
                for number, (start, end) in enumerate(split_line(line.plain, self.width)):
                    part = Text(margin if number else "", style=line.style) + line[start:end]
                    self.print(part, folds=False, **options)
            return
        with convert_print_errors():
            super().print(*objects, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the pieces of what is drawn, their text cleaned before any width is reckoned."""
        for part in super().render(renderable, options):
            yield part if part.control else Segment(visible(part.text), part.style)


console = Terminal(highlight=False, soft_wrap=True)


Cell = str | Message | Text


def draw_rows(headings: Iterable[str | Message], rows: Iterable[Iterable[Cell]], *, numbers: bool = False) -> None:
    """Print a table without its empty columns; nothing if it has no rows.

    On a terminal no word is broken: if even the narrowest columns do not fit, each row is printed by itself. In a file
    or a pipe each row is one line. With `numbers` all columns but the first and the last hold figures: to the right.
    """
    names = [render(heading) for heading in headings]
    cells = [[cell if isinstance(cell, Text) else Text(render(cell)) for cell in row] for row in rows]
    filled = [place for place in range(len(cells[0]) if cells else 0) if any(row[place].plain for row in cells)]
    cells = [[row[place] for place in filled] for row in cells]
    names = [names[place] for place in filled] if names else [""] * len(filled)
    texts = [names, *([cell.plain for cell in row] for row in cells)]
    natural = sum(max(map(columns, column)) + 4 for column in zip(*texts, strict=True))
    narrow = console.is_terminal and natural > console.width
    widths = column_widths(texts, console.width - 2 * len(filled)) if narrow else None
    if narrow and widths is None:
        _draw_one_by_one(names, cells, numbers=numbers)
    elif cells:
        table = Table(box=None, padding=(0, 0, 0, 2) if widths else (0, 2), show_header=any(names))
        for place, name in enumerate(names):
            figures = numbers and 0 < place < len(names) - 1
            width = widths[place] if widths else None
            table.add_column(name, overflow="fold", width=width, justify="right" if figures else "left")
        for row in cells:
            table.add_row(*row)
        console.print(table)


def column_widths(rows: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return the widths of a table's columns that break no word, together at most `width`; None if that is too narrow.

    A cell of at most `SHORT` columns is not folded either.
    """

    def least_of(cell: str) -> int:
        """Return the columns of a cell that stays in one line, else of its longest word."""
        return (
            columns(cell) if columns(cell) <= SHORT else max(columns(word[0].strip()) for word in find_unbroken(cell))
        )

    table = list(zip(*rows, strict=True))
    natural = [max(map(columns, cells)) for cells in table]
    least = [max(map(least_of, cells)) for cells in table]
    spare, wish = width - sum(least), sum(natural) - sum(least)
    if spare < 0:
        return None
    share = min(1.0, spare / wish) if wish else 0.0
    return [low + int(share * (most - low)) for low, most in zip(least, natural, strict=True)]


def _draw_one_by_one(names: Sequence[str], rows: Iterable[Sequence[Text]], *, numbers: bool) -> None:
    """Print a line for each row: its first cell and its short ones (not with `numbers`); then one for each other cell.

    The latter begins with the column's heading. Empty cells are left out.
    """
    for first, *others in rows:
        short = [not numbers and columns(cell.plain) <= SHORT for cell in others]
        behind = [cell for cell, fits in zip(others, short, strict=True) if cell.plain and fits]
        console.print(Text("  ").join([Text(), first, *behind]))
        for name, cell, fits in zip(names[1:], others, short, strict=True):
            if cell.plain and not fits:
                console.print(Text.assemble(f"      {name}: " if name else "      ", cell))


def draw_command(command: str | Sequence[str], margin: str = "    ", style: str = "dim") -> None:
    """Print a command, words as the shell takes them; on a narrow terminal in lines that can be copied."""
    command = command if isinstance(command, str) else command_line(command, shell_for())
    for line in fold_command(command, console.width - len(margin)) if console.is_terminal else [command]:
        console.print(Text(margin + line, style=style), folds=False)


def fold_command(command: str, width: int) -> Iterator[str]:
    """Yield the lines of a command, folded between words to a width; each but the last ends with a backslash.

    On Windows, whose two shells differ in this, the command stays one line.
    """
    words = re.findall(r"""(?:[^\s'"]|'[^']*'|"[^"]*"|['"])+""", command) if os.name != "nt" else [command]
    line = ""
    for word in words:
        longer = f"{line} {word}" if line else word
        if line and columns(longer) > width - 2:
            yield f"{line} \\"
            longer = f"  {word}"
        line = longer
    yield line


def draw_line(text: str | Message, style: str = "") -> None:
    """Print a sentence, with the assistant's commands as this user types them."""
    console.print(Text(as_typed(text), style=style))


def draw_detection(found: Detection) -> None:
    """Print what was found on a machine: its facts, its GPUs, what is worth knowing."""
    draw_rows((), ((Text(render(label), style="bold"), value) for label, value in machine_rows(found.machine)))
    draw_findings(found.findings)


def draw_findings(findings: Iterable[Finding]) -> None:
    """Print each finding in a line, its remedies below, without how to check that they worked."""
    for finding in findings:
        sign, style = SIGNS[finding.severity]
        console.print(Text.assemble((f"{sign} ", style), render(finding.text)))
        for remedy in finding.remedies:
            draw_remedy(remedy, "    →", style="dim", hide="check")


def draw_remedy(remedy: Remedy, sign: str, style: str, hide: str = "", system: str | None = None) -> None:
    """Print a remedy's sentence after a sign; below it what to set, type and change, and how to check that it worked.

    That is written for `system`, by default this one; lines of the kind `hide` are left out.
    """
    draw_line(f"{sign} {remedy.text}")
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
            draw_line(indent + text, look)


def draw_planning(planning: Planning, *, brief: bool = False) -> None:
    """Print the best plan with its reasons, the other plans with their warnings, and why others were rejected.

    With `brief`, only the names of the plans: the caller prints the full explanation.
    """
    for plan in planning.plans[:1]:
        draw_plan(plan, brief=brief)
    for plan in planning.plans[1:]:
        draw_line(f"  {plan_summary(plan)}")
        _draw_bullets("!", () if brief else plan.warnings)
    for rejection in () if brief else planning.rejected:
        draw_line(f"✗ {rejected_name(rejection)}: {rejection_reason(rejection)}", "dim")


def draw_plan(plan: Plan, *, brief: bool = False) -> None:
    """Print the chosen plan with its reasons and warnings; with `brief` only its name."""
    draw_line(f"→ {plan_summary(plan)}", "bold")
    _draw_bullets("·", () if brief else plan.reasons)
    _draw_bullets("!", () if brief else plan.warnings)


def _draw_bullets(sign: str, lines: Iterable[str | Message]) -> None:
    """Print lines behind a sign."""
    for line in lines:
        draw_line(f"    {sign} {line}")


def draw_approach(approach: Approach) -> None:
    """Print how this machine differs from the configuration's, and whether its plan is applied exactly or made anew."""
    draw_drifts(approach.differs)
    if approach.plan:
        requirements = ", ".join(one_line(text)[:300] for text in approach.plan.requirements)
        draw_line(_("The configuration is applied to the letter: the same packages, file by file."))
        draw_line(f"    {requirements}", "dim")
    else:
        draw_line(_("The configuration does not fit this machine as it is, so a new plan is made."))


def draw_drifts(found: Iterable[Drift]) -> None:
    """Print differences, one line each."""
    for drift in found:
        draw_line(f"  ≠ {drift.text}", "yellow")


def draw_facts(facts: str, *, elsewhere: bool) -> None:
    """Print what a log states of its computer, and that this is another one if it comes from `elsewhere`."""
    if facts:
        draw_line(_("Read in this log: {facts}", facts=facts))
    if elsewhere:
        draw_line(_("It comes from another computer; what follows is meant for that one."))
    if facts or elsewhere:
        console.print()


def draw_diagnoses(
    found: Iterable[tuple[Diagnosis, int | None]], log: Log | None = None, system: str | None = None
) -> None:
    """Print the first `CAUSES` causes, in the order given: the line of the log that shows each, why, remedies, sources.

    `found` pairs each with the index of its line in `log`, or with None. Commands are those of `system`.
    """
    for diagnosis, line in islice(found, CAUSES):
        sign = ("✗ ", "red") if diagnosis.sure else ("? ", "yellow")
        title = diagnosis.title if diagnosis.sure else _("It may be: {cause}", cause=diagnosis.title)
        console.print(Text.assemble(sign, (render(title), "bold"), (f"  {diagnosis.confidence:.0%}", "dim")))
        if log and line is not None:
            for number, text in log.around(line, 2):
                marked = number == log.lines[line][0]
                drawn = f"  {'→' if marked else ' '} {number:>6} │ {visible(text)[:LOG_WIDTH]}"
                console.print(Text(drawn, style="bold red" if marked else "dim"))
        draw_line(f"  {diagnosis.cause}")
        for number, remedy in enumerate(diagnosis.remedies, 1):
            draw_remedy(remedy, f"  {number}.", style="cyan", system=system)
        for source in diagnosis.sources:
            draw_line(f"  {source}", "dim")
        console.print()


def draw_question(question: Remedy | None) -> None:
    """Print what to find out next; nothing for None."""
    if question:
        draw_remedy(question, "  ?", style="cyan")


def draw_unknown(answer: Unexplained) -> None:
    """Print that the cause is not known, what the log tells, a next step or possible causes, and how to ask others."""
    draw_line(
        _("Nothing in this text shows its cause for certain.")
        if answer.possible
        else _("No known problem matches this log.")
    )
    for symptom in answer.symptoms:
        draw_line(_("  What it tells: {symptom}", symptom=symptom.text))
    draw_question(answer.question)
    if answer.possible:
        draw_line(_("It resembles these causes most. They are guesses; start with the first:"))
    for cause in answer.possible:
        console.print(Text.assemble(("? ", "yellow"), (render(cause.title), "bold")))
        draw_line(f"  {cause.cause}")
        for line in cause.evidence:
            draw_line(_("  What speaks for it: {line}", line=line), "dim")
        for remedy in cause.remedies:
            draw_remedy(remedy, "  →", style="cyan")
    draw_line(_("If something did fail, `assistant diagnose LOG --report FILE.md` writes a report to paste."))


def draw_detected(state: State) -> None:
    """Print what was detected, in a line, and all findings of the setup; nothing before detection."""
    if state.detection:
        machine = state.detection.machine
        gpus = ", ".join(gpu_line(gpu) for gpu in machine.gpus) or say("no GPU found")
        system = machine.os_version or machine.os
        text = say("{system}, Python {python}, {gpus}", system=system, python=machine.python, gpus=gpus)
        _draw_done(say("Detect"), text)
        draw_findings(state.findings)


def draw_planned(state: State) -> None:
    """Print the plan, in a line, with its reasons and warnings; nothing before planning."""
    if state.plan:
        _draw_done(say("Plan"), render(plan_summary(state.plan)))
        _draw_bullets("·", state.plan.reasons)
        _draw_bullets("!", state.plan.warnings)


def draw_prepared(state: State) -> None:
    """Print how many packages would be installed or changed, findings and the commands; nothing if not prepared."""
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
    draw_line(text.format(count=count, changed=len(changes), size=size, target=preview.target))
    draw_rows((), ((Text(f"  {name}"), change) for name, change in changes))
    draw_findings(preview.findings)
    for command in preview.commands:
        draw_command(command)


def draw_preview(preview: Prepared) -> None:
    """Print every package with its size and source, the files that an installation would write, and the download."""
    unknown = say("unknown")
    rows = (
        (one.name, one.version, unknown if one.size is None else f"{one.size / 1e6:.2f} MB", one.url)
        for one in preview.resolution.packages
    )
    draw_rows((say("Package"), say("Version"), say("Size"), say("Source")), rows)
    if preview.ready:
        draw_line(_("This environment is there already and holds exactly these packages."))
    for path in preview.writes:
        draw_line(_("  writes {path}", path=path))
    total, fetched = preview.resolution.download / 1e6, preview.download / 1e6
    text = say("  {total:.1f} MB in all, {fetched:.1f} MB of it still to download; nothing was changed")
    draw_line(text.format(total=total, fetched=fetched))


def draw_installed(state: State) -> None:
    """Print where the environment is, and whether it was created, changed or there already; nothing without one."""
    if state.environment and state.preview:
        done = say("changed {path}") if state.preview.site else say("created {path}")
        text = say("already there, in {path}") if state.preview.ready else done
        _draw_done(say("Install"), text.format(path=state.environment.path))


def draw_verified(state: State) -> None:
    """Print a verification's checks (many packages that passed in one row), speeds and verdict; nothing before it."""
    if state.report is None:
        return
    report = fold_packages(state.report)
    rows = (
        (row.title, Text(render(row.result), style=STYLES.get(check.status, "red")), row.later, row.detail)
        for row, check in zip(check_rows(report), report.checks, strict=True)
    )
    draw_rows((CHECK_HEADINGS.title, CHECK_HEADINGS.result, _("Time"), CHECK_HEADINGS.detail), rows)
    for line in speed_lines(report):
        draw_line(line)
    _draw_done(say("Verify"), render(verdict(report)), good=report.passed)


def draw_diagnosed(state: State) -> None:
    """Print the causes of what failed, and how many findings of the setup are problems."""
    draw_causes(state)
    worth = sum(finding.wrong for finding in state.findings)
    text = render(ngettext("{count} problem found, see above", "{count} problems found, see above", worth))
    _draw_done(say("Diagnose"), text if worth else say("no problems found"), good=not worth)


def draw_causes(state: State) -> None:
    """Print the causes of what failed, best first."""
    draw_diagnoses((diagnosis, None) for diagnosis in state.diagnosed.diagnoses)


def draw_exported(state: State) -> None:
    """Print how many files were written and in which folder; their names, too, if they are at most `MOST_FILES`."""
    files = [Path(path) for path in state.exported.files]
    folder = os.path.commonpath([path.parent for path in files]) if files else ""
    text = ngettext("{count} file in {folder}", "{count} files in {folder}", len(files), folder=folder)
    _draw_done(say("Export"), render(text))
    for path in files if len(files) <= MOST_FILES else ():
        draw_line(f"    {path.relative_to(folder)}")


def draw_next(state: State, *, offline: bool) -> None:
    """Print what to type now, here and for JupyterLab; nothing unless the environment was verified as usable.

    With `offline`, for JupyterLab only the name of the kernel.
    """
    from assistant.install import EnvironmentFolder  # noqa: PLC0415 - only an installation needs it

    made, report, plan = state.environment, state.report, state.plan
    if not (made and plan and report and report.usable):
        return
    for_jupyter = _("In JupyterLab, with the kernel “{name}”:", name=made.launcher_name)
    if offline:
        for_jupyter = _("In JupyterLab, choose the kernel {kernel}.", kernel=f"“{made.launcher_name}”")
    here = _("In this terminal:")
    draw_line(f"  {here}")
    draw_command(EnvironmentFolder.terminal_line(made, plan, shell_for()), style="bold")
    if made.launcher_name:
        draw_line(f"  {for_jupyter}")
    if made.launcher_name and not offline:
        draw_command(as_typed("assistant lab"), style="bold")


def _draw_done(step: str, text: str, *, good: bool = True) -> None:
    sign = ("✓ ", "green") if good else ("✗ ", "red")
    console.print(Text.assemble(sign, (f"{step}  ", "bold"), text))


# What is drawn when a task is done, by its name.
OF_TASK = {
    "detect": draw_detected,
    "plan": draw_planned,
    "prepare": draw_prepared,
    "install": draw_installed,
    "verify": draw_verified,
    "diagnose": draw_diagnosed,
    "export": draw_exported,
}

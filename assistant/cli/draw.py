"""How the terminal draws facts, plans and progress; text from outside is never read as markup."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from assistant.cli.console import console
from assistant.i18n import Message, as_typed, render, say, sentences
from assistant.install.target import DISK_FACTOR
from assistant.model.checks import check_title
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Detection, Gpu, Machine
from assistant.model.plan import Plan, Planning
from assistant.model.report import Report, Status, duration, status_word
from assistant.model.speed import speed_headings, speed_rows

__all__ = ["draw_detection", "draw_findings", "draw_planning", "draw_report", "draw_rows", "summary"]

SIGNS = {
    Severity.OK: ("✓", "green"),
    Severity.INFO: ("·", "blue"),
    Severity.WARNING: ("!", "yellow"),
    Severity.ERROR: ("✗", "red"),
}


def draw_detection(found: Detection) -> None:
    """Print what was found on a machine: its facts, its GPUs, what is worth knowing."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    for label, value in _rows(found.machine):
        table.add_row(Text(label, style="bold"), Text(value))
    console.print(table)
    draw_findings(found.findings)


def draw_findings(findings: Iterable[Finding]) -> None:
    """Print findings, one line each, remedies below."""
    for finding in findings:
        sign, style = SIGNS[finding.severity]
        console.print(Text.assemble((f"{sign} ", style), render(finding.text)))
        for remedy in finding.remedies:
            console.print(Text(f"    → {as_typed(remedy.text)}"))
            for command in remedy.commands:
                console.print(Text(f"      {as_typed(command)}", style="dim"))


def draw_planning(planning: Planning, *, brief: bool = False) -> None:
    """Print the chosen plan with its reasons, the other plans in a line each, and what was rejected.

    `brief` leaves out every why, for who prints the whole explanation behind it.
    """
    for index, plan in enumerate(planning.plans):
        console.print(Text(("→ " if index == 0 else "  ") + summary(plan), style="bold" if index == 0 else ""))
        if brief:
            continue
        file = plan.wheel.filename if plan.wheel else None
        _bullets((reason for reason in plan.reasons if index == 0 or (file and file in render(reason))), "  ", "·")
        _bullets(plan.warnings, "  ", "!")
    for rejection in () if brief else planning.rejected:
        name = " ".join(filter(None, (rejection.backend.value, rejection.variant)))
        line = sentences((f"✗ {name}: {render(rejection.why)}", rejection.would_help))
        console.print(Text(render(line), style="dim"))


def draw_report(report: Report) -> None:
    """Print every check of a verification."""
    rows = [
        (check_title(check.key), _result(check.status), duration(check.seconds), check.detail)
        for check in report.checks
    ]
    draw_rows((say("Check"), say("Result"), say("Time"), say("Detail")), rows)
    speeds = speed_rows(report.speeds, report.limits)
    draw_rows(speed_headings(), [(check_title(key), *cells) for key, *cells in speeds])


def _result(status: Status) -> Text:
    style = "green" if status is Status.PASSED else "dim" if status is Status.SKIPPED else "red"
    return Text(render(status_word(status)), style=style)


def draw_rows(headings: Iterable[str | Message], rows: Iterable[Iterable[str | Message | Text]]) -> None:
    """Print a table; nothing at all where it has no rows."""
    table = Table(*map(render, headings), box=None, padding=(0, 2))
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(render(cell)) for cell in row))
    if table.rows:
        console.print(table)


def summary(plan: Plan) -> str:
    """Name a plan in one line."""
    line = say(
        "PyTorch {torch} for {backend} ({variant}), Python {python}",
        torch=plan.torch,
        backend=plan.backend.value.upper(),
        variant=plan.variant,
        python=plan.python,
    )
    if plan.download_mb is None:
        return line
    need = say(", about {size} MB to download and {disk:.1f} GB of disk with the cache")
    return line + need.format(size=plan.download_mb, disk=plan.download_mb * DISK_FACTOR / 1000)


def gpu_line(gpu: Gpu) -> str:
    """Name a GPU in one line, with what decides over it."""
    facts = [gpu.gfx, gpu.compute_capability, f"{gpu.vram_gb:g} GB" if gpu.vram_gb else None, gpu.pci_id]
    return f"{gpu.name or gpu.vendor.value} ({', '.join(fact for fact in facts if fact)})".removesuffix(" ()")


def _rows(machine: Machine) -> list[tuple[str, str]]:
    rows = [
        (say("System"), " ".join(filter(None, (machine.os_version or machine.os, machine.arch)))),
        (say("C library"), machine.libc or (f"glibc {machine.glibc}" if machine.glibc else "")),
        (say("Python"), f"{machine.python or ''} {machine.python_implementation or ''}".strip()),
        (say("Container"), machine.container or ""),
        (say("Memory"), f"{machine.memory_gb:g} GB" if machine.memory_gb else ""),
        (say("Free disk"), f"{machine.disk_free_gb:g} GB" if machine.disk_free_gb else ""),
        *((say("GPU"), gpu_line(gpu)) for gpu in machine.gpus),
        (say("NVIDIA driver"), machine.nvidia_driver or ""),
        ("ROCm", machine.rocm_version or ""),
        (say("Packages"), ", ".join(f"{name} {version}" for name, version in sorted(machine.packages.items()))),
    ]
    if not machine.gpus:
        rows.insert(6, (say("GPU"), say("none found")))
    return [(label, value) for label, value in rows if value]


def _bullets(lines: Iterable[str | Message], indent: str, sign: str) -> None:
    for line in lines:
        console.print(Text(f"{indent}  {sign} {as_typed(line)}"))

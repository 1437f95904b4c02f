"""The rows that people read of a machine, a plan, a report and a remedy, for terminal, wizard and files alike.

A row holds `Text`; whoever draws it renders it in the current language.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from itertools import groupby
from typing import Literal, NamedTuple

from assistant.i18n import Message, Text, _, sentences
from assistant.model.finding import Remedy
from assistant.model.machine import Gpu, Machine
from assistant.model.plan import Plan, Rejection
from assistant.model.record import replace
from assistant.model.report import (
    PACKAGE,
    PACKAGES,
    Check,
    Report,
    Status,
    check_title,
    checked_package,
    format_duration,
    format_number,
    status_word,
)
from assistant.model.shell import HERE, Shell, settings

Rows = list[tuple[Text, Text]]


def machine_rows(machine: Machine, *, hide: Container[str] = ()) -> Rows:
    """Return the known facts of a machine that matter to a reader, as labels and values, without those in `hide`.

    The keys for `hide`: system, libc, python, wsl, container, memory, disk, gpu, driver, cuda, rocm, packages. Each GPU
    has a row; without any, one says "none found".
    """
    packages = ", ".join(f"{name} {version}" for name, version in sorted(machine.packages.items()))
    gpus: list[Text] = [gpu_line(gpu) for gpu in machine.gpus]
    rows: list[tuple[str, Text, Text | None]] = [
        ("system", _("System"), " ".join(filter(None, (machine.os_version or machine.os, machine.arch)))),
        ("libc", _("C library"), machine.libc or (machine.glibc and f"glibc {machine.glibc}")),
        ("python", _("Python"), " ".join(filter(None, (machine.python, machine.python_implementation)))),
        ("wsl", _("WSL"), _("yes") if machine.wsl else ""),
        ("container", _("Container"), machine.container),
        ("memory", _("Memory"), f"{machine.memory_gb:g} GB" if machine.memory_gb else ""),
        ("disk", _("Free disk"), f"{machine.disk_free_gb:g} GB" if machine.disk_free_gb else ""),
        *(("gpu", _("GPU"), gpu) for gpu in gpus or [_("none found")]),
        ("driver", _("NVIDIA driver"), machine.nvidia_driver),
        ("cuda", _("CUDA of the driver"), machine.cuda_driver_api),
        ("rocm", _("ROCm"), machine.rocm_version),
        ("packages", _("Packages"), packages),
    ]
    return _shown(rows, hide)


def _shown(rows: list[tuple[str, Text, Text | None]], hide: Container[str]) -> Rows:
    return [(label, value) for key, label, value in rows if value and key not in hide]


def gpu_line(gpu: Gpu) -> str:
    """Return a GPU's name and, in brackets, what is known of its gfx name, compute capability, memory and PCI id."""
    facts = [gpu.gfx, gpu.compute_capability, f"{gpu.vram_gb:g} GB" if gpu.vram_gb else None, gpu.name and gpu.pci_id]
    return f"{gpu.label} ({', '.join(filter(None, facts))})".removesuffix(" ()")


def plan_title(plan: Plan) -> Message:
    """Return a plan's title: torch, backend, variant and Python, or that it has packages without torch for a Python."""
    if not plan.torch:
        return _("Packages without PyTorch, Python {python}", python=plan.python)
    return _(
        "PyTorch {torch} for {backend} ({variant}), Python {python}",
        torch=plan.torch,
        backend=plan.backend.title,
        variant=plan.variant,
        python=plan.python,
    )


def plan_summary(plan: Plan) -> Message:
    """Return a plan's title, with the sizes of its download and on disk, or that they are not known yet."""
    if plan.disk_gb is None:
        return _(
            "{plan}, of a size that the tables do not know; it is told once its packages are resolved",
            plan=plan_title(plan),
        )
    return _(
        "{plan}, about {size} MB to download and {disk:.1f} GB of disk with the cache",
        plan=plan_title(plan),
        size=plan.download_mb,
        disk=plan.disk_gb,
    )


def plan_rows(plan: Plan, free_gb: float | None = None, *, hide: Container[str] = ()) -> Rows:
    """Return what a plan installs, from where, its variables, and the space it needs, as labels and values.

    `free_gb` is what the disk has free. `hide` names rows to leave out: backend, variant, torch, python, packages,
    source, download, disk, setting (all variables).
    """
    need = _("about {need:.1f} GB needed, {free:.0f} GB free") if free_gb else _("about {need:.1f} GB needed")
    source: Text = plan.index_url or _("the index configured for pip")
    rows: list[tuple[str, Text, Text | None]] = [
        ("backend", _("Backend"), plan.backend.title),
        ("variant", _("Variant"), plan.variant),
        ("torch", _("torch"), plan.torch),
        ("python", _("Python"), plan.python),
        ("packages", _("Packages"), ", ".join(plan.requirements)),
        ("source", _("Source of torch"), source),
        ("download", _("Download"), _("about {size} MB", size=plan.download_mb) if plan.download_mb else ""),
        ("disk", _("Disk"), need.format(need=plan.disk_gb, free=free_gb) if plan.disk_gb else ""),
        *(("setting", name, value) for name, value in plan.env.items()),
    ]
    return _shown(rows, hide)


def system_name(system: str) -> str:
    """Return the name of a system as its maker spells it."""
    return {"linux": "Linux", "windows": "Windows", "macos": "macOS"}.get(system, system)


def change_rows(coming: Mapping[str, str], installed: Mapping[str, str]) -> Rows:
    """Return what changes if the versions `coming` are installed: first replaced packages, then new ones, by name.

    Those in the same version, and those that are installed only, are left out.
    """
    changed = sorted(name for name, version in coming.items() if installed.get(name) != version)
    replaced = [(name, f"{installed[name]} → {coming[name]}") for name in changed if name in installed]
    new: Rows = [(name, _("new: {version}", version=coming[name])) for name in changed if name not in installed]
    return [*replaced, *new]


def rejected_name(rejection: Rejection) -> str:
    """Return the name of a rejected alternative: its backend and variant."""
    return f"{rejection.backend.title} {rejection.variant}".strip()


def rejection_reason(rejection: Rejection) -> Message:
    """Return why an alternative was rejected, and what would change that."""
    return sentences((rejection.why, rejection.would_help))


class CheckRow(NamedTuple):
    """One check of a report, as cells."""

    title: Text
    result: Text
    device: Text
    first: Text
    later: Text
    error: Text
    allowed: Text
    detail: Text


CHECK_HEADINGS = CheckRow(
    _("Check"), _("Result"), _("Device"), _("First run"), _("Later runs"), _("Error"), _("Allowed"), _("Detail")
)


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"


FOLD_FROM = 6  # chosen: packages that passed, from which one row for all of them says as much


def fold_packages(report: Report) -> Report:
    """Return a report in which packages that passed without a remark share one row at the end, if six or more did.

    Before it come the checks of no package, then the other packages, skipped ones last. With fewer, it is as it was.
    """
    packages = [check for check in report.checks if check.key.startswith(PACKAGE)]
    passed = [check for check in packages if check.status is Status.PASSED and not check.detail]
    if len(passed) < FOLD_FROM:
        return report
    names = ", ".join(checked_package(check.key) for check in passed)
    seconds = sum(check.seconds or 0.0 for check in passed)
    row = Check(key=f"{PACKAGES}{len(passed)}", status=Status.PASSED, seconds=seconds, detail=names)
    others = [check for check in packages if check not in passed]
    first = [check for check in report.checks if check not in packages]
    return replace(report, checks=(*first, *sorted(others, key=lambda check: check.status is Status.SKIPPED), row))


def check_rows(report: Report) -> list[CheckRow]:
    """Return one row per check, in the report's order."""
    return [
        CheckRow(
            check_title(check.key),
            status_word(check.status),
            report.device,
            format_duration(check.first_seconds),
            format_duration(check.seconds),
            _ratio(check.error),
            _ratio(check.tolerance),
            check.detail,
        )
        for check in report.checks
    ]


def speed_lines(report: Report) -> list[Message]:
    """Return for each speed that was measured its rate and, if known, how many times that of this CPU it is."""
    alone, beside = _("{work}: {rate} {unit}"), _("{work}: {rate} {unit}, {times} times as fast as this machine's CPU")
    return [
        (beside if speed.cpu_rate else alone).format(
            work=check_title(key),
            rate=format_number(speed.rate),
            unit=speed.unit,
            times=format_number(speed.rate / (speed.cpu_rate or 1.0)),
        )
        for key, speed in report.speeds.items()
    ]


LineKind = Literal["set", "command", "plan", "place", "change", "check"]


class Line(NamedTuple):
    """One line of a remedy: what to set, type, plan or change, or a check that it worked."""

    kind: LineKind
    text: str


def remedy_lines(remedy: Remedy, shell: Shell = HERE) -> Iterator[Line]:
    """Yield what to set, type, plan and change, and how to check that it worked, in that order.

    Before settings of another shell, and before changes of an application, comes a line of the kind "place" with its
    name.
    """
    for one, lines in settings(remedy.env, shell) if remedy.env else ():
        yield from [Line("place", one.value)] if one is not shell else []
        yield from (Line("set", line) for line in lines)
    yield from (Line("command", command) for command in remedy.commands)
    if plan := remedy.plan:
        yield Line("plan", f"assistant setup --backend {plan.backend.value} --python {plan.python}")
    for launch in remedy.launch:
        yield Line("place", ", ".join(filter(None, (launch.app, launch.file))))
        signed = (("-", launch.drop), ("+", launch.add), ("=", (launch.line,) if launch.line else ()))
        yield from (Line("change", f"{sign} {' '.join(words)}") for sign, words in signed if words)
    yield from (Line("check", command) for command in remedy.check)


class Block(NamedTuple):
    """Lines of one kind that can be typed together unchanged, and the words that introduce them, "" for none."""

    kind: LineKind
    lead: Text
    lines: tuple[str, ...]


def remedy_blocks(remedy: Remedy, shell: Shell = HERE) -> Iterator[Block]:
    """Yield a remedy's lines in blocks of a kind, in their order; settings and the commands after them are one block.

    A place becomes the lead of the block after it; a check, and a plan beside commands, have leads, too.
    """
    lead: Text = ""
    for kind, lines in groupby(remedy_lines(remedy, shell), _kind_of_block):
        texts = tuple(line.text for line in lines)
        if kind == "place":
            lead = f"{texts[-1]}:"
            continue
        if kind == "check":
            lead = _("It worked if this runs without an error:")
        elif kind == "plan" and remedy.commands:
            lead = _("Or in a new environment:")
        yield Block(kind, lead, texts)
        lead = ""


def _kind_of_block(line: Line) -> LineKind:
    return "command" if line.kind == "set" else line.kind

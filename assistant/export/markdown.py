"""`report.md`: what machine, what was chosen and why, what is installed, how it was verified, how to use it."""

from __future__ import annotations

import re
from collections.abc import Callable

from assistant.export.bundle import Bundle
from assistant.export.collect_env import collect_env_text
from assistant.export.templates import filled
from assistant.i18n import Message, render, say
from assistant.model.checks import check_title
from assistant.model.machine import Gpu, Machine
from assistant.model.report import duration, status_word, verdict
from assistant.model.speed import limit_rows, speed_headings, speed_rows

__all__ = ["report_text", "shortened"]

_HOME = re.compile(
    r"(?<![\w.-])(?:/home/[^/\s:\"']+|/Users/[^/\s:\"']+|/root|[A-Za-z]:[\\/]Users[\\/][^\\/\s:\"']+)(?![\w-])"
)
_SPECIAL = re.compile(r"([\\`*_\[\]|#~])")


def report_text(bundle: Bundle) -> str:
    """Write the report as Markdown; what came from outside is escaped, home folders are written `~`."""
    filters: dict[str, Callable[..., str]] = {
        "text": escaped,
        "code": code,
        "seconds": duration,
        "title": lambda key: render(check_title(key)),
        "word": lambda status: render(status_word(status)),
        "ratio": _ratio,
    }
    return filled("report.md", filters, **_content(bundle))


def escaped(value: object) -> str:
    """Make a value plain text on one line that Markdown and HTML leave alone, in a table cell too."""
    line = " ".join(shortened(str(render(value) if isinstance(value, Message) else value)).split())
    entities = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", entities).replace("://", ":&#47;&#47;")  # no address from outside becomes a link


def code(value: object) -> str:
    """Make a value a code span on one line, whatever backticks or bars it holds."""
    line = " ".join(shortened(str(render(value) if isinstance(value, Message) else value)).split()).replace("|", "\\|")
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}" if line else ""


def shortened(text: str) -> str:
    """Write home folders as `~`."""
    return _HOME.sub("~", text)


def _content(bundle: Bundle) -> dict[str, object]:
    report = bundle.report
    return {
        "bundle": bundle,
        "plan": bundle.plan,
        "report": report,
        "environment": bundle.environment,
        "machine": _machine_rows(bundle.machine),
        "verdict": verdict(report),
        "speeds": [(check_title(key), *cells) for key, *cells in speed_rows(report.speeds, report.limits)],
        "speed_headings": speed_headings(),
        "limits": limit_rows(report.limits),
        "alts": {
            "verification.svg": say("Seconds of each check"),
            "speed.svg": say("Speeds beside the CPU"),
            "roofline.svg": say("Speeds below what memory and arithmetic can reach"),
        },
        "activate": _activation(bundle.environment.path, bundle.environment.python),
        "collect_env": (block := collect_env_text(bundle)),
        "fence": "`" * max(3, 1 + max(map(len, re.findall("`+", block)), default=0)),
        "target": _shell_path(bundle.environment.path),
    }


def _machine_rows(machine: Machine) -> list[tuple[str, str]]:
    facts = [
        (say("System"), " ".join(filter(None, [machine.os_version or machine.os, machine.arch]))),
        (say("Python"), machine.python),
        (say("Memory"), machine.memory_gb and say("{size:g} GB", size=machine.memory_gb)),
        *((say("GPU"), _gpu(gpu)) for gpu in machine.gpus),
        (say("NVIDIA driver"), machine.nvidia_driver),
        (say("CUDA of the driver"), machine.cuda_driver_api),
        (say("ROCm"), machine.rocm_version),
        (say("WSL"), say("yes") if machine.wsl else None),
        (say("Container"), machine.container),
    ]
    return [(name, str(value)) for name, value in facts if value]


def _gpu(gpu: Gpu) -> str:
    size = say("{size:g} GB", size=gpu.vram_gb) if gpu.vram_gb else None
    return ", ".join(filter(None, [gpu.name or gpu.vendor.value, gpu.pci_id, gpu.gfx, gpu.compute_capability, size]))


def _activation(path: str, python: str) -> dict[str, str]:
    """Give the command that enters the environment, for bash and for PowerShell."""
    folder = "Scripts" if "Scripts" in re.split(r"[\\/]", python)[-2:] else "bin"
    return {
        "bash": f"source {_shell_path(path, folder, 'activate')}",
        "powershell": f"& {_shell_path(path, folder, 'activate.ps1')}",
    }


def _shell_path(*parts: str) -> str:
    """Quote a path so that bash and PowerShell read it alike; `~` is not read within quotes, `$HOME` is."""
    path = "/".join(part.replace("\\", "/").rstrip("/") for part in parts)
    short = shortened(path)
    if short.startswith("~"):
        return f'"$HOME{short[1:]}"'
    return f'"{path}"' if re.search(r"[^\w./:-]", path) else path


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"

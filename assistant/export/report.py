"""The setup as a report for people, and in the words of `python -m torch.utils.collect_env`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from assistant.catalog import carried_by_torch_index
from assistant.export.launch import ALLOW_SCRIPTS
from assistant.export.setup import Setup, filled
from assistant.i18n import Message, Text, render
from assistant.model.machine import Machine, Vendor
from assistant.model.plan import Backend
from assistant.model.report import verdict
from assistant.model.visible import printable
from assistant.privacy import at_home
from assistant.views import (
    CHECK_HEADINGS,
    check_rows,
    folded,
    machine_rows,
    plan_rows,
    speed_lines,
)

_NONE = "Could not collect"  # what the tool writes where it found nothing
_BESIDE = re.compile(r"numpy|onnx.*|torch.*|nvidia-.*|intel-.*|optree|mypy.*")  # what torch/utils/collect_env.py lists


def collect_env_text(setup: Setup) -> str:
    """Write the block for a verified environment."""
    report, plan, packages = setup.report, setup.plan, setup.environment.packages
    works = report.usable
    return _block(
        setup.machine,
        packages,
        torch=report.facts.get("torch") or packages.get("torch", plan.torch),
        variant=plan.variant,
        python=report.facts.get("python") or plan.python,
        available=(
            str(works and plan.backend in {Backend.CUDA, Backend.ROCM}),
            str(works and plan.backend is Backend.XPU),
        ),
        loading=plan.env.get("CUDA_MODULE_LOADING", "N/A"),
    )


def stated_env_text(machine: Machine) -> str:
    """Write the block for a machine of which only a log tells, so that nobody has looked what its torch can do."""
    torch = machine.packages.get("torch", _NONE)
    return _block(
        machine,
        machine.packages,
        torch=torch,
        variant=torch.partition("+")[2],
        python=machine.python or _NONE,
        available=(_NONE, _NONE),
        loading=machine.env.get("CUDA_MODULE_LOADING", "N/A"),
    )


def _block(
    machine: Machine,
    packages: Mapping[str, str],
    *,
    torch: str,
    variant: str,
    python: str,
    available: tuple[str, str],
    loading: str,
) -> str:
    """Write the block; what the assistant never looks at reads "Could not collect", as in the tool itself."""
    cuda, hip = re.fullmatch(r"cu(\d+)(\d)", variant), re.fullmatch(r"rocm([\d.]+)", variant)
    apple = (printable(gpu.name) for gpu in machine.gpus if gpu.vendor is Vendor.APPLE and gpu.name)
    libc = f"glibc-{machine.glibc}" if machine.glibc else machine.libc or "N/A"
    rows = (
        ("PyTorch version", printable(torch)),
        ("Is debug build", "False"),
        ("CUDA used to build PyTorch", f"{cuda[1]}.{cuda[2]}" if cuda else _NONE),
        ("ROCM used to build PyTorch", hip[1] if hip else "N/A"),
        ("OS", f"{printable(machine.os_version or machine.os or _NONE)} ({machine.arch or 'unknown'})"),
        ("GCC version", _NONE),
        ("Clang version", _NONE),
        ("CMake version", _NONE),
        ("Libc version", libc),
        ("Python version", f"{python} ({machine.python_bits or 64}-bit runtime)"),
        ("Python platform", _platform(machine, libc)),
        ("Is CUDA available", available[0]),
        ("CUDA runtime version", _NONE),
        ("CUDA_MODULE_LOADING set to", loading),
        ("GPU models and configuration", "\n".join(_gpus(machine)) or _NONE),
        ("Nvidia driver version", machine.nvidia_driver or _NONE),
        ("cuDNN version", _NONE),
        ("Is XPU available", available[1]),
        *(("Intel GPU models detected", f"\n{models}") for models in ["\n".join(_intel(machine))] if models),
        ("HIP runtime version", machine.rocm_version or "N/A"),
        ("MIOpen runtime version", "N/A"),
        ("Is XNNPACK available", _NONE),
        ("CPU", "\n" + next(apple, _NONE)),
        ("Versions of relevant libraries", "\n" + "\n".join(_libraries(packages))),
    )
    return "\n".join(f"{name}: {value}" if not value.startswith("\n") else f"{name}:{value}" for name, value in rows)


def _platform(machine: Machine, libc: str) -> str:
    """Spell the system as `platform.platform()` does, but for the build of the Linux kernel, which nobody looks at."""
    # Windows-11-10.0.26100-SP0, macOS-15.1-arm64-arm-64bit, Linux-6.8.0-45-generic-x86_64-with-glibc2.39
    version = machine.os_version or ""
    if machine.os == "windows":
        build = re.search(r"10\.0\.\d+", version)
        return f"Windows-{'11' if '11' in version.split() else '10'}-{build[0] if build else '10.0'}-SP0"
    if machine.os == "macos":
        number = re.search(r"[\d.]+", version)
        processor = {"arm64": "arm", "x86_64": "i386"}.get(machine.arch or "", machine.arch)
        return f"macOS-{number[0] if number else '0'}-{machine.arch}-{processor}-64bit"
    kernel = "Linux-microsoft-standard-WSL2" if machine.wsl else "Linux"
    return f"{kernel}-{machine.arch}-with-{libc.replace('-', '')}"


def _gpus(machine: Machine) -> Iterable[str]:
    listed = (gpu for gpu in machine.gpus if gpu.vendor in {Vendor.NVIDIA, Vendor.AMD})
    for number, gpu in enumerate(listed):
        name = printable(gpu.name or gpu.pci_id or gpu.vendor.value)
        yield f"GPU {number}: {name}" + (f" ({gpu.gfx})" if gpu.gfx else "")


def _intel(machine: Machine) -> Iterable[str]:
    for number, gpu in enumerate(gpu for gpu in machine.gpus if gpu.vendor is Vendor.INTEL):
        name = printable(gpu.name or "Intel GPU").replace("'", "")
        device = f", device_id=0x{gpu.pci_id[5:].upper()}" if gpu.pci_id else ""
        memory = f", total_memory={round(gpu.vram_gb * 1024)}MB" if gpu.vram_gb else ""
        yield f"* [{number}] _XpuDeviceProperties(name='{name}'{device}{memory})"


def _libraries(packages: Mapping[str, str]) -> Iterable[str]:
    for name, version in sorted(packages.items()):
        if carried_by_torch_index(name) or _BESIDE.fullmatch(name):
            yield f"[pip3] {name}=={printable(version)}"
    yield f"[conda] {_NONE}"


_SPECIAL = re.compile(r"([\\`*_\[\]|#~])")


def report_text(setup: Setup) -> str:
    """Write the report as Markdown: what came from outside is escaped, a home folder becomes `~`."""
    environment, report = setup.environment, setup.report
    block = collect_env_text(setup)
    return filled(
        "report.md",
        {"text": escaped, "code": code, "cell": _cell, "cells": lambda row: f"| {' | '.join(map(escaped, row))} |"},
        setup=setup,
        plan=setup.plan,
        report=report,
        environment=environment,
        machine=machine_rows(setup.machine, hide={"packages"}),
        choice=plan_rows(setup.plan, setup.machine.disk_free_gb),
        verdict=verdict(report),
        headings=CHECK_HEADINGS,
        checks=check_rows(folded(report)),
        speeds=speed_lines(report),
        activate=_activation(environment.path, environment.python),
        collect_env=block,
        fence="`" * max(3, 1 + max(map(len, re.findall("`+", block)), default=0)),
        target=_shell_path(environment.path),
    )


def escaped(value: object) -> str:
    """Escape a value for Markdown and HTML, on one line, so that it also fits a table cell."""
    entities = _line(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", entities).replace("://", ":&#47;&#47;")  # no address from outside becomes a link


def code(value: object) -> str:
    """Write a value as a code span on one line, whatever backticks or bars it holds."""
    line = _line(value).replace("|", "\\|")
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}" if line else ""


def _line(value: object) -> str:
    return " ".join(at_home(render(value) if isinstance(value, Message) else str(value)).split())


def _cell(value: Text) -> str:
    """Write a value of a plan as code, and a sentence about it as text."""
    return escaped(value) if isinstance(value, Message) else code(value)


def _activation(path: str, python: str) -> dict[str, str]:
    """Return the commands that enter the environment, by shell."""
    folder = "Scripts" if "Scripts" in re.split(r"[\\/]", python)[-2:] else "bin"
    return {
        "bash": f"source {_shell_path(path, folder, 'activate')}",
        "powershell": f"{ALLOW_SCRIPTS}; & {_shell_path(path, folder, 'Activate.ps1')}",
    }


def _shell_path(*parts: str) -> str:
    """Quote a path for bash and PowerShell alike; within quotes neither expands `~`, and both expand `$HOME`."""
    path = "/".join(part.replace("\\", "/").rstrip("/") for part in parts)
    short = at_home(path)
    if short.startswith("~"):
        return f'"$HOME{short[1:]}"'
    return f'"{path}"' if re.search(r"[^\w./:-]", path) else path

"""The platforms that a bundle is for, and what each needs to start: uv, a Python, the assistant's own packages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import requires

from packaging.requirements import Requirement

from assistant.host.extras import NAME
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan
from assistant.plan import USUAL_PYTHON

_OLDEST = (3, 11)  # the assistant's own: `requires-python`


def platform_of(machine: Machine) -> str:
    """Name a machine's platform as the start scripts do: linux-x86_64, linux-aarch64, macos-arm64, windows-x86_64."""
    system = machine.os or "linux"
    arch = (machine.arch or ("arm64" if system == "macos" else "x86_64")).lower()
    if arch in {"aarch64", "arm64"}:
        return f"{system}-{'aarch64' if system == 'linux' else 'arm64'}"
    return f"{system}-{'x86_64' if arch == 'amd64' else arch}"


def system_of(machine: Machine) -> Machine:
    """Return what a lock depends on: system, architecture, C library, and the release of macOS; nothing else."""
    release = machine.os_version if machine.os == "macos" else None
    return Machine(
        os=machine.os or "linux",
        os_version=release,
        arch=machine.arch,
        wsl=machine.wsl,
        glibc=machine.glibc,
        libc=machine.libc,
    )


def oldest(machines: Iterable[Machine]) -> Machine:
    """Return the machine whose system is the oldest: wheels for it run on the others, too."""
    return min(machines, key=lambda one: release(one.os_version if one.os == "macos" else one.glibc))


def release(text: str | None) -> tuple[int, ...]:
    """Read the numbers of a release ("macOS 14.6", "2.39"); () where it is not known."""
    found = re.search(r"\d+(\.\d+)*", text or "")
    return tuple(map(int, found[0].split("."))) if found else ()


def own_pythons(pythons: Iterable[str]) -> tuple[str, ...]:
    """Return those Pythons of a platform's plans that the assistant itself can run on; the usual one where none is."""
    fit = {python for python in pythons if release(python) >= _OLDEST and not python.endswith("t")}
    return tuple(sorted(fit, key=release)) or (USUAL_PYTHON,)


def own_plan(python: str) -> Plan:
    """Return what the assistant itself needs, with uv and pip, as a plan for the resolver: its core."""
    lines = requires(NAME) or ()
    needs = [line for line in lines if "extra ==" not in line]
    uv = next(f"uv{need.specifier}" for need in map(Requirement, lines) if need.name == "uv")
    return Plan(backend=Backend.CPU, variant="", torch="", python=python, requirements=(*needs, uv, "pip"))

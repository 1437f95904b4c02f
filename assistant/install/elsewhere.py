"""For another machine than this one: the commands that install a plan there, and its packages, resolved by uv here."""

from __future__ import annotations

import dataclasses
import re

from assistant.i18n import _
from assistant.install.resolution import Resolution, Unsolved, resolve
from assistant.install.sources import Tools
from assistant.install.uv import KERNEL, Uv
from assistant.model.errors import WorkFailed
from assistant.model.machine import Machine
from assistant.model.plan import Plan

_X86 = {"x86_64", "amd64"}
# The second numbers of the glibc releases that uv names: https://docs.astral.sh/uv/reference/cli/#uv-pip-compile
_GLIBC = (17, 28, *range(31, 41))

_FOLDER = "torch-env"  # of the environment, in the commands for a machine that is not here
# As pip does; uv itself would take all that torch's index holds from there, such as an old NumPy.
_STRATEGY = ("--index-strategy", "unsafe-best-match")


def commands_for(plan: Plan, machine: Machine) -> tuple[tuple[str, ...], ...]:
    """Return the commands that install a plan on a machine that is not here, from its requirements, unresolved."""
    python = f"{_FOLDER}/Scripts/python.exe" if machine.os == "windows" else f"{_FOLDER}/bin/python"
    index = ("--extra-index-url", plan.index_url, *_STRATEGY) if plan.index_url else ()
    links = [word for place in plan.links if "://" in place for word in ("--find-links", place)]
    return (
        ("uv", "venv", "--seed", "--python", plan.python, _FOLDER),
        ("uv", "pip", "install", "--python", python, *index, *links, *plan.requirements, KERNEL),
    )


def resolve_for(plan: Plan, machine: Machine, tools: Tools, also: tuple[str, ...] = (KERNEL,)) -> Resolution:
    """Return a plan's packages, resolved for the machine and the Python that it was made for.

    `also` is resolved with it. Raises `WorkFailed` also if uv has no name for the platform.
    """
    try:
        return resolve(plan, dataclasses.replace(uv_for(plan, machine, tools), also=also))
    except Unsolved as error:
        if not error.unreachable:
            raise
        index = plan.index_url or _("pip's index")
        raise WorkFailed(_("{index} could not be reached.", index=index), hint=error.hint) from error


def uv_for(plan: Plan, machine: Machine, tools: Tools) -> Uv:
    """Return uv set up to resolve for another machine and for the Python of a plan.

    Raises `WorkFailed` if uv has no name for the platform, and for a free-threaded Python.
    """
    platform = uv_platform(machine)
    if not platform or plan.python.endswith("t"):
        raise WorkFailed(
            _(
                "Packages for {system} on {arch} with Python {python} cannot be resolved here.",
                system=machine.os,
                arch=machine.arch,
                python=plan.python,
            ),
            hint=_("Install on one such PC with `assistant install`, and export there."),
        )
    # Any Python will do, as no package is built; uv would fetch one of the wanted version.
    base = str(tools.host.facts("platform").get("base_executable", "python3"))
    variables = {"UV_PYTHON_DOWNLOADS": "never", **_deployment_target(machine)}
    uv = tools.uv(plan, None)
    return dataclasses.replace(
        uv,
        python=base,
        environment={**uv.environment, **variables},
        elsewhere=("--python-platform", platform, "--python-version", plan.python),
    )


def uv_platform(machine: Machine) -> str:
    """Return uv's name of a machine's platform, for `--python-platform`; "" if it has none."""
    arch = (machine.arch or ("arm64" if machine.os == "macos" else "x86_64")).lower()
    name = "x86_64" if arch in _X86 else "aarch64" if arch in {"aarch64", "arm64"} else ""
    if not name:
        return ""
    if machine.os == "windows":
        return f"{name}-pc-windows-msvc"
    if machine.os == "macos":
        return f"{name}-apple-darwin"
    if machine.libc and machine.libc.startswith("musl"):
        return f"{name}-unknown-linux-musl"
    glibc = re.fullmatch(r"2\.(\d+).*", machine.glibc or "2.28")
    fitting = [number for number in _GLIBC if glibc and number <= int(glibc[1])]
    return f"{name}-manylinux_2_{fitting[-1]}" if fitting else ""


def _deployment_target(machine: Machine) -> dict[str, str]:
    """Return `MACOSX_DEPLOYMENT_TARGET` with the release of a macOS ("macOS 14.6"), for uv; {} if none is known."""
    version = re.search(r"\d+(\.\d+)?", machine.os_version or "") if machine.os == "macos" else None
    return {"MACOSX_DEPLOYMENT_TARGET": version[0]} if version else {}

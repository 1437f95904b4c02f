"""Projects for other tools: `pyproject.toml` for uv, `pixi.toml`, `environment.yml` for conda and mamba."""

from __future__ import annotations

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import carried_by_torch_index
from assistant.export.pins import asked, lines, pins
from assistant.export.setup import MARKER, Setup, Unsuited
from assistant.export.shells import variables
from assistant.export.templates import filled, toml_text
from assistant.i18n import _

_PLATFORMS = {
    ("linux", "x86_64"): "linux-64",
    ("linux", "aarch64"): "linux-aarch64",
    ("macos", "arm64"): "osx-arm64",
    ("macos", "x86_64"): "osx-64",
    ("windows", "x86_64"): "win-64",
    ("windows", "amd64"): "win-64",
    ("windows", "arm64"): "win-arm64",
}
_SYSTEMS = {"linux": "linux", "macos": "darwin", "windows": "win32"}


def pyproject_text(setup: Setup) -> str:
    """Write a project for uv: torch's family tied to its own index, and locked for this kind of machine only."""
    packages, index = _wanted(setup), setup.plan.index_url
    machine = f"platform_machine == '{_uname(setup)}'"
    uv: dict[str, object] = {
        "environments": [f"sys_platform == '{_SYSTEMS[_os(setup)]}' and {machine}"],
        "constraint-dependencies": pins(setup),
    }
    if index:  # an explicit index serves only what `sources` sends there: https://docs.astral.sh/uv/concepts/indexes/
        uv["sources"] = {
            name: {"index": "torch"} for name in packages if carried_by_torch_index(name, setup.plan.variant)
        }
        uv["index"] = [{"name": "torch", "url": index, "explicit": True}]
    project = {
        "name": "torch-project",
        "version": "0.1.0",
        "requires-python": f"=={_minor(setup)}.*",
        "dependencies": list(packages.values()),
    }
    return f"# {MARKER}: `uv sync` makes the environment.\n" + toml_text({"project": project, "tool": {"uv": uv}})


def pixi_text(setup: Setup) -> str:
    """Write a workspace for pixi: Python from conda-forge, torch from its own index, the rest from PyPI."""
    platform = _PLATFORMS.get((_os(setup), (setup.machine.arch or "").lower()))
    if platform is None or setup.plan.python.endswith("t"):
        raise Unsuited(
            _("pixi has no platform for {system} on {arch}.", system=_os(setup), arch=setup.machine.arch),
            hint=_("Choose another format, such as requirements.txt."),
        )
    index = setup.plan.index_url
    rows: dict[str, object] = {}
    for name, line in _wanted(setup).items():
        need = Requirement(line)
        row: dict[str, object] = {"version": str(need.specifier) or "*"}
        row |= {"extras": sorted(need.extras)} if need.extras else {}
        row |= {"index": index} if index and carried_by_torch_index(name, setup.plan.variant) else {}
        rows[name] = row if len(row) > 1 else row["version"]
    workspace = {
        "workspace": {"name": "torch-project", "channels": ["conda-forge"], "platforms": [platform]},
        "dependencies": {"python": f"{_minor(setup)}.*"},
        "pypi-dependencies": rows,
        "activation": {"env": variables(setup)},
    }
    return f"# {MARKER}: `pixi install` makes the environment.\n" + toml_text(workspace)


def conda_text(setup: Setup) -> str:
    """Write an environment for conda and mamba: Python from conda-forge, the packages by pip, as installed."""
    name = f"torch-{setup.plan.variant}".replace("/", "-")
    package = "python-freethreading" if setup.plan.python.endswith("t") else "python"
    python = f"{package}={_minor(setup)}"
    return filled("environment.yml", name=name, python=python, lines=lines(setup), variables=variables(setup))


def _wanted(setup: Setup) -> dict[str, str]:
    """Return the requirements by name: pinned to what is known of them, else as the plan has them."""
    if setup.environment.packages:
        return {name: f"{name}=={version}" for name, version in asked(setup).items()}
    return {canonicalize_name(Requirement(line).name): line for line in setup.plan.requirements}


def _os(setup: Setup) -> str:
    return setup.machine.os or "linux"


def _uname(setup: Setup) -> str:
    """Return the processor's name as `platform.machine()` spells it on that system."""
    arch = setup.machine.arch or "x86_64"
    return {"x86_64": "AMD64", "amd64": "AMD64", "arm64": "ARM64"}.get(arch, arch) if _os(setup) == "windows" else arch


def _minor(setup: Setup) -> str:
    return ".".join(re.findall(r"\d+", setup.plan.python)[:2])

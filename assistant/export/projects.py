"""Projects for other tools: `pyproject.toml` for uv, `pixi.toml`, `environment.yml` for conda and mamba."""

from __future__ import annotations

import re

from assistant.export.bundle import MARKER, Bundle, Unsuited
from assistant.export.pins import asked, pages, pins
from assistant.export.shells import variables
from assistant.export.templates import filled, toml_text
from assistant.i18n import _
from assistant.model.plan import of_torch_family

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


def pyproject_text(bundle: Bundle) -> str:
    """Write a project for uv: torch's family tied to its own index, and locked for this kind of machine only."""
    packages, index = asked(bundle), bundle.plan.index_url
    machine = f"platform_machine == '{_uname(bundle)}'"
    told: dict[str, object] = {
        "environments": [f"sys_platform == '{_SYSTEMS[_os(bundle)]}' and {machine}"],
        "constraint-dependencies": pins(bundle),
    }
    if index:
        told["sources"] = {name: {"index": "torch"} for name in packages if of_torch_family(name)}
        told["index"] = [{"name": "torch", "url": index, "explicit": True}]
    project = {
        "name": "torch-project",
        "version": "0.1.0",
        "requires-python": f"=={_minor(bundle)}.*",
        "dependencies": [f"{name}=={version}" for name, version in packages.items()],
    }
    return f"# {MARKER}: `uv sync` makes the environment.\n" + toml_text({"project": project, "tool": {"uv": told}})


def pixi_text(bundle: Bundle) -> str:
    """Write a workspace for pixi: Python from conda-forge, torch from its own index, the rest from PyPI."""
    platform = _PLATFORMS.get((_os(bundle), (bundle.machine.arch or "").lower()))
    if platform is None or bundle.plan.python.endswith("t"):
        raise Unsuited(
            _("pixi has no platform for {system} on {arch}.", system=_os(bundle), arch=bundle.machine.arch),
            hint=_("Choose another format, requirements.txt say."),
        )
    index = bundle.plan.index_url
    rows = {
        name: {"version": f"=={version}", "index": index} if index and of_torch_family(name) else f"=={version}"
        for name, version in asked(bundle).items()
    }
    told = {
        "workspace": {"name": "torch-project", "channels": ["conda-forge"], "platforms": [platform]},
        "dependencies": {"python": f"{_minor(bundle)}.*"},
        "pypi-dependencies": rows,
        "activation": {"env": variables(bundle)},
    }
    return f"# {MARKER}: `pixi install` makes the environment.\n" + toml_text(told)


def conda_text(bundle: Bundle) -> str:
    """Write an environment for conda and mamba: Python from conda-forge, the packages by pip, as installed."""
    lines = [*pages(bundle), *(pins(bundle) or bundle.plan.requirements)]
    name = f"torch-{bundle.plan.variant}".replace("/", "-")
    python = (
        f"python={_minor(bundle)}" if not bundle.plan.python.endswith("t") else f"python-freethreading={_minor(bundle)}"
    )
    return filled("environment.yml", name=name, python=python, lines=lines, variables=variables(bundle))


def _os(bundle: Bundle) -> str:
    return bundle.machine.os or "linux"


def _uname(bundle: Bundle) -> str:
    """Name the processor as Python does on that system."""
    arch = bundle.machine.arch or "x86_64"
    return {"x86_64": "AMD64", "amd64": "AMD64", "arm64": "ARM64"}.get(arch, arch) if _os(bundle) == "windows" else arch


def _minor(bundle: Bundle) -> str:
    return ".".join(re.findall(r"\d+", bundle.plan.python)[:2])

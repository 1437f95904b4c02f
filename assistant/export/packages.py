"""The setup's packages as other tools read them: `requirements.txt`, `constraints.txt`, `pylock.toml`, and projects.

Torch's family, and nothing else, comes from torch's own index. pip has no index per package, and with
`--extra-index-url` any of the indexes may answer for any name (dependency confusion). A `--find-links` page of one
project offers that project's files only, and PyPI accepts no version with a label such as `+cu126` (PEP 440).
"""

from __future__ import annotations

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import carried_by_torch_index, load_catalog
from assistant.export.setup import MARKER, Setup, Unsuited, filled, toml_text, variables
from assistant.host.pip_settings import for_pip
from assistant.i18n import _, say
from assistant.model.visible import spelled

_INSTALLERS = ("pip", "uv")  # left out: on Windows pip cannot replace itself while it runs


def requirements_text(setup: Setup) -> str:
    """Write pins for `python -m pip install -r requirements.txt`."""
    return for_pip("\n".join([f"# {MARKER}", *_notes(setup), *lines(setup), ""]))


def lines(setup: Setup) -> list[str]:
    """List what pip and uv are to install, and where torch comes from: every package, or what the plan asks for."""
    links = [f"--find-links {place}" for place in setup.plan.links if "://" in place]
    return [*pages(setup), *links, *(pins(setup) or setup.plan.requirements)]


def constraints_text(setup: Setup) -> str:
    """Write pins that install nothing: `pip install -c constraints.txt NAME` keeps to these versions."""
    note = say("Keeps what is installed: python -m pip install -c constraints.txt NAME")
    return for_pip("\n".join([f"# {MARKER}", f"# {note}", *pins(setup), ""]))


def lock_text(setup: Setup) -> str:
    """Return the lock (PEP 751) that the environment was installed from; raise `Unsuited` where there was none."""
    if not setup.lock:
        raise Unsuited(
            _("The addresses and hashes of this environment's packages are not known, so there is no pylock.toml."),
            hint=_("Install with `assistant install` or `assistant apply`, then export."),
        )
    return f"# {MARKER}\n{spelled(setup.lock, long=True)}"


def pins(setup: Setup) -> list[str]:
    """List every package with its version, where they are known."""
    return [f"{name}=={version}" for name, version in _packages(setup)]


def pages(setup: Setup) -> list[str]:
    """List the pages of torch's own index, one for each package that comes from there."""
    index = setup.plan.index_url
    wanted = [
        name for name, version in _packages(setup) if "+" in version or carried_by_torch_index(name, setup.plan.variant)
    ]
    return [f"--find-links {index.rstrip('/')}/{name}/" for name in wanted] if index else []


def asked(setup: Setup) -> dict[str, str]:
    """Return the known versions of the packages that the plan asks for, and of torch's whole family."""
    wanted = {canonicalize_name(Requirement(line).name) for line in setup.plan.requirements}
    return {name: version for name, version in _packages(setup) if name in wanted or carried_by_torch_index(name)}


def _packages(setup: Setup) -> list[tuple[str, str]]:
    return [item for item in sorted(setup.environment.packages.items()) if item[0] not in _INSTALLERS]


def _notes(setup: Setup) -> list[str]:
    python = setup.report.facts.get("python", setup.plan.python)
    notes = [say("For Python {python}: python -m pip install -r requirements.txt", python=python)]
    if setup.plan.index_url:
        notes.append(say("torch and its family come from the pages below, everything else from pip's own index."))
    else:
        notes.append(say("Everything, torch too, comes from the package sources that pip is configured with."))
        if public := load_catalog().index_url(setup.plan.variant, setup.plan.torch):
            notes.append(say("Where they lack this build of torch, this index has it: {url}", url=public))
    return [f"# {note}" for note in (*notes, *_indexes(setup))]


def _indexes(setup: Setup) -> list[str]:
    """Say which indexes a project adds: to name them in the file would let them answer for any name."""
    urls = ", ".join(setup.plan.indexes)
    if not urls:
        return []
    return [
        say(
            "Without these indexes in pip's settings, packages of the same names may come from elsewhere: {urls}",
            urls=urls,
        )
    ]


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

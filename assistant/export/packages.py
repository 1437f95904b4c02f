"""The setup's packages as pip, uv and conda read them: requirements, constraints, a lock, and projects.

Torch's family, and nothing else, comes from torch's own index. pip has no index per package, and with
`--extra-index-url` any of the indexes may answer for any name (dependency confusion). A `--find-links` page of one
project offers that project's files only, and PyPI accepts no version with a label such as `+cu126` (PEP 440).
"""

from __future__ import annotations

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import carried_by_torch_index, load_catalog
from assistant.export.setup import MARKER, Setup, fill_template, toml_text, variables
from assistant.host.pip_settings import with_coding_line
from assistant.i18n import say
from assistant.model.visible import escape_hidden

_INSTALLERS = ("pip", "uv")  # left out: on Windows pip cannot replace itself while it runs


def pinned_files(setup: Setup) -> dict[str, str]:
    """Return by name the texts of `requirements.txt`, `constraints.txt` and, if there is a lock, `pylock.toml`."""
    note = say("Keeps what is installed: python -m pip install -c constraints.txt NAME")
    constraints = with_coding_line("\n".join([f"# {MARKER}", f"# {note}", *pins(setup), ""]))
    files = {"requirements.txt": requirements_text(setup), "constraints.txt": constraints}
    return {**files, "pylock.toml": lock_text(setup)} if setup.lock else files


def requirements_text(setup: Setup) -> str:
    """Return pins for `python -m pip install -r requirements.txt`.

    Comments at their head say, in the language in force, for which Python they are and where packages come from.
    """
    python = setup.report.facts.get("python", setup.plan.python)
    notes = [say("For Python {python}: python -m pip install -r requirements.txt", python=python)]
    if setup.plan.index_url:
        notes.append(say("torch and its family come from the pages below, everything else from pip's own index."))
    else:
        notes.append(say("Everything, torch too, comes from the package sources that pip is configured with."))
        if public := load_catalog().index_url(setup.plan.variant, setup.plan.torch):
            notes.append(say("Where they lack this build of torch, this index has it: {url}", url=public))
    if urls := ", ".join(setup.plan.indexes):  # named in the file, they would answer for any name
        notes.append(
            say(
                "Without these indexes in pip's settings, packages of the same names may come from elsewhere: {urls}",
                urls=urls,
            )
        )
    comments = [f"# {note}" for note in (MARKER, *notes)]
    return with_coding_line("\n".join([*comments, *lines(setup), ""]))


def lines(setup: Setup) -> list[str]:
    """Return lines for pip and uv: where torch comes from, and all installed packages, or if unknown the plan's."""
    links = [f"--find-links {place}" for place in setup.plan.links if "://" in place]
    return [*find_links_lines(setup), *links, *(pins(setup) or setup.plan.requirements)]


def lock_text(setup: Setup) -> str:
    """Return the lock (PEP 751) that the environment was installed from."""
    return f"# {MARKER}\n{escape_hidden(setup.lock, long=True)}"


def pins(setup: Setup) -> list[str]:
    """Return a line for each installed package with its version, but pip and uv; [] if they are not known."""
    return [f"{name}=={version}" for name, version in _packages(setup)]


def find_links_lines(setup: Setup) -> list[str]:
    """Return a `--find-links` line for each package of torch's own index; [] if the plan names no such index."""
    index = setup.plan.index_url
    if not index:
        return []
    return [
        f"--find-links {index.rstrip('/')}/{name}/"
        for name, version in _packages(setup)
        if "+" in version or carried_by_torch_index(name, setup.plan.variant)
    ]


def requested_versions(setup: Setup) -> dict[str, str]:
    """Return the versions of the packages that the plan asks for, and of torch's whole family."""
    names = {canonicalize_name(Requirement(line).name) for line in setup.plan.requirements}
    return {name: version for name, version in _packages(setup) if name in names or carried_by_torch_index(name)}


def _packages(setup: Setup) -> list[tuple[str, str]]:
    return [item for item in sorted(setup.environment.packages.items()) if item[0] not in _INSTALLERS]


_SYSTEMS = {"linux": "linux", "macos": "darwin", "windows": "win32"}


def pyproject_text(setup: Setup) -> str:
    """Return the `pyproject.toml` of a project for uv, with torch's family tied to its own index, if the plan has one.

    Every installed package is a constraint. It is limited to this system and processor.
    """
    system, arch, index = setup.machine.os or "linux", setup.machine.arch or "x86_64", setup.plan.index_url
    if system == "windows":  # as `platform.machine()` spells it there
        arch = {"x86_64": "AMD64", "amd64": "AMD64", "arm64": "ARM64"}.get(arch, arch)
    requirements = {name: f"{name}=={version}" for name, version in requested_versions(setup).items()}
    if not setup.environment.packages:
        requirements = {canonicalize_name(Requirement(line).name): line for line in setup.plan.requirements}
    uv: dict[str, object] = {
        "environments": [f"sys_platform == '{_SYSTEMS[system]}' and platform_machine == '{arch}'"],
        "constraint-dependencies": pins(setup),
    }
    if index:  # an explicit index serves only what `sources` sends there: https://docs.astral.sh/uv/concepts/indexes/
        uv["sources"] = {
            name: {"index": "torch"} for name in requirements if carried_by_torch_index(name, setup.plan.variant)
        }
        uv["index"] = [{"name": "torch", "url": index, "explicit": True}]
    project = {
        "name": "torch-project",
        "version": "0.1.0",
        "requires-python": f"=={_minor(setup)}.*",
        "dependencies": list(requirements.values()),
    }
    return f"# {MARKER}: `uv sync` makes the environment.\n" + toml_text({"project": project, "tool": {"uv": uv}})


def conda_text(setup: Setup) -> str:
    """Return an `environment.yml` for conda: Python from conda-forge, packages by pip as installed, the variables."""
    name = f"torch-{setup.plan.variant}".replace("/", "-")
    package = "python-freethreading" if setup.plan.python.endswith("t") else "python"
    python = f"{package}={_minor(setup)}"
    return fill_template("environment.yml", name=name, python=python, lines=lines(setup), variables=variables(setup))


def _minor(setup: Setup) -> str:
    return ".".join(re.findall(r"\d+", setup.plan.python)[:2])

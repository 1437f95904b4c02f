"""What in an environment conflicts with a plan, the project's tool that manages it included; each with its fix."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from assistant.catalog import carried_by_torch_index
from assistant.host.folders import is_own_environment
from assistant.i18n import Message, _
from assistant.install.constraints import guarded
from assistant.install.inspect_env import Distribution, Site
from assistant.install.uv import KERNEL
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import Plan
from assistant.model.record import Record
from assistant.model.shell import command_line

PIXI_ENVIRONMENT = Path(".pixi", "envs", "default")


def conflicts(site: Site, coming: Mapping[str, str]) -> tuple[Finding, ...]:
    """Find what would break in `site` once the packages in `coming` (name to version) are there.

    Which packages do not go together whatever they require is judged by the checks of a machine's facts.
    """
    after = {**site.versions, **coming}
    return (
        *_installed_twice(site, coming),
        *_broken_requirements(site, coming),
        *_owned_by_conda(site, after),
        *_surroundings(site),
    )


def undone_by_project(target: Path, plan: Plan, coming: Mapping[str, str]) -> tuple[Finding, ...]:
    """Find the project whose tool would undo the installation of the packages in `coming`."""
    project = project_of(target)
    return (undone(project, plan, coming),) if project else ()


class Broken(NamedTuple):
    """A package that stays, what it requires, and the version of that which it does not accept."""

    package: Distribution
    need: Requirement
    version: str


def broken_requirements(site: Site, coming: Mapping[str, str], gone: Container[str] = ()) -> Iterator[Broken]:
    """Find what is required and does not fit once the packages in `coming` are there and those in `gone` are not.

    A package that is not there at all is none: what is optional is required in many ways.
    """
    after = {**site.versions, **coming}
    numbers = site.version.rstrip("t")  # markers are asked of that Python, which may not be the one that runs this
    python = {"python_version": ".".join(numbers.split(".")[:2]), "python_full_version": numbers} if numbers else {}
    for one in site.own:
        name = canonicalize_name(one.name)
        if name in gone or after[name] != one.version:
            continue
        for line in one.requires:
            need = _requirement(line)
            required = canonicalize_name(need.name) if need else ""
            version = _version(after.get(required)) if required not in gone else None
            if need is None or version is None or need.specifier.contains(version, prereleases=True):
                continue
            if need.marker is None or need.marker.evaluate({**python, "extra": ""}):
                yield Broken(one, need, str(version))


def _installed_twice(site: Site, coming: Mapping[str, str]) -> Iterator[Finding]:
    """Find packages of which an environment lists several versions: their files are a mixture."""
    versions: dict[str, list[str]] = {}
    for one in site.own:
        versions.setdefault(canonicalize_name(one.name), []).append(one.version)
    for name, several in versions.items():
        if len(several) > 1 and coming.get(name, site.versions[name]) == site.versions[name]:
            text = _("Several versions of {name} are installed over one another: {versions}.")
            yield Finding(
                key="package-installed-twice",
                severity=Severity.ERROR,
                text=text.format(name=name, versions=", ".join(several)),
                evidence=tuple(f"{name}=={version}" for version in several),
                remedies=(
                    Remedy(
                        text=_(
                            "Uninstall {name} again and again until pip no longer finds it, then install it once.",
                            name=name,
                        ),
                        commands=(f"{site.python} -m pip uninstall -y {name}",),
                    ),
                ),
            )


def _broken_requirements(site: Site, coming: Mapping[str, str]) -> Iterator[Finding]:
    """Report the packages that stay and do not accept what is there afterwards; without what torch needs it fails."""
    for one, need, have in broken_requirements(site, coming):
        name, line = canonicalize_name(need.name), f"{need.name}{need.specifier}"
        comes = coming.get(name, site.versions.get(name)) != site.versions.get(name)
        text = (
            _("{package} {version} requires {need}, and the plan installs {name} {have}.")
            if comes
            else _("{package} {version} requires {need}, and {name} {have} is installed.")
        )
        fix, install = _("Update {package}, or give it an environment of its own.", package=one.name), one.name
        if not (comes or carried_by_torch_index(name)):
            fix, install = _("Install {need}.", need=line), line
        yield _finding(
            "torch-pinned" if carried_by_torch_index(name) else "requirement-broken",
            text.format(package=one.name, version=one.version, need=line, name=need.name, have=have),
            fix,
            command_line([site.python, "-m", "pip", "install", "--upgrade", install]),
            severity=Severity.ERROR if canonicalize_name(one.name) == "torch" else Severity.WARNING,
        )


def _owned_by_conda(site: Site, after: Mapping[str, str]) -> Iterator[Finding]:
    """Yield one warning that names the packages of conda's whose version changes; `after` are all versions then."""
    own = [one.name for one in site.own if one.installer == "conda"]
    lost = [name for name in own if after[canonicalize_name(name)] != site.versions[canonicalize_name(name)]]
    if lost:
        text = _("conda installed {names}; it would not know of the change and may restore its own versions.")
        fix = _("Remove them with conda first, or choose a new environment.")
        command = command_line(["conda", "remove", "--force", "--prefix", site.prefix, *lost])
        yield _finding("conda-owned", text.format(names=", ".join(lost)), fix, command)


FOREIGN_PIP = "foreign-pip"  # is about the shell that asks: every kernel that is made here has its own pip first


def _surroundings(site: Site) -> Iterator[Finding]:
    """Find whose the environment is, and what reaches into it from outside."""
    if is_own_environment(site.prefix):
        text = _("This is the assistant's own environment: the next update replaces it, torch included.")
        yield _finding("assistants-own-environment", text, _("Install into a new environment instead."))
    if site.managed:
        text = _("{python} belongs to the system, which forbids installing into it.", python=site.python)
        yield _finding("externally-managed", text, _("Choose a new environment."), severity=Severity.ERROR)
    shadows = sorted(
        one.name
        for one in site.distributions
        if one not in site.own and carried_by_torch_index(canonicalize_name(one.name))
    )
    in_user_site = [
        name for name in shadows if any(one.name == name and one.place == site.user_site for one in site.distributions)
    ]
    if site.user_site and in_user_site:
        text = _(
            "Every environment that shares {folder} sees {names} in it.",
            names=", ".join(in_user_site),
            folder=site.user_site,
        )
        command = f"PYTHONNOUSERSITE=1 {site.python}"
        yield _finding("user-site-shadow", text, _("Remove it there, or start Python without it."), command)
    if site.pythonpath:
        text = _(
            "PYTHONPATH names {path}, whose packages take precedence over the environment's.", path=site.pythonpath
        )
        yield _finding("pythonpath-leak", text, _("Unset it before you use the environment."), "unset PYTHONPATH")
    # A script's interpreter may be a link beside the environment's own: `bin/python3.12` beside `bin/python`.
    program = site.pip or site.pip_script
    if program and Path(program).parent != Path(site.python).parent:
        text = _("The command `pip` belongs to another Python: {python}.", python=site.pip)
        if not site.pip:
            text = _("The command `pip` is the script {path}, which chooses a Python by itself.", path=program)
        severity = Severity.WARNING if site.pip else Severity.INFO
        fix, command = _("Call pip through the environment's own Python."), f"{site.python} -m pip"
        yield _finding(FOREIGN_PIP, text, fix, command, severity=severity)


def _finding(key: str, text: Message, fix: Message, *commands: str, severity: Severity = Severity.WARNING) -> Finding:
    return Finding(key=key, severity=severity, text=text, remedies=(Remedy(text=fix, commands=commands),))


def _version(text: str | None) -> Version | None:
    try:
        return Version(text) if text else None
    except InvalidVersion:
        return None


@lru_cache(maxsize=4096)  # environments share most of their packages, and each of those names the same few
def _requirement(line: str) -> Requirement | None:
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


class Project(Record, frozen=True):
    """A project whose tool makes its environment from what `file` says, again and again."""

    tool: Literal["uv", "pixi"]
    file: str


def environment_of(folder: Path) -> Path:
    """Return the environment of the project in a folder; the folder itself where there is no project."""
    for inside in (Path(".venv"), PIXI_ENVIRONMENT):
        if project_of(folder / inside):
            return folder / inside
    return folder


def project_of(environment: Path) -> Project | None:
    """Return the project whose tool manages an environment; None for an environment of its own."""
    if environment.name == ".venv":
        file = environment.parent / "pyproject.toml"
        if "uv" in _tools(file) or (file.is_file() and (file.parent / "uv.lock").is_file()):
            return Project("uv", str(file))
    if environment.parts[-3:-1] == PIXI_ENVIRONMENT.parts[:2]:
        file = environment.parents[2] / "pixi.toml"
        other = file.with_name("pyproject.toml")
        if file.is_file() or "pixi" in _tools(other):
            return Project("pixi", str(file if file.is_file() else other))
    return None


def undone(project: Project, plan: Plan, coming: Mapping[str, str]) -> Finding:
    """Return the finding that the tool's next run would undo an installation, with the lines that prevent it."""
    command = {"uv": "uv sync", "pixi": "pixi install"}[project.tool]
    lines = snippet(project, plan, coming)
    remedies = [
        Remedy(
            text=_(
                "Add these lines to {file}; where it already has one of these tables, add them below its heading.",
                file=project.file,
            ),
            commands=(lines,),
        )
    ]
    if project.tool == "uv":
        asked = [canonicalize_name(Requirement(line).name) for line in (*plan.requirements, KERNEL)]
        packages = [f"{name}=={coming[name]}" if guarded(name) and name in coming else name for name in asked]
        again = command_line(["uv", "add", "--project", str(Path(project.file).parent), *packages])
        remedies.append(Remedy(text=_("Then add the packages to the project."), commands=(again,)))
    text = _("{tool} manages this environment from {file}: the next `{command}` would undo the installation.")
    return Finding(
        key="kept-by-project",
        severity=Severity.WARNING,
        text=text.format(tool=project.tool, file=project.file, command=command),
        remedies=tuple(remedies),
    )


def snippet(project: Project, plan: Plan, packages: Mapping[str, str]) -> str:
    """Write the TOML lines that tie torch's family to its index and versions, for the project's tool.

    By hand, as users put them below headings that their file has already: tomli_w gives each package its own heading.
    """
    pins = {name: version for name, version in packages.items() if guarded(name)}
    own = [name for name in pins if plan.index_url and carried_by_torch_index(name, plan.variant)]
    url = json.dumps(plan.index_url)  # a JSON string is a TOML string too
    if project.tool == "pixi":
        heading = "pypi-dependencies" if project.file.endswith("pixi.toml") else "tool.pixi.pypi-dependencies"
        index = dict.fromkeys(own, f", index = {url}")
        rows = [f'{name} = {{ version = "=={version}"{index.get(name, "")} }}' for name, version in pins.items()]
        return "\n".join([f"[{heading}]", *rows])
    pinned = json.dumps([f"{name}=={version}" for name, version in pins.items()])
    lines = ["[tool.uv]", f"constraint-dependencies = {pinned}"]
    if own:
        lines += ["", "[tool.uv.sources]", *(f'{name} = {{ index = "torch" }}' for name in own)]
        lines += ["", "[[tool.uv.index]]", 'name = "torch"', f"url = {url}", "explicit = true"]
    return "\n".join(lines)


def _tools(file: Path) -> Mapping[str, object]:
    """Return the `[tool.…]` tables of a `pyproject.toml`; {} where there are none."""
    try:
        tools = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, ValueError):
        return {}
    return tools if isinstance(tools, dict) else {}

"""What in an environment conflicts with a plan, found before anything is touched, each finding with its fix."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from assistant.catalog import carried_by_torch_index
from assistant.host.folders import is_own_environment
from assistant.i18n import Message, _
from assistant.install.inspect_env import Distribution, Site
from assistant.install.project import project_of, undone
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import Plan
from assistant.model.shell import command_line


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
            wanted = canonicalize_name(need.name) if need else ""
            have = _version(after.get(wanted)) if wanted not in gone else None
            if need is None or have is None or need.specifier.contains(have, prereleases=True):
                continue
            if need.marker is None or need.marker.evaluate({**python, "extra": ""}):
                yield Broken(one, need, str(have))


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
        name, wanted = canonicalize_name(need.name), f"{need.name}{need.specifier}"
        comes = coming.get(name, site.versions.get(name)) != site.versions.get(name)
        text = (
            _("{package} {version} requires {need}, and the plan installs {name} {have}.")
            if comes
            else _("{package} {version} requires {need}, and {name} {have} is installed.")
        )
        fix, install = _("Update {package}, or give it an environment of its own.", package=one.name), one.name
        if not (comes or carried_by_torch_index(name)):
            fix, install = _("Install {need}.", need=wanted), wanted
        yield _finding(
            "torch-pinned" if carried_by_torch_index(name) else "requirement-broken",
            text.format(package=one.name, version=one.version, need=wanted, name=need.name, have=have),
            fix,
            command_line([site.python, "-m", "pip", "install", "--upgrade", install]),
            severity=Severity.ERROR if canonicalize_name(one.name) == "torch" else Severity.WARNING,
        )


def _owned_by_conda(site: Site, after: Mapping[str, str]) -> Iterator[Finding]:
    """Find what conda installed and would not know to be replaced."""
    own = [one.name for one in site.own if one.installer == "conda"]
    lost = [name for name in own if after[canonicalize_name(name)] != site.versions[canonicalize_name(name)]]
    if lost:
        text = _("conda installed {names}; it would not know of the change and may restore its own versions.")
        fix = _("Remove them with conda first, or choose a new environment.")
        command = " ".join(["conda", "remove", "--force", "--prefix", f"'{site.prefix}'", *lost])
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

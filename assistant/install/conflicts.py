"""What in an environment conflicts with a plan, and what a later installation replaced; each with its fix."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import carried_by_torch_index
from assistant.host.files import is_own_environment
from assistant.i18n import Message, Text, _, sentences
from assistant.install.in_place import Move
from assistant.install.site import Distribution, Site, parse_version
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import name_of, requirement
from assistant.model.record import replace
from assistant.model.shell import command_line


def find_conflicts(site: Site, new_versions: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return a finding for each thing that breaks or is at risk in `site` once `new_versions` (by name) are installed.

    Incompatibilities that no requirement states are left to the rules about a machine's facts (`diagnose`).
    """
    return (*_package_findings(site, new_versions), *_surroundings_findings(site))


class BrokenRequirement(NamedTuple):
    """An installed package, a requirement of it, and the version of the required package that does not meet it."""

    package: Distribution
    requirement: Requirement
    version: str


def find_broken_requirements(
    site: Site, new_versions: Mapping[str, str], removed: Container[str] = ()
) -> Iterator[BrokenRequirement]:
    """Yield each unmet requirement of the environment's own packages, once `new_versions` replace the installed ones.

    Packages in `removed` (names), and those that get another version, are not examined. Left out are requirements for
    packages that will not be installed at all (extras have many), that do not hold for this Python, or are unreadable.
    """
    after = {**site.versions, **new_versions}
    numbers = site.version.rstrip("t")  # markers are asked of that Python, which may not be the one that runs this
    python = {"python_version": ".".join(numbers.split(".")[:2]), "python_full_version": numbers} if numbers else {}
    for package in site.own:
        if package.canonical_name in removed or after[package.canonical_name] != package.version:
            continue
        for line in package.requires:
            try:
                need, name = requirement(line), name_of(line)
            except InvalidRequirement:
                continue
            version = parse_version(after.get(name)) if name not in removed else None
            if version is None or need.specifier.contains(version, prereleases=True):
                continue
            if need.marker is None or need.marker.evaluate({**python, "extra": ""}):
                yield BrokenRequirement(package, need, str(version))


def _package_findings(site: Site, new_versions: Mapping[str, str]) -> Iterator[Finding]:
    """Yield findings: packages that stay installed in several versions, unmet requirements, changes to conda's."""
    before, after = site.versions, {**site.versions, **new_versions}
    pip = (site.python, "-m", "pip")
    several: dict[str, list[str]] = {}
    for package in site.own:
        several.setdefault(package.canonical_name, []).append(package.version)
    for name, versions in several.items():
        if len(versions) > 1 and after[name] == before[name]:
            text = _("Several versions of {name} are installed over one another: {versions}.")
            fix = _("Uninstall {name} again and again until pip no longer finds it, then install it once.", name=name)
            finding = _finding(
                "package-installed-twice",
                text.format(name=name, versions=", ".join(versions)),
                fix,
                command_line([*pip, "uninstall", "-y", name]),
                severity=Severity.ERROR,
            )
            yield replace(finding, evidence=tuple(f"{name}=={version}" for version in versions))
    for package, need, version in find_broken_requirements(site, new_versions):
        name, line = canonicalize_name(need.name), f"{need.name}{need.specifier}"
        is_changed, is_torchs = after[name] != before.get(name), carried_by_torch_index(name)
        text = _("{package} {version} requires {need}, and {name} {have} is installed.")
        if is_changed:
            text = _("{package} {version} requires {need}, and the plan installs {name} {have}.")
        fix, install = _("Update {package}, or give it an environment of its own.", package=package.name), package.name
        if not (is_changed or is_torchs):
            fix, install = _("Install {need}.", need=line), line
        yield _finding(
            "torch-pinned" if is_torchs else "requirement-broken",
            text.format(package=package.name, version=package.version, need=line, name=need.name, have=version),
            fix,
            command_line([*pip, "install", "--upgrade", install]),
            severity=Severity.ERROR if package.canonical_name == "torch" else Severity.WARNING,
        )
    condas = {package.name: package.canonical_name for package in site.own if package.is_condas}
    if changed := [name for name, canonical in condas.items() if after[canonical] != before[canonical]]:
        text = _("conda installed {names}; it would not know of the change and may restore its own versions.")
        fix = _("Remove them with conda first, or choose a new environment.")
        command = command_line(["conda", "remove", "--force", "--prefix", site.prefix, *changed])
        yield _finding("conda-owned", text.format(names=", ".join(changed)), fix, command)


def _surroundings_findings(site: Site) -> Iterator[Finding]:
    """Yield findings on the assistant's or the system's environment, and on what takes precedence over its packages.

    That is torch's family in the user site, PYTHONPATH, and a `pip` on PATH that belongs to another Python.
    """
    if is_own_environment(site.prefix):
        text = _("This is the assistant's own environment: the next update replaces it, torch included.")
        yield _finding("assistants-own-environment", text, _("Install into a new environment instead."))
    if site.managed:
        text = _("{python} belongs to the system, which forbids installing into it.", python=site.python)
        yield _finding("externally-managed", text, _("Choose a new environment."), severity=Severity.ERROR)
    shadows = {
        package.name
        for package in site.distributions
        if package.place == site.user_site != ""
        and package not in site.own
        and carried_by_torch_index(package.canonical_name)
    }
    if shadows:
        text = _("Every environment that shares {folder} sees {names} in it.")
        text = text.format(names=", ".join(sorted(shadows)), folder=site.user_site)
        command = f"PYTHONNOUSERSITE=1 {command_line([site.python])}"
        yield _finding("user-site-shadow", text, _("Remove it there, or start Python without it."), command)
    if site.pythonpath:
        text = _("PYTHONPATH names {path}, whose packages take precedence over the environment's.")
        fix = _("Unset it before you use the environment.")
        yield _finding("pythonpath-leak", text.format(path=site.pythonpath), fix, "unset PYTHONPATH")
    # A script's interpreter may be a link beside the environment's own: `bin/python3.12` beside `bin/python`.
    program = site.pip or site.pip_script
    if program and Path(program).parent != Path(site.python).parent:
        severity, text = Severity.WARNING, _("The command `pip` belongs to another Python: {python}.", python=site.pip)
        if not site.pip:
            severity = Severity.INFO
            text = _("The command `pip` is the script {path}, which chooses a Python by itself.", path=program)
        fix, command = _("Call pip through the environment's own Python."), command_line([site.python, "-m", "pip"])
        yield _finding("foreign-pip", text, fix, command, severity=severity)


def _finding(key: str, text: Message, fix: Message, *commands: str, severity: Severity = Severity.WARNING) -> Finding:
    """Return a finding with one remedy: what helps (`fix`), with its commands."""
    return Finding(key=key, severity=severity, text=text, remedies=(Remedy(text=fix, commands=commands),))


# Chosen: between two packages of one installation; unpacking a large one takes less, as they are downloaded before.
_PAUSE = 60.0
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")  # PEP 508: a requirement begins with it


class Installed(NamedTuple):
    """One installed package: when (seconds), by which installer, and from which address if from no index."""

    name: str
    at: float
    installer: str
    origin: str
    requires: frozenset[str]


def replaced_builds_findings(prefix: Path, pins: Mapping[str, str], site: Site) -> tuple[Finding, ...]:
    """Return an error on packages whose version in `site` is not the one in `pins` (by name); () if none.

    Its evidence are the names of the other packages that came with them and require them.
    """
    versions = site.versions
    moves = tuple(
        Move(name=name, before=version, after=versions.get(name, ""))
        for name, version in pins.items()
        if versions.get(name) != version
    )
    if not moves:
        return ()
    text = _("Another installation replaced packages in {path}: {changes}.")
    text = text.format(path=prefix, changes=tuple(move.words for move in moves))
    remedy = Remedy(
        text=_("Put the original packages back; this can be undone."),
        commands=(command_line(["assistant", "envs", "--mend", prefix]),),
    )
    every = {found.name: found for one in site.own if (found := _read_installed(one))}
    replaced = next((every[move.name] for move in moves if move.name in every), None)
    batch = _batch(replaced, every) if replaced else {}
    causes = [one for one in batch.values() if replaced and _reaches(one, replaced.name, every)]
    told = _culprit(replaced, batch, causes) if replaced else ""
    brought = tuple(one.name for one in causes if one.name not in pins)
    return (Finding("build-replaced", Severity.ERROR, sentences((text, told)), brought, (remedy,)),)


def _culprit(replaced: Installed, batch: Mapping[str, Installed], causes: Iterable[Installed]) -> Text:
    """Return a sentence on the installation (`batch`) that brought a package, by those `causes` that require it."""
    # What led to it is what nothing else of the same installation requires: uv marks dependencies as requested, too.
    needed = {name for one in batch.values() for name in one.requires if name != one.name}
    roots = [one for one in causes if one.name not in needed] or [replaced]
    what = ", ".join(f"{one.name} ({one.origin})" if one.origin else one.name for one in roots)
    text = _("{installer} did that on {date}, when it installed {packages}.")
    date = datetime.fromtimestamp(replaced.at).astimezone().strftime("%Y-%m-%d %H:%M")
    return text.format(installer=replaced.installer or _("An installer"), date=date, packages=what)


def _batch(one: Installed, every: Mapping[str, Installed]) -> dict[str, Installed]:
    """Return the packages of `every`, by name, that the installer of `one` put there without a long pause between."""
    found = sorted((each for each in every.values() if each.installer == one.installer), key=lambda each: each.at)
    place = found.index(one)
    first = next((n for n in range(place, 0, -1) if found[n].at - found[n - 1].at > _PAUSE), 0)
    last = next((n for n in range(place + 1, len(found)) if found[n].at - found[n - 1].at > _PAUSE), len(found))
    return {each.name: each for each in found[first:last]}


def _reaches(one: Installed, name: str, every: Mapping[str, Installed]) -> bool:
    """Return whether a package is the named one, or requires it, itself or by what it requires."""
    seen, ahead = set[str](), [one.name]
    while ahead:
        current = ahead.pop()
        if current == name:
            return True
        if current not in seen and current in every:
            seen.add(current)
            ahead += every[current].requires
    return False


def _read_installed(package: Distribution) -> Installed | None:
    """Return what its own files tell of a package's installation; None if there is no folder of that name.

    The folder's time is that of the installation, also where uv links files that are older.
    """
    stem = re.sub(r"[-_.]+", "_", package.name)
    folders = [Path(package.place, f"{name}-{package.version}.dist-info") for name in (stem, package.name)]
    folder = next((path for path in folders if path.is_dir()), None)
    if folder is None:
        return None
    origin = installer = ""
    with suppress(OSError, ValueError):
        installer = (folder / "INSTALLER").read_text(encoding="utf-8").strip()
        origin = str(json.loads((folder / "direct_url.json").read_text(encoding="utf-8"))["url"])
    always = (line for line in package.requires if "extra ==" not in line)
    requires = frozenset(canonicalize_name(need[0]) for line in always if (need := _NAME.match(line)))
    return Installed(package.canonical_name, folder.stat().st_mtime, installer, origin, requires)

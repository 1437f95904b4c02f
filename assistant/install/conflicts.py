"""What in an environment conflicts with a plan, found before anything is touched, each finding with its fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from assistant.host.folders import is_own_environment
from assistant.i18n import Message, _
from assistant.install.inspect_env import Site
from assistant.install.project import project_of, undone
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import Plan, of_torch_family


def conflicts(site: Site, coming: Mapping[str, str]) -> tuple[Finding, ...]:
    """Find what would break in `site` once the packages in `coming` (name to version) are there.

    Which packages do not go together whatever they require is judged by the checks of a machine's facts.
    """
    after = {**site.versions, **coming}
    return (*_broken_requirements(site, after), *_owned_by_conda(site, after), *_surroundings(site))


def undone_by_project(target: Path, plan: Plan, coming: Mapping[str, str]) -> tuple[Finding, ...]:
    """Find the project whose tool would undo the installation of the packages in `coming`."""
    project = project_of(target)
    return (undone(project, plan, coming),) if project else ()


def _broken_requirements(site: Site, after: Mapping[str, str]) -> Iterator[Finding]:
    """Find the packages that stay and do not accept what is there afterwards."""
    for one in site.own:
        if after.get(canonicalize_name(one.name)) != one.version:
            continue
        for line in one.requires:
            need = _requirement(line)
            have = _version(after.get(canonicalize_name(need.name))) if need else None
            if need and have and not need.specifier.contains(have, prereleases=True):
                text = _(
                    "{package} {version} requires {need}, and the plan installs {name} {have}.",
                    package=one.name,
                    version=one.version,
                    need=f"{need.name}{need.specifier}",
                    name=need.name,
                    have=have,
                )
                fix = _("Update {package}, or give it an environment of its own.", package=one.name)
                key = "torch-pinned" if of_torch_family(canonicalize_name(need.name)) else "requirement-broken"
                yield _finding(key, text, fix, f"{site.python} -m pip install --upgrade {one.name}")


def _owned_by_conda(site: Site, after: Mapping[str, str]) -> Iterator[Finding]:
    """Find what conda installed and would not know to be replaced."""
    own = [one.name for one in site.own if one.installer == "conda"]
    lost = [name for name in own if after[canonicalize_name(name)] != site.versions[canonicalize_name(name)]]
    if lost:
        text = _("conda installed {names}; it would not know of the change and may restore its own versions.")
        fix = _("Remove them with conda first, or choose a new environment.")
        command = " ".join(["conda", "remove", "--force", "--prefix", f"'{site.prefix}'", *lost])
        yield _finding("conda-owned", text.format(names=", ".join(lost)), fix, command)


def _surroundings(site: Site) -> Iterator[Finding]:
    """Find whose the environment is, and what reaches into it from outside."""
    if is_own_environment(site.prefix):
        text = _("This is the assistant's own environment: the next update replaces it, torch included.")
        yield _finding("assistants-own-environment", text, _("Install into a new environment instead."))
    if site.managed:
        text = _("{python} belongs to the system, which forbids installing into it.", python=site.python)
        yield _finding("externally-managed", text, _("Choose a new environment."), severity=Severity.ERROR)
    shadows = sorted(
        one.name for one in site.distributions if one not in site.own and of_torch_family(canonicalize_name(one.name))
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
    if site.pip and Path(site.pip).parent != Path(site.python).parent:
        text = _("The command `pip` belongs to another Python: {python}.", python=site.pip)
        yield _finding(
            "foreign-pip", text, _("Call pip through the environment's own Python."), f"{site.python} -m pip"
        )


def _finding(key: str, text: Message, fix: Message, *commands: str, severity: Severity = Severity.WARNING) -> Finding:
    return Finding(key=key, severity=severity, text=text, remedies=(Remedy(text=fix, commands=commands),))


def _version(text: str | None) -> Version | None:
    try:
        return Version(text) if text else None
    except InvalidVersion:
        return None


def _requirement(line: str) -> Requirement | None:
    try:
        need = Requirement(line)
    except InvalidRequirement:
        return None
    return need if need.marker is None or need.marker.evaluate({"extra": ""}) else None

"""What in an environment would fight with a plan, found before anything is touched, each with the way out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from assistant.host.folders import OWN_ENVIRONMENTS
from assistant.i18n import Message, _
from assistant.install.site import Site
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import of_torch_family


def conflicts(site: Site, coming: Mapping[str, str]) -> tuple[Finding, ...]:
    """Find who would be broken in `site` once the packages in `coming` (name to version) are there.

    Which packages do not go together whatever they ask for is judged by the checks of a machine's facts.
    """
    after = {**site.versions, **coming}
    return (*_pinned(site, after), *_conda(site, after), *_around(site))


def _pinned(site: Site, after: Mapping[str, str]) -> Iterator[Finding]:
    """Ask the packages that stay whether they accept what is there then."""
    for one in site.own:
        if after.get(canonicalize_name(one.name)) != one.version:
            continue
        for line in one.requires:
            need = _requirement(line)
            have = _version(after.get(canonicalize_name(need.name))) if need else None
            if need and have and not need.specifier.contains(have, prereleases=True):
                text = _(
                    "{package} {version} asks for {need}, and {name} {have} is to be there.",
                    package=one.name,
                    version=one.version,
                    need=f"{need.name}{need.specifier}",
                    name=need.name,
                    have=have,
                )
                out = _("Update {package}, or give it an environment of its own.", package=one.name)
                key = "torch-pinned" if of_torch_family(canonicalize_name(need.name)) else "requirement-broken"
                yield _finding(key, text, out, _pip(site, "install", "--upgrade", one.name))


def _conda(site: Site, after: Mapping[str, str]) -> Iterator[Finding]:
    """Name what conda installed and would not know to be replaced."""
    own = [one.name for one in site.own if one.installer == "conda"]
    lost = [name for name in own if after[canonicalize_name(name)] != site.versions[canonicalize_name(name)]]
    if lost:
        text = _("{names} came from conda, which would not learn of the change and may put its own back.")
        out = _("Have conda let go of them first, or choose a new environment.")
        command = " ".join(["conda", "remove", "--force", "--prefix", f"'{site.prefix}'", *lost])
        yield _finding("conda-owned", text.format(names=", ".join(lost)), out, command)


def _around(site: Site) -> Iterator[Finding]:
    """Look at whose the environment is, and at what reaches into it from outside."""
    if Path(site.prefix).parent.name == OWN_ENVIRONMENTS:
        text = _("This is the assistant's own environment: the next update of the project replaces it, torch and all.")
        yield _finding("assistants-own-environment", text, _("Install into a new environment instead."))
    if site.managed:
        text = _("{python} belongs to the system, which forbids installing into it.", python=site.python)
        yield _finding("externally-managed", text, _("Choose a new environment."), severity=Severity.ERROR)
    shadows = sorted(
        one.name for one in site.distributions if one not in site.own and of_torch_family(canonicalize_name(one.name))
    )
    in_user_site = [name for name in shadows if _lies_in(site, name, site.user_site)]
    if in_user_site:
        text = _(
            "{names} in {folder} would be seen by every environment that shares that folder.",
            names=", ".join(in_user_site),
            folder=site.user_site,
        )
        command = f"PYTHONNOUSERSITE=1 {site.python}"
        yield _finding("user-site-shadow", text, _("Remove it there, or start Python without it."), command)
    if site.pythonpath:
        text = _(
            "PYTHONPATH leads into {path}, whose packages go before those of the environment.", path=site.pythonpath
        )
        yield _finding("pythonpath-leak", text, _("Unset it before you use the environment."), "unset PYTHONPATH")
    if site.pip and not _same(site.pip, site):
        text = _("The command `pip` serves another Python: {python}.", python=site.pip)
        yield _finding(
            "foreign-pip", text, _("Call pip through the Python that it is to serve."), f"{site.python} -m pip"
        )


def _lies_in(site: Site, name: str, folder: str) -> bool:
    return bool(folder) and any(one.name == name and one.place == folder for one in site.distributions)


def _same(program: str, site: Site) -> bool:
    """Tell whether a script's interpreter is the environment's: a link inside `bin` counts by its folder."""
    return Path(program).parent == Path(site.python).parent


def _finding(key: str, text: Message, out: Message, *commands: str, severity: Severity = Severity.WARNING) -> Finding:
    return Finding(key=key, severity=severity, text=text, remedies=(Remedy(text=out, commands=commands),))


def _pip(site: Site, *words: str) -> str:
    return " ".join([site.python, "-m", "pip", *(f'"{word}"' if "<" in word else word for word in words)])


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

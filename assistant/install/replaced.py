"""Packages that a later installation replaced: which, when, by which installer, and what was being installed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from assistant.i18n import Text, _, sentences
from assistant.install.in_place import Move
from assistant.install.site import Distribution, Site
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.shell import command_line

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

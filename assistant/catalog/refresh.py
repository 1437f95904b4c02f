"""Bring the tables up to date from what package indexes list, and from the metadata of wheels there.

Nothing known is taken away, whatever an index lists; what nobody tells stays unknown. A new build is assumed to hold
the code of its predecessor (`TorchWheel.assumed`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from assistant.catalog.catalog import Catalog, number
from assistant.catalog.companions import CompanionTables, load_companions
from assistant.catalog.refresh_amd import is_amds, with_amd
from assistant.catalog.refresh_files import ANY, Facts, File, Seen, files_of
from assistant.catalog.refresh_pairs import unknown_version, with_companions, with_family
from assistant.catalog.refresh_releases import with_basics, with_releases
from assistant.catalog.rows import FAMILY, RocmTables, TorchTables
from assistant.i18n import Message

__all__ = ["Kept", "Refreshed", "Seen", "kept", "newer_than", "refreshed", "to_read"]


class Kept(NamedTuple):
    """The tables that are kept up to date from the indexes, named as their files are."""

    torch: TorchTables
    rocm: RocmTables
    companions: CompanionTables


class Refreshed(NamedTuple):
    """The tables as they would be, those of them that changed, and each change in one sentence."""

    tables: Kept
    changed: dict[str, msgspec.Struct]
    changes: tuple[Message, ...]


def kept(known: Catalog) -> Kept:
    """Return the tables in force."""
    return Kept(known.torch, known.rocm, load_companions())


def refreshed(tables: Kept, seen: Iterable[Seen], facts: Facts, today: str) -> Refreshed:
    """Return the tables with what the indexes list and the metadata tell on the day `today` (YYYY-MM-DD)."""
    files = files_of(seen)
    torch, releases = with_releases(tables.torch, _torchs(files), today)
    torch, basics = with_basics(torch, files, today)
    torch, family = with_family(torch, files, facts, today)
    rocm, amd = with_amd(tables.rocm, files, today)
    companions, pairs = with_companions(tables.companions, files, facts, today)
    after = Kept(torch, rocm, companions)
    changed = {name: new for name, new in after._asdict().items() if new is not getattr(tables, name)}
    return Refreshed(after, changed, (*releases, *basics, *family, *amd, *pairs))


def newer_than(tables: TorchTables, seen: Iterable[Seen]) -> str | None:
    """Return the newest torch that an index lists and the tables do not know yet."""
    known = max(number(row.version) for row in tables.releases.rows)
    newer = {file.version for file in files_of(seen) if file.package == "torch"}
    return max((version for version in newer if number(version) > known), key=number, default=None)


def to_read(tables: Kept, seen: Iterable[Seen]) -> tuple[Seen, ...]:
    """Choose the wheels whose metadata can tell what the tables do not know, one for each version.

    The newest come first.
    """
    files = sorted(
        files_of(seen), key=lambda file: (number(file.version), not file.python.endswith("t"), number(file.python))
    )
    listed, _changes = with_releases(tables.torch, _torchs(files), "")
    chosen: dict[tuple[str, ...], Seen] = {}
    for file in reversed(files):
        if file.seen.url and (asked := _asked(tables, listed, file)):
            chosen.setdefault(asked, file.seen)
    return tuple(dict.fromkeys(chosen.values()))


def _torchs(files: Iterable[File]) -> list[File]:
    """Return torch's wheels but those of AMD's own indexes, whose releases are a table of their own."""
    return [file for file in files if file.package == "torch" and file.platform != ANY and not is_amds(file)]


def _asked(tables: Kept, listed: TorchTables, file: File) -> tuple[str, ...]:
    """Return what a file can tell that is not known, as a name of it; () where that is nothing.

    `listed` are the releases as the indexes list them.
    """
    if file.package == "torch":
        return _asked_of_torch(tables, file)
    if file.package in FAMILY:
        paired = {version for row in tables.torch.releases.rows for version in getattr(row, file.package)}
        first, last = min(paired, key=number), max(paired, key=number)
        before, newest = (getattr(row, file.package) for row in listed.releases.rows[-2:])
        new = file.version not in paired and number(file.version) > number(first)
        return (file.package, file.version) if new or (file.version == last and before and not newest) else ()
    row = next((row for row in tables.companions.companions.rows if row.name == file.package), None)
    return (file.package, file.version) if row and unknown_version(row, file.version) else ()


def _asked_of_torch(tables: Kept, file: File) -> tuple[str, ...]:
    """Ask one wheel of a new release for each kind of build: which Triton it takes, its metadata alone tell."""
    known = {row.version for row in tables.torch.releases.rows}
    new = file.version not in known and number(file.version) >= min(map(number, known))
    asked = new and file.platform.startswith("linux") and not is_amds(file)
    return ("torch", file.version, re.sub(r"[\d.]", "", file.variant)) if asked else ()

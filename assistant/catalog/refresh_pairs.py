"""Which versions of torchvision, torchaudio and other companions go with which torch, from the metadata of wheels."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from assistant.catalog.catalog import number
from assistant.catalog.companions import Companion, CompanionTables, VersionRange
from assistant.catalog.refresh_files import Facts, File
from assistant.catalog.rows import FAMILY, LaterCompanion, TorchRelease, TorchTables
from assistant.catalog.tables import with_rows
from assistant.i18n import Message, _
from assistant.model.record import replace


def exact(bounds: str | None) -> str:
    """Return the one release that bounds such as "==2.16.0" or "==2.16.0+cu130" name, "" for any others."""
    found = [one for one in SpecifierSet(bounds or "") if one.operator == "==" and "*" not in one.version]
    return Version(found[0].version).public if len(found) == 1 else ""


def with_family(
    tables: TorchTables, files: Collection[File], facts: Facts, today: str
) -> tuple[TorchTables, tuple[Message, ...]]:
    """Return the tables with the pairs of torchvision and torchaudio that their wheels' metadata name.

    A version that names one torch belongs to it. Where no such version is seen, the newest one whose bounds let a new
    release in does, if the release before had one, too; and so does one that is newer than all that are known, with the
    builds that it has (`LaterCompanion`).
    """
    held = [file for file in files if file.package in FAMILY and file.seen.filename in facts]
    bounds = {(file.package, file.version): facts[file.seen.filename].bounds("torch") for file in held}
    rows = {row.version: row for row in tables.releases.rows}
    changes: list[Message] = []

    def pair(row: TorchRelease, name: str, version: str) -> None:
        known: tuple[str, ...] = getattr(row, name)
        if version not in known:
            rows[row.version] = replace(row, **{name: (*known, version)})
            changes.append(
                _("{name} {version} goes with torch {torch}.", name=name, version=version, torch=row.version)
            )

    for (name, version), bound in sorted(bounds.items(), key=lambda item: number(item[0][1])):
        if (torch := exact(bound)) in rows:
            pair(rows[torch], name, version)
    order, later = sorted(rows, key=number), {(row.package, row.version): row for row in tables.later.rows}
    for name in FAMILY:
        open_ones = [version for (of, version), bound in bounds.items() if of == name and bound and not exact(bound)]
        newest = max((number(one) for row in tables.releases.rows for one in getattr(row, name)), default=())
        for before, torch in pairwise(order):
            fitting = [one for one in open_ones if SpecifierSet(bounds[name, one] or "").contains(torch)]
            best = max(fitting, key=number, default="")
            if best and getattr(rows[before], name) and (not getattr(rows[torch], name) or number(best) > newest):
                pair(rows[torch], name, best)
                if number(best) > newest:
                    later[name, best] = _later(name, best, files, rows[order[-1]])
    if not changes:
        return tables, ()
    after = replace(tables.later, rows=tuple(later.values()), as_of=today)
    return replace(
        tables,
        releases=with_rows(tables.releases, rows.values(), today),
        later=after if after.rows != tables.later.rows else tables.later,
    ), tuple(changes)


def _later(name: str, version: str, files: Iterable[File], torch: TorchRelease) -> LaterCompanion:
    """Tell the builds of a companion that came out for no one torch: PyPI's is that of the newest torch there."""
    variants: dict[str, set[str]] = {}
    pythons: set[str] = set()
    for file in files:
        if (file.package, file.version) == (name, version):
            own = torch.pypi.get(file.platform) if file.variant == "pypi" else None
            variants.setdefault(file.platform, set()).update(filter(None, (file.variant, own)))
            pythons.add(file.python)
    tags = () if "3" in pythons else tuple(sorted(pythons))
    return LaterCompanion(
        package=name, version=version, variants={key: tuple(sorted(one)) for key, one in variants.items()}, pythons=tags
    )


def with_companions(
    tables: CompanionTables, files: list[File], facts: Facts, today: str
) -> tuple[CompanionTables, tuple[Message, ...]]:
    """Return the tables with the pairs of companions' new versions: from their own metadata, and from torch's."""
    found: dict[tuple[str, str], str] = {}
    for file in files:
        told = facts.get(file.seen.filename)
        if told and file.package == "torch":
            needs = (Requirement(line) for line in told.requires)
            found |= {
                (canonicalize_name(need.name), exact(str(need.specifier))): f"=={file.version}"
                for need in needs
                if exact(str(need.specifier))
            }
        elif told:
            found[file.package, file.version] = told.bounds("torch") or ""
    changes: list[Message] = []
    rows = tuple(_companion(row, found, today, changes) for row in tables.companions.rows)
    if not changes:
        return tables, ()
    return replace(tables, companions=replace(tables.companions, rows=rows, as_of=today)), tuple(changes)


def unknown_version(row: Companion, version: str) -> bool:
    """Return whether a version is newer than all that a companion's row tells of."""
    ranges = [one for one in row.ranges if one.versions]
    newest = max((one.least for one in ranges), default=None)
    told = any(SpecifierSet(one.versions, prereleases=True).contains(version) for one in row.ranges)
    return newest is not None and Version(version) > newest and not told


def _companion(row: Companion, found: dict[tuple[str, str], str], today: str, changes: list[Message]) -> Companion:
    """Add the versions that no range holds; one that asks for no torch, or for several releases, says that, too."""
    new = [
        (version, bounds)
        for (name, version), bounds in sorted(found.items(), key=lambda item: number(item[0][1]))
        if name == row.name and bounds and unknown_version(row, version)
    ]
    for version, bounds in new:
        changes.append(_("{name} {version} goes with torch {torch}.", name=row.name, version=version, torch=bounds))
    ranges = (VersionRange(versions=f"=={version}", torch=(bounds,), as_of=today) for version, bounds in new)
    return replace(row, ranges=(*row.ranges, *ranges)) if new else row

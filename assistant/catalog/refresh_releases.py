"""Releases of torch, and the Pythons of what stands beside it, brought up to date from what indexes list."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from assistant.catalog.catalog import number
from assistant.catalog.refresh_files import ANY, File
from assistant.catalog.rows import Basic, TorchRelease, TorchTables
from assistant.catalog.tables import with_rows
from assistant.i18n import Message, _
from assistant.model.record import replace

Changes = tuple[Message, ...]


def with_releases(tables: TorchTables, files: list[File], today: str) -> tuple[TorchTables, Changes]:
    """Return the tables with every release that the files show, patches of older lines among them.

    Releases older than the tables' first are left out on purpose.
    """
    by_version: dict[str, list[File]] = defaultdict(list)
    for file in files:
        by_version[file.version].append(file)
    known = {row.version: row for row in tables.releases.rows}
    on_pypi = any(file.seen.source == "pypi" and not file.platform.startswith("macos") for file in files)
    changes: list[Message] = []
    for version in sorted(by_version, key=number):
        held, before = by_version[version], known.get(version)
        older = [row for row in known.values() if number(row.version) < number(version)]
        last = max(older, key=lambda row: number(row.version), default=before)
        if last is None:
            continue
        begun = before or _begun(version, held, last, today, on_pypi=on_pypi)
        after = known[version] = _release(begun, held, last)
        if before is None:
            tags = ", ".join(sorted({variant for variants in after.variants.values() for variant in variants}))
            changes.append(_("torch {version} is new: {variants}.", version=version, variants=tags))
        elif before != replace(after, mb=before.mb):
            changes.append(_("torch {version} has more wheels than were known.", version=version))
    if not changes:
        return tables, ()
    rows = sorted(known.values(), key=lambda row: number(row.version))
    return replace(tables, releases=with_rows(tables.releases, rows, today)), tuple(changes)


def _begun(version: str, held: list[File], older: TorchRelease, today: str, *, on_pypi: bool) -> TorchRelease:
    """Begin a row for a new release: floors from its tags; what they do not tell is as in the release before it.

    With `on_pypi`, PyPI was heard: what it does not list for this release, it does not have.
    """
    there = {file.platform for file in held if file.seen.source == "pypi"}
    linux = next((file.floor for file in held if file.platform == "linux_x86_64" and file.floor), "")
    mac = next((file.floor for file in held if file.platform == "macos_arm64" and file.floor), "")
    return TorchRelease(
        version=version,
        date=today,
        pythons={"any": ()},
        variants={},
        pypi={platform: build for platform, build in older.pypi.items() if platform in there or not on_pypi},
        glibc={"linux": linux} if linux else older.glibc,
        macos=replace(older.macos, wheel=mac or older.macos.wheel),
    )


def _release(row: TorchRelease, held: list[File], older: TorchRelease) -> TorchRelease:
    """Add the files of a release to its row; its variants stand in the order of the release before it."""
    pythons, variants, unconfirmed = dict(row.pythons), dict(row.variants), dict(row.unconfirmed)
    sizes, glibc = dict(row.mb), dict(row.glibc)
    order = [variant for tags in older.variants.values() for variant in tags]
    every = {tag for one in (older, row) for tags in one.pythons.values() for tag in tags}
    for file in held:
        tags = pythons.get(file.platform, pythons["any"])
        if missing := {*file.pythons(every)} - {*tags}:
            pythons[file.platform] = _sorted_pythons((*tags, *missing))
        known = variants.get(file.platform, ())
        if file.variant not in known and (file.variant != "pypi" or file.platform.startswith("macos")):
            found = (*known, file.variant)
            variants[file.platform] = found if known and row.variants.get(file.platform) else _placed(found, order)
        unconfirmed[file.platform] = tuple(tag for tag in unconfirmed.get(file.platform, ()) if tag != file.variant)
        if file.seen.source == "pypi":
            if file.seen.size:
                sizes.setdefault(file.platform, round(file.seen.size / 1e6))
        elif file.floor and file.platform.startswith("linux") and file.platform not in row.variants:
            usual = glibc.get(file.platform) or glibc.get("linux")
            if file.floor != usual:
                glibc[f"{file.platform}/{file.variant}"] = file.floor
    left = {platform: tags for platform, tags in unconfirmed.items() if tags}
    return replace(row, pythons=pythons, variants=variants, unconfirmed=left, mb=sizes, glibc=glibc)


def _placed(variants: tuple[str, ...], order: list[str]) -> tuple[str, ...]:
    """Sort variants as in the release before, where they stand best first; new ones follow their own kind by number."""

    def place(variant: str) -> tuple[int, int, tuple[int, ...]]:
        kinds = [_kind(one) for one in order]
        kind = kinds.index(_kind(variant)) if _kind(variant) in kinds else len(kinds)
        return kind, order.index(variant) if variant in order else len(order), number(variant)

    return tuple(sorted(variants, key=place))


def _kind(variant: str) -> str:
    return variant.rstrip("0123456789.")


def _sorted_pythons(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(tags, key=lambda tag: (int(tag.rstrip("t")[1:]), tag)))


def with_basics(tables: TorchTables, files: list[File], today: str) -> tuple[TorchTables, Changes]:
    """Return the tables with the Pythons for which what stands beside torch has wheels.

    Rows for one CUDA major stay as they are, since a file name does not tell it.
    """
    pythons = {tag for row in tables.releases.rows for tags in row.pythons.values() for tag in tags}
    changes: list[Message] = []
    rows = tuple(_basic(row, files, pythons, changes) for row in tables.basics.rows)
    if not changes:
        return tables, ()
    return replace(tables, basics=with_rows(tables.basics, rows, today)), tuple(changes)


def _basic(row: Basic, files: list[File], tags: set[str], changes: list[Message]) -> Basic:
    if row.cuda is not None:
        return row
    pythons = dict(row.pythons)
    for file in files:
        if file.package == row.package and file.platform != ANY:
            known = pythons.get(file.platform, ())
            missing = {*file.pythons(tags)} & tags - {*known}
            pythons[file.platform] = (*known, *_sorted_pythons(missing))
    if pythons != row.pythons:
        changes.append(_("{package} has wheels for more Python versions.", package=row.package))
    return replace(row, pythons=pythons)

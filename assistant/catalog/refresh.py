"""Bring the torch tables up to date from the file names that package indexes list."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from assistant.catalog.catalog import number
from assistant.catalog.rows import Basic, Macos, TorchRelease, TorchTables
from assistant.i18n import Message, _

_PLATFORMS = {
    r"manylinux.*_x86_64|linux_x86_64": "linux_x86_64",
    r"manylinux.*_aarch64|linux_aarch64": "linux_aarch64",
    "win_amd64": "windows_amd64",
    "win_arm64": "windows_arm64",
    r"macosx_.*_arm64": "macos_arm64",
    r"macosx_.*_x86_64": "macos_x86_64",
}


class Seen(NamedTuple):
    """A wheel that an index lists: the variant of that index ("pypi" for PyPI), its file name, its size in bytes."""

    source: str
    filename: str
    size: int | None = None


class Refreshed(NamedTuple):
    """The tables as they would be, and each change in one sentence; no change leaves the tables as they were."""

    tables: TorchTables
    changes: tuple[Message, ...]


class _File(NamedTuple):
    package: str
    version: str
    platform: str
    python: str
    floor: str
    seen: Seen


def refreshed(tables: TorchTables, seen: Iterable[Seen], today: str) -> Refreshed:
    """Return the tables with what the indexes hold on the day `today` (YYYY-MM-DD); nothing known is taken away."""
    files = [file for wheel in seen for file in _files(wheel)]
    changes: list[Message] = []
    releases = _releases(tables, [file for file in files if file.package == "torch"], today, changes)
    pythons = {tag for row in releases for tags in row.pythons.values() for tag in tags}
    beside = [file for file in files if file.python in pythons]
    basics = tuple(_basic(row, beside, changes) for row in tables.basics.rows)
    if not changes:
        return Refreshed(tables, ())
    return Refreshed(
        replace(
            tables,
            releases=replace(tables.releases, rows=releases, as_of=today),
            basics=replace(tables.basics, rows=basics, as_of=today),
        ),
        tuple(changes),
    )


def newer_than(tables: TorchTables, seen: Iterable[Seen]) -> str | None:
    """Return the newest torch that an index lists and the tables do not know yet."""
    known = max(number(row.version) for row in tables.releases.rows)
    newer = {file.version for wheel in seen for file in _files(wheel) if file.package == "torch"}
    return max((version for version in newer if number(version) > known), key=number, default=None)


def _files(wheel: Seen) -> list[_File]:
    """Read a file name; pre-releases and platforms that the catalogue does not keep give nothing."""
    try:
        name, version, _build, tags = parse_wheel_filename(wheel.filename)
    except InvalidWheelFilename:
        return []
    found = {}
    for tag in () if version.is_prerelease else tags:
        platform = next((key for pattern, key in _PLATFORMS.items() if re.fullmatch(pattern, tag.platform)), None)
        python = tag.interpreter.removeprefix("cp") + ("t" if tag.abi.endswith("t") else "")
        # The glibc or macOS that it asks for: manylinux_2_28 is 2.28, macosx_14_0 is 14.0, manylinux2014 is 2.17
        # (https://peps.python.org/pep-0600/).
        numbers = re.search(r"_(\d+)_(\d+)_", tag.platform)
        floor = f"{numbers[1]}.{numbers[2]}" if numbers else "2.17"
        if platform and python[:1].isdigit():
            found[platform] = _File(name, version.public, platform, python, floor, wheel)
    return list(found.values())


def _releases(tables: TorchTables, files: list[_File], today: str, changes: list[Message]) -> tuple[TorchRelease, ...]:
    """Return the releases with these files added, and tell each change."""
    by_version: dict[str, list[_File]] = defaultdict(list)
    for file in files:
        by_version[file.version].append(file)
    known = {row.version: row for row in tables.releases.rows}
    newest = max(known.values(), key=lambda row: number(row.version))
    for version, held in sorted(by_version.items(), key=lambda item: number(item[0])):
        before = known.get(version)
        if before is None and number(version) < number(newest.version):
            continue  # an old release that the tables leave out on purpose
        after = known[version] = _release(before or _blank(version, held, newest, today), held)
        if before is None:
            tags = ", ".join(sorted({variant for variants in after.variants.values() for variant in variants}))
            changes.append(_("torch {version} is new: {variants}.", version=version, variants=tags))
        elif before != after:
            changes.append(_("torch {version} has more wheels than were known.", version=version))
    return tuple(known.values())


def _blank(version: str, held: list[_File], newest: TorchRelease, today: str) -> TorchRelease:
    """Begin a row for a new release: floors from its tags, the rest as in the newest release known."""
    linux = next((file.floor for file in held if file.platform == "linux_x86_64"), newest.glibc.get("linux", "2.28"))
    mac = next((file.floor for file in held if file.platform == "macos_arm64"), newest.macos.wheel)
    return TorchRelease(
        version=version,
        date=today,
        pythons={"any": ()},
        variants={},
        pypi=newest.pypi,
        glibc={"linux": linux},
        macos=Macos(wheel=mac, mps=newest.macos.mps),
    )


def _release(row: TorchRelease, held: list[_File]) -> TorchRelease:
    pythons = {platform: tuple(tags) for platform, tags in row.pythons.items()}
    variants = dict(row.variants)
    unconfirmed = dict(row.unconfirmed)
    sizes = dict(row.mb)
    for file in held:
        tags = pythons.get(file.platform, pythons["any"])
        if file.python not in tags:
            pythons[file.platform] = tuple(
                sorted((*tags, file.python), key=lambda tag: (int(tag.rstrip("t")[1:]), tag))
            )
        variant = "pypi" if file.platform.startswith("macos") else file.seen.source
        known = variants.get(file.platform, ())
        if variant not in known and not (variant == "pypi" and not file.platform.startswith("macos")):
            variants[file.platform] = (*known, variant)
        unconfirmed[file.platform] = tuple(tag for tag in unconfirmed.get(file.platform, ()) if tag != variant)
        if file.seen.source == "pypi" and file.seen.size:
            sizes.setdefault(file.platform, round(file.seen.size / 1e6))
    left = {platform: tags for platform, tags in unconfirmed.items() if tags}
    return replace(row, pythons=pythons, variants=variants, unconfirmed=left, mb=sizes)


def _basic(row: Basic, files: list[_File], changes: list[Message]) -> Basic:
    """Add Python tags; rows for one CUDA major stay as they are, since a file name does not tell it."""
    if row.cuda is not None:
        return row
    pythons = dict(row.pythons)
    for file in files:
        if file.package == row.package and file.python not in pythons.get(file.platform, ()):
            pythons[file.platform] = (*pythons.get(file.platform, ()), file.python)
    if pythons != row.pythons:
        changes.append(_("{package} has wheels for more Python versions.", package=row.package))
    return replace(row, pythons=pythons)

"""Bring the tables up to date from what package indexes list, and from the metadata of wheels there.

Nothing known is taken away, whatever an index lists; what nobody tells stays unknown. A new build is assumed to hold
the code of its predecessor (`TorchWheel.assumed`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from assistant.catalog.catalog import AMD_INDEX, Catalog, number
from assistant.catalog.rows import FAMILY, AmdRelease, Basic, LaterCompanion, RocmTables, TorchRelease, TorchTables
from assistant.catalog.tables import refreshed_file, user_tables, with_rows
from assistant.host.files import write_whole
from assistant.i18n import Message, _
from assistant.model.errors import WorkFailed
from assistant.model.record import Record, replace, to_json


class Metadata(Record, frozen=True):
    """The name, version and requirements of a wheel, without the requirements of extras."""

    name: str
    version: str
    requires: tuple[str, ...] = ()

    def bounds(self, name: str) -> str | None:
        """Return the bounds that it sets for a distribution, None where it does not require it."""
        needs = (Requirement(line) for line in self.requires)
        return next((str(need.specifier) for need in needs if canonicalize_name(need.name) == name), None)


# Metadata-Version: 2.4 / Name: torch / Version: 2.15.0 / Provides-Extra: optree / Requires-Dist: filelock …
def read_metadata(text: bytes) -> Metadata | None:
    """Read a file of metadata; None where it names no distribution."""
    metadata, _rest = parse_email(text)
    name, version = metadata.get("name"), metadata.get("version")
    if not (name and version):
        return None
    lines = tuple(filter(_needed, metadata.get("requires_dist", [])))
    return Metadata(name=canonicalize_name(name), version=version, requires=lines)


def _needed(line: str) -> bool:
    """Return whether a Requires-Dist line can be read and is not for an extra: "torch==2.15.0; extra == 'x'" is."""
    try:
        need = Requirement(line)
    except InvalidRequirement:
        return False
    return "extra" not in str(need.marker or "")


_PLATFORMS = {
    r"manylinux.*_x86_64|linux_x86_64": "linux_x86_64",
    r"manylinux.*_aarch64|linux_aarch64": "linux_aarch64",
    "win_amd64": "windows_amd64",
    "win_arm64": "windows_arm64",
    r"macosx_.*_arm64": "macos_arm64",
    r"macosx_.*_x86_64": "macos_x86_64",
}
ANY = "any"  # the platform of a wheel without code of a machine
_LEGACY = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}  # https://peps.python.org/pep-0600/

Facts = Mapping[str, Metadata]  # by file name


class Seen(NamedTuple):
    """A wheel that an index lists: the variant of that index ("pypi" for PyPI), its file name, size in bytes, place."""

    source: str
    filename: str
    size: int | None = None
    url: str = ""


class File(NamedTuple):
    """A wheel for one platform; `floor` is the glibc or macOS that its tag asks for, "" where it does not tell.

    `python` is a tag such as "312" or "313t", "3" for any; with `later`, newer Pythons with a lock take it, too.
    """

    package: str
    version: str
    platform: str
    python: str
    floor: str
    seen: Seen
    later: bool = False

    def pythons(self, known: Iterable[str]) -> tuple[str, ...]:
        """Return the tags that it serves, of those that are known where it serves later ones, too."""
        if not self.later:
            return (self.python,)
        return tuple(tag for tag in known if tag.isdigit() and int(tag[1:]) >= int(self.python[1:] or 0))

    @property
    def variant(self) -> str:
        """The variant that the catalogue files it under: PyPI's and torch's own index have the same one for macOS."""
        return "pypi" if self.platform.startswith("macos") else self.seen.source


def files_of(seen: Iterable[Seen]) -> list[File]:
    """Read file names; pre-releases and platforms that the catalogue does not keep give nothing."""
    return [file for wheel in seen for file in _files(wheel)]


def _files(wheel: Seen) -> list[File]:
    try:
        name, version, _build, tags = parse_wheel_filename(wheel.filename)
    except InvalidWheelFilename:
        return []
    found = {}
    for tag in () if version.is_prerelease else tags:
        platform = next((key for pattern, key in _PLATFORMS.items() if re.fullmatch(pattern, tag.platform)), None)
        python = re.sub(r"^(cp|py)", "", tag.interpreter) + ("t" if tag.abi.endswith("t") else "")
        later = tag.abi == "abi3" or tag.interpreter == "py3"  # cp310-abi3: https://docs.python.org/3/c-api/stable.html
        # manylinux_2_28 asks for glibc 2.28, macosx_14_0 for macOS 14.0; linux_x86_64 does not say.
        numbers = re.search(r"_(\d+)_(\d+)_", tag.platform)
        floor = f"{numbers[1]}.{numbers[2]}" if numbers else _LEGACY.get(tag.platform.partition("_")[0], "")
        platform = ANY if tag.platform == ANY else platform
        if platform and python[:1].isdigit():
            found[platform] = File(name, version.public, platform, python, floor, wheel, later)
    return list(found.values())


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


System = Literal["linux", "windows"]
_SYSTEMS: dict[str, System] = {"linux_x86_64": "linux", "windows_amd64": "windows"}
_ROCM = re.compile(r"\+rocm(\d+(?:\.\d+)+)-")  # torch-2.14.0+rocm10.1.0-cp312-cp312-win_amd64.whl


def source_of(index: str) -> str:
    """Name the source of wheels that one of AMD's indexes lists, by the index's key."""
    return f"{AMD_INDEX}/{index}"


def is_amds(file: File) -> bool:
    """Return whether a wheel is one of AMD's own indexes."""
    return file.seen.source.startswith(f"{AMD_INDEX}/")


def build_of(file: File) -> tuple[str, str, str]:
    """Return torch, ROCm and the key of the index of a wheel of AMD's; ROCm is "" where its name does not tell."""
    rocm = _ROCM.search(file.seen.filename)
    return file.version, rocm[1] if rocm else "", file.seen.source.partition("/")[2]


def with_amd(tables: RocmTables, files: Iterable[File], today: str) -> tuple[RocmTables, tuple[Message, ...]]:
    """Return the tables with AMD's new builds of torch; the targets that they serve are those of the tables.

    A name that tells no ROCm tells no build, and releases older than the tables' first are left out.
    """
    builds: dict[tuple[str, str, str], list[File]] = defaultdict(list)
    for file in files:
        if is_amds(file) and file.package == "torch" and file.platform in _SYSTEMS:
            builds[build_of(file)].append(file)
    rows = {(row.torch, row.rocm, row.index): row for row in tables.amd_releases.rows}
    oldest = min((number(torch) for torch, _rocm, _index in rows), default=())
    changes: list[Message] = []
    for key in sorted(builds, key=lambda key: (number(key[0]), number(key[1]))):
        if not key[1] or number(key[0]) < oldest:
            continue
        before, after = rows.get(key), _amd_release(rows.get(key), key, builds[key], tables)
        rows[key] = after
        if before != after:
            text = _("AMD's index has torch {torch} for ROCm {rocm} on {systems}.")
            changes.append(text.format(torch=key[0], rocm=key[1], systems=", ".join(after.systems)))
    if not changes:
        return tables, ()
    return replace(tables, amd_releases=with_rows(tables.amd_releases, rows.values(), today)), tuple(changes)


def _amd_release(
    row: AmdRelease | None, key: tuple[str, str, str], files: list[File], tables: RocmTables
) -> AmdRelease:
    """Add files to a release's row; glibc that no tag tells is that of the newest release known."""
    torch, rocm, index = key
    newest = max(tables.amd_releases.rows, key=lambda row: number(row.torch))
    floor = next((file.floor for file in files if file.platform == "linux_x86_64" and file.floor), newest.glibc)
    row = row or AmdRelease(torch=torch, rocm=rocm, index=index, systems=(), pythons=(), glibc=floor)
    systems = {*row.systems, *(_SYSTEMS[file.platform] for file in files)}
    pythons = {*row.pythons, *(file.python for file in files)}
    ordered = sorted(pythons, key=lambda tag: (number(tag), tag))
    return replace(row, systems=tuple(sorted(systems)), pythons=tuple(ordered))


class Kept(NamedTuple):
    """The tables that are kept up to date from the indexes, named as their files are."""

    torch: TorchTables
    rocm: RocmTables


class Refreshed(NamedTuple):
    """The tables as they would be, those of them that changed, and each change in one sentence."""

    tables: Kept
    changed: dict[str, msgspec.Struct]
    changes: tuple[Message, ...]


def kept(known: Catalog) -> Kept:
    """Return the tables in force."""
    return Kept(known.torch, known.rocm)


def refreshed(tables: Kept, seen: Iterable[Seen], facts: Facts, today: str) -> Refreshed:
    """Return the tables with what the indexes list and the metadata tell on the day `today` (YYYY-MM-DD)."""
    files = files_of(seen)
    torch, releases = with_releases(tables.torch, _torchs(files), today)
    torch, basics = with_basics(torch, files, today)
    torch, family = with_family(torch, files, facts, today)
    rocm, amd = with_amd(tables.rocm, files, today)
    after = Kept(torch, rocm)
    changed = {name: new for name, new in after._asdict().items() if new is not getattr(tables, name)}
    return Refreshed(after, changed, (*releases, *basics, *family, *amd))


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
    if file.package not in FAMILY:
        return ()
    paired = {version for row in tables.torch.releases.rows for version in getattr(row, file.package)}
    first, last = min(paired, key=number), max(paired, key=number)
    before, newest = (getattr(row, file.package) for row in listed.releases.rows[-2:])
    new = file.version not in paired and number(file.version) > number(first)
    return (file.package, file.version) if new or (file.version == last and before and not newest) else ()


def write_tables(tables: Mapping[str, msgspec.Struct]) -> Path:
    """Write refreshed tables by the names of their data files, such as "torch", and return the path of the file.

    What was refreshed before stays beside them. Raises `WorkFailed` where the file cannot be written.
    """
    user_tables.cache_clear()  # another process may have refreshed since this one began
    path = refreshed_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, to_json({**user_tables().tables, **tables}, indent=1))
    except OSError as error:
        raise WorkFailed(
            _("{path} cannot be written: {reason}.", path=error.filename or path, reason=error.strerror),
            hint=_("The tables stay as they are; make that folder writable and try again."),
        ) from error
    finally:
        user_tables.cache_clear()
    return path

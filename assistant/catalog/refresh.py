"""Bring the tables up to date from what package indexes list.

Nothing known is taken away, whatever an index lists; what nobody tells stays unknown. A new build is assumed to hold
the code of its predecessor (`TorchWheel.assumed`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeVar

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from assistant.catalog.catalog import Catalog, number
from assistant.catalog.tables import FAMILY, AmdRelease, DatedRow, Table, TorchRelease
from assistant.i18n import Message, _
from assistant.model.record import replace

_PLATFORMS = {
    r"manylinux.*_x86_64|linux_x86_64": "linux_x86_64",
    r"manylinux.*_aarch64|linux_aarch64": "linux_aarch64",
    "win_amd64": "windows_amd64",
    "win_arm64": "windows_arm64",
    r"macosx_.*_arm64": "macos_arm64",
    r"macosx_.*_x86_64": "macos_x86_64",
}
_LEGACY = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}  # https://peps.python.org/pep-0600/
VARIANT = re.compile(r"cpu|xpu|cu\d+|rocm\d+(?:\.\d+)*")  # also the local part of a version: 2.9.1+cu130
MOST_ASKED = 10  # chosen: versions of a companion that are asked for in one refresh, none older than as many known
LINES = 3  # chosen: release lines that may still get patches, such as 2.14.2 after 2.16.0


class Seen(NamedTuple):
    """A wheel that an index lists: "pytorch", "pypi" or the key of one of AMD's; file name, and size in bytes."""

    source: str
    filename: str
    size: int | None = None


class File(NamedTuple):
    """A wheel for one platform; `floor` is the glibc or macOS that its tag asks for, "" where it does not tell.

    `variant` is "pypi" for a wheel that names none; `python` is a tag such as "312" or "313t".
    """

    package: str
    version: str
    variant: str
    platform: str
    python: str
    floor: str
    seen: Seen


def parse_wheels(seen: Iterable[Seen]) -> list[File]:
    """Return one `File` for each wheel and each platform in its name's tags.

    Left out are names that are none of wheels, pre-releases, and builds and platforms that the catalogue does not keep.
    """
    files: dict[tuple[Seen, str], File] = {}
    for wheel in seen:
        try:
            name, version, _build, tags = parse_wheel_filename(wheel.filename)
        except InvalidWheelFilename:
            continue
        for tag in () if version.is_prerelease else tags:
            platform = next((key for pattern, key in _PLATFORMS.items() if re.fullmatch(pattern, tag.platform)), "")
            python = re.sub(r"^(cp|py)", "", tag.interpreter) + ("t" if tag.abi.endswith("t") else "")
            # manylinux_2_28 asks for glibc 2.28, macosx_14_0 for macOS 14.0; linux_x86_64 does not say.
            numbers = re.search(r"_(\d+)_(\d+)_", tag.platform)
            floor = f"{numbers[1]}.{numbers[2]}" if numbers else _LEGACY.get(tag.platform.partition("_")[0], "")
            # What names no build is PyPI's; PyTorch's own index has such a torch for macOS alone, and there it is the
            # same.
            plain = wheel.source == "pypi" or platform.startswith("macos") or name != "torch"
            variant = version.local or ("pypi" if plain else "")
            # Which Pythons a torch with the tag abi3 serves, it does not say:
            # https://docs.python.org/3/c-api/stable.html
            exact = python[:1].isdigit() and (name, tag.abi) != ("torch", "abi3")
            if platform and exact and (variant == "pypi" or VARIANT.fullmatch(variant)):
                files[wheel, platform] = File(name, version.public, variant, platform, python, floor, wheel)
    return list(files.values())


Changes = tuple[Message, ...]


def with_releases(table: Table[TorchRelease], files: Iterable[File], today: str) -> tuple[Table[TorchRelease], Changes]:
    """Return the table with every release that the files show, and a sentence for each that is new or has more wheels.

    `files` are wheels of torch alone. Patches of older lines are among them; releases older than the table's first are
    left out on purpose. Without changes it is the same table.
    """
    by_version: dict[str, list[File]] = defaultdict(list)
    for file in files:
        by_version[file.version].append(file)
    rows_by_version = {row.version: row for row in table.rows}
    on_pypi = any(file.seen.source == "pypi" and not file.platform.startswith("macos") for file in files)
    changes: list[Message] = []
    for version in sorted(by_version, key=number):
        listed, before = by_version[version], rows_by_version.get(version)
        older = [row for row in rows_by_version.values() if number(row.version) < number(version)]
        last = max(older, key=lambda row: number(row.version), default=before)
        if last is None:
            continue
        after = rows_by_version[version] = _add_files(
            before or _new_row(version, listed, last, today, on_pypi=on_pypi), listed, last
        )
        if before is None:
            tags = ", ".join(sorted({variant for variants in after.variants.values() for variant in variants}))
            changes.append(_("torch {version} is new: {variants}.", version=version, variants=tags))
        elif before != replace(after, mb=before.mb):
            changes.append(_("torch {version} has more wheels than were known.", version=version))
    rows = sorted(rows_by_version.values(), key=lambda row: number(row.version))
    return _with_rows(table, rows, today) if changes else table, tuple(changes)


def _new_row(version: str, listed: list[File], older: TorchRelease, today: str, *, on_pypi: bool) -> TorchRelease:
    """Return a row for a new release, without builds yet; oldest glibc and macOS as in `listed`, else in `older`.

    `listed` are its files, `older` is the release before. With `on_pypi`, PyPI was read: for platforms that it does not
    list for this release, it has no build.
    """
    there = {file.platform for file in listed if file.seen.source == "pypi"}
    linux = next((file.floor for file in listed if file.platform == "linux_x86_64" and file.floor), "")
    mac = next((file.floor for file in listed if file.platform == "macos_arm64" and file.floor), "")
    return TorchRelease(
        version=version,
        date=today,
        pythons={"any": ()},
        variants={},
        pypi={platform: build for platform, build in older.pypi.items() if platform in there or not on_pypi},
        glibc={"linux": linux} if linux else older.glibc,
        macos=replace(older.macos, wheel=mac or older.macos.wheel),
    )


def _add_files(row: TorchRelease, listed: list[File], older: TorchRelease) -> TorchRelease:
    """Return a release's row with the Pythons, variants, sizes and glibc of its files added; nothing is taken away.

    What a file shows is no longer unconfirmed. A new platform's variants are ordered by kind as in the older release,
    whose first are best, and in a kind by number.
    """
    pythons, variants, unconfirmed = dict(row.pythons), dict(row.variants), dict(row.unconfirmed)
    sizes, glibc = dict(row.mb), dict(row.glibc)
    kinds = dict.fromkeys(variant_family(variant) for tags in older.variants.values() for variant in tags)
    places = {kind: place for place, kind in enumerate(kinds)}
    for file in listed:
        tags = pythons.get(file.platform, pythons["any"])
        if file.python not in tags:
            pythons[file.platform] = _sorted_pythons((*tags, file.python))
        before = variants.get(file.platform, ())
        if file.variant not in before and (file.variant != "pypi" or file.platform.startswith("macos")):
            variants[file.platform] = (*before, file.variant)
            if not (before and row.variants.get(file.platform)):
                by_kind = sorted(
                    variants[file.platform],
                    key=lambda tag: (places.get(variant_family(tag), len(places)), number(tag)),
                )
                variants[file.platform] = tuple(by_kind)
        unconfirmed[file.platform] = tuple(tag for tag in unconfirmed.get(file.platform, ()) if tag != file.variant)
        if file.variant == "pypi":
            if file.seen.size:
                sizes.setdefault(file.platform, round(file.seen.size / 1e6))
        elif file.floor and file.platform.startswith("linux") and file.platform not in row.variants:
            usual = glibc.get(file.platform) or glibc.get("linux")
            if file.floor != usual:
                glibc[f"{file.platform}/{file.variant}"] = file.floor
    left = {platform: tags for platform, tags in unconfirmed.items() if tags}
    return replace(row, pythons=pythons, variants=variants, unconfirmed=left, mb=sizes, glibc=glibc)


def variant_family(variant: str) -> str:
    """Return a variant without its number: "cu", "rocm", "xpu", "cpu"."""
    return variant.rstrip("0123456789.")


def _sorted_pythons(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(tags, key=lambda tag: (int(tag.rstrip("t")[1:]), tag)))


def variants_to_read(releases: Sequence[TorchRelease], listed: Iterable[str]) -> list[str]:
    """Return the variants whose pages may list a new torch: of those `listed`, else of the newest releases' own.

    Left out are those older than all of their kind in the newest `LINES` release lines. The newest CUDA comes first,
    the CPU last: its page is the longest.
    """
    lines = sorted({number(row.version)[:2] for row in releases})[-LINES:]
    rows = [row for row in releases if number(row.version)[:2] in lines]
    recent = {tag for row in rows for tags in row.variants.values() for tag in tags} - {"pypi"}
    oldest = {variant_family(tag): number(tag) for tag in sorted(recent, key=number, reverse=True)}
    found = {tag for tag in {*listed} or recent if number(tag) >= oldest.get(variant_family(tag), ())}
    return sorted(found, key=lambda tag: (tag != "cpu", number(tag), tag), reverse=True)


Ask = Callable[[str, str], str]  # the bounds that a version of a package sets for torch; "" where nobody tells


def with_family(
    table: Table[TorchRelease], files: Iterable[File], ask: Ask, today: str
) -> tuple[Table[TorchRelease], Changes]:
    """Return the table with new pairs of torchvision and torchaudio with torch, and a sentence for each.

    `ask` is asked about the newest `MOST_ASKED` versions that are not paired yet; one whose bounds are a single version
    of torch is paired with that. A version that goes with several releases is assumed to go with the next, too, if none
    is known that does.
    """
    rows, changes = {row.version: row for row in table.rows}, list[Message]()
    for name in FAMILY:
        pairs: dict[str, tuple[str, ...]] = {torch: getattr(row, name) for torch, row in rows.items()}
        paired = sorted((version for versions in pairs.values() for version in versions), key=number)
        listed = {file.version for file in files if file.package == name} - {*paired}
        least = number(paired[-MOST_ASKED:][0])
        for version in sorted((version for version in listed if number(version) > least), key=number)[-MOST_ASKED:]:
            if (torch := ask(name, version).removeprefix("==")) in rows:
                pairs[torch] = (*pairs[torch], version)
                changes.append(_("{name} {version} goes with torch {torch}.", name=name, version=version, torch=torch))
        for before, torch in pairwise(rows):
            last = max(pairs[before], key=number, default="")
            if not pairs[torch] and paired.count(last) > 1:
                pairs[torch] = (last,)
                text = _("{name} {version} is assumed to go with torch {torch}, as it does with {before}.")
                changes.append(text.format(name=name, version=last, torch=torch, before=before))
        rows = {torch: replace(row, **{name: pairs[torch]}) for torch, row in rows.items()}
    return _with_rows(table, rows.values(), today) if changes else table, tuple(changes)


_SYSTEMS: dict[str, Literal["linux", "windows"]] = {"linux_x86_64": "linux", "windows_amd64": "windows"}


def with_amd(table: Table[AmdRelease], files: Iterable[File], today: str) -> tuple[Table[AmdRelease], Changes]:
    """Return the table with AMD's new builds of torch, and a sentence for each build that is new or has changed.

    `files` are wheels of torch on AMD's indexes. The GPU targets that they serve are those of the tables. Releases
    older than the table's first are left out; glibc that no tag tells is that of the newest release known.
    """
    before = table.rows
    rows = {(row.torch, row.rocm, row.index): row for row in before}
    oldest, *_others, newest = sorted(before, key=lambda row: number(row.torch))
    for file in sorted(files, key=lambda file: (number(file.version), number(file.variant), not file.floor)):
        system = _SYSTEMS.get(file.platform)
        if system and variant_family(file.variant) == "rocm" and number(file.version) >= number(oldest.torch):
            torch, rocm, index = file.version, file.variant.removeprefix("rocm"), file.seen.source
            begun = AmdRelease(
                torch=torch, rocm=rocm, index=index, systems=(), pythons=(), glibc=file.floor or newest.glibc
            )
            row = rows.get((torch, rocm, index), begun)
            rows[torch, rocm, index] = replace(
                row,
                systems=tuple(sorted({*row.systems, system})),
                pythons=_sorted_pythons({*row.pythons, file.python}),
            )
    text = _("AMD's index has torch {torch} for ROCm {rocm} on {systems}.")
    news = [row for row in rows.values() if row not in before]
    changes = (text.format(torch=row.torch, rocm=row.rocm, systems=", ".join(row.systems)) for row in news)
    return _with_rows(table, rows.values(), today) if news else table, tuple(changes)


Dated = TypeVar("Dated", bound=DatedRow)


def _with_rows(table: Table[Dated], rows: Iterable[Dated], today: str) -> Table[Dated]:
    """Return a table as of today (YYYY-MM-DD) with other rows; those that stay as they are keep their day."""
    dated = (replace(row, as_of=(row.as_of or table.as_of) if row in table.rows else "") for row in rows)
    return replace(table, rows=tuple(dated), as_of=today)


class Refreshed(NamedTuple):
    """The tables that changed, by their names, and each change in one sentence."""

    tables: dict[str, Table[Any]]
    changes: Changes


def refresh_tables(catalog: Catalog, seen: Iterable[Seen], ask: Ask, today: str) -> Refreshed:
    """Return the tables that the wheels listed by indexes change, with a sentence for each change; write nothing.

    `ask` returns a companion's bounds for torch. `today` (YYYY-MM-DD) becomes the date of what is new.
    """
    files = parse_wheels(seen)
    torchs = [file for file in files if file.package == "torch"]
    amds = [file for file in torchs if file.seen.source not in {"pytorch", "pypi"}]
    before = catalog.table("torch.releases", TorchRelease)
    torch, releases = with_releases(before, [file for file in torchs if file not in amds], today)
    torch, family = with_family(torch, files, ask, today)
    rocm, amd = with_amd(catalog.table("rocm.amd_releases", AmdRelease), amds, today)
    tables: dict[str, Table[Any]] = {"torch.releases": torch} if releases or family else {}
    tables |= {"rocm.amd_releases": rocm} if amd else {}
    return Refreshed(tables, (*releases, *family, *amd))

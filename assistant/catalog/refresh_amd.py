"""The releases of torch on AMD's own indexes, from the pages of those indexes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Literal

from assistant.catalog.catalog import AMD_INDEX, number
from assistant.catalog.refresh_files import File
from assistant.catalog.rows import AmdRelease, RocmTables
from assistant.catalog.tables import with_rows
from assistant.i18n import Message, _
from assistant.model.record import replace

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
        before, after = rows.get(key), _release(rows.get(key), key, builds[key], tables)
        rows[key] = after
        if before != after:
            text = _("AMD's index has torch {torch} for ROCm {rocm} on {systems}.")
            changes.append(text.format(torch=key[0], rocm=key[1], systems=", ".join(after.systems)))
    if not changes:
        return tables, ()
    return replace(tables, amd_releases=with_rows(tables.amd_releases, rows.values(), today)), tuple(changes)


def _release(row: AmdRelease | None, key: tuple[str, str, str], files: list[File], tables: RocmTables) -> AmdRelease:
    """Add files to a release's row; glibc that no tag tells is that of the newest release known."""
    torch, rocm, index = key
    newest = max(tables.amd_releases.rows, key=lambda row: number(row.torch))
    floor = next((file.floor for file in files if file.platform == "linux_x86_64" and file.floor), newest.glibc)
    row = row or AmdRelease(torch=torch, rocm=rocm, index=index, systems=(), pythons=(), glibc=floor)
    systems = {*row.systems, *(_SYSTEMS[file.platform] for file in files)}
    pythons = {*row.pythons, *(file.python for file in files)}
    ordered = sorted(pythons, key=lambda tag: (number(tag), tag))
    return replace(row, systems=tuple(sorted(systems)), pythons=tuple(ordered))

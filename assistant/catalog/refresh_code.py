"""The GPUs that builds of torch have code for, brought up to date from what their wheels tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from assistant.catalog.catalog import Number, number
from assistant.catalog.refresh_files import Facts, File
from assistant.catalog.rows import CudaCode, CudaTables, RocmCode, RocmTables
from assistant.catalog.tables import with_rows
from assistant.i18n import Message, _
from assistant.model.record import replace

_Code = TypeVar("_Code", bound=CudaCode | RocmCode)
_ORIGIN = "; the files of the wheels themselves (`assistant catalog refresh`)"


class Built(NamedTuple):
    """What the wheels of a release line tell of one build on one platform."""

    variant: str
    platform: str
    minor: Number
    sm: tuple[int, ...]
    ptx: int | None
    gfx: tuple[str, ...]


def line_of(version: str) -> Number:
    """Return the release line of a version, such as (2, 14)."""
    return number(version)[:2]


def described(rows: Iterable[CudaCode | RocmCode], variant: str, platform: str, minor: Number) -> bool:
    """Return whether a row tells the code of a build, so that nothing of it has to be assumed."""
    return any(
        row.variant == variant
        and getattr(row, "platform", platform) == platform
        and number(row.first) <= minor <= number(row.last)
        for row in rows
    )


def with_cuda(
    tables: CudaTables, files: Iterable[File], facts: Facts, today: str
) -> tuple[CudaTables, tuple[Message, ...]]:
    """Return the tables with the code of CUDA builds that no row describes yet."""
    rows: list[CudaCode] = list(tables.code.rows)
    changes: list[Message] = []
    for built in _built(files, facts):
        if built.sm and not described(rows, built.variant, built.platform, built.minor):
            line = ".".join(map(str, built.minor))
            new = CudaCode(
                variant=built.variant, platform=built.platform, first=line, last=line, sm=built.sm, ptx=built.ptx
            )
            before = _before(rows, new)
            lost = sorted(set(before.sm) - set(new.sm)) if before else []
            changes.append(_told(new, built.platform, [f"sm_{one}" for one in new.sm], [f"sm_{one}" for one in lost]))
            rows = _added(rows, new, before)
    if not changes:
        return tables, ()
    code = replace(with_rows(tables.code, rows, today), source=_sourced(tables.code.source))
    return replace(tables, code=code), tuple(changes)


def with_rocm(
    tables: RocmTables, files: Iterable[File], facts: Facts, today: str
) -> tuple[RocmTables, tuple[Message, ...]]:
    """Return the tables with the targets of ROCm's Linux builds that no row describes yet."""
    rows: list[RocmCode] = list(tables.code.rows)
    changes: list[Message] = []
    for built in _built(files, facts):
        linux = built.platform == "linux_x86_64"
        if linux and built.gfx and not described(rows, built.variant, built.platform, built.minor):
            line = ".".join(map(str, built.minor))
            new = RocmCode(variant=built.variant, first=line, last=line, gfx=built.gfx)
            before = _before(rows, new)
            lost = [one for one in before.gfx if one not in new.gfx] if before else []
            changes.append(_told(new, built.platform, new.gfx, lost))
            rows = _added(rows, new, before)
    if not changes:
        return tables, ()
    code = replace(with_rows(tables.code, rows, today), source=_sourced(tables.code.source))
    return replace(tables, code=code), tuple(changes)


def _built(files: Iterable[File], facts: Facts) -> list[Built]:
    """Return what the wheels tell, oldest release first; PyPI's own wheel is told by the build that it is."""
    found = []
    for file in files:
        told = facts.get(file.seen.filename)
        if told and file.package == "torch":
            variant = told.build if file.variant == "pypi" else file.variant
            found.append(Built(variant, file.platform, line_of(file.version), told.sm, told.ptx, told.gfx))
    return sorted(found, key=lambda built: (built.minor, number(built.variant), built.platform))


def _before(rows: Iterable[_Code], new: _Code) -> _Code | None:
    """Return the row of the same build for the release lines before."""
    alike = [
        row
        for row in rows
        if row.variant == new.variant
        and getattr(row, "platform", "") == getattr(new, "platform", "")
        and number(row.last) < number(new.first)
    ]
    return max(alike, key=lambda row: number(row.last), default=None)


def _added(rows: list[_Code], new: _Code, before: _Code | None) -> list[_Code]:
    """Add a row, or let the one before reach to its line, where that is the next and nothing else changed."""
    if before:
        (major, minor), (next_major, next_minor) = number(before.last)[:2], number(new.first)[:2]
        follows = major == next_major and minor + 1 == next_minor
        if follows and replace(before, first=new.first, last=new.last, as_of=new.as_of) == new:
            return [*(row for row in rows if row is not before), replace(before, last=new.last)]
    return [*rows, new]


def _told(new: CudaCode | RocmCode, platform: str, targets: Iterable[str], lost: Iterable[str]) -> Message:
    values = {"variant": new.variant, "platform": platform, "version": new.first, "targets": ", ".join(targets)}
    if gone := ", ".join(lost):
        return _(
            "torch {version} for {variant} on {platform} has code for {targets}, and no longer for {gone}.",
            gone=gone,
            **values,
        )
    return _("torch {version} for {variant} on {platform} has code for {targets}.", **values)


def _sourced(source: str) -> str:
    return source if source.endswith(_ORIGIN) else source + _ORIGIN

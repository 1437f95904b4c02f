"""What companions of torch want of the system and of one another, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog.companions import (
    Companion,
    VersionRange,
    companion,
    cuda_major,
    for_other_cuda,
    load_companions,
    overlap,
)
from assistant.catalog.onnxruntimes import CLASH, load_onnxruntimes
from assistant.catalog.rows import SystemNeed
from assistant.catalog.tables import Table, read_tables
from assistant.i18n import Message, Text, _, sentences
from assistant.model.plan import Backend
from assistant.model.record import Record


class NeedRow(Record, frozen=True):
    """Something that must be on a system: its `text` for a `name` and `what` version of it, how to get it by system.

    It matters on `systems` and `backends` (none named: all). `libraries` is what a loader says that misses its own.
    """

    key: str
    text: str
    help: dict[str, str] = {}
    systems: tuple[str, ...] = ()
    backends: tuple[Backend, ...] = ()
    libraries: str = ""


class NeedTables(Record, frozen=True):
    """The file of needs."""

    needs: Table[NeedRow]


class Need(NamedTuple):
    """Something that must be on the system, in words; `help` is how to get it, "" where that depends on the system."""

    key: str
    text: Message
    help: Text = ""
    libraries: str = ""


class Added(NamedTuple):
    """What goes along with companions beside a torch: requirements, and warnings."""

    requires: tuple[str, ...] = ()
    warnings: tuple[Message, ...] = ()


class Overlap(NamedTuple):
    """Packages that write one folder, so that only the last one installed is whole."""

    key: str
    names: tuple[str, ...]
    text: Message


_VARIABLES = {"linux": "LD_LIBRARY_PATH", "windows": "PATH"}


def needs(name: str, os: str = "", backend: Backend | None = None) -> tuple[Need, ...]:
    """Return what a distribution wants of a system ("linux", "windows", "macos"); nothing for one that is unknown.

    Without a system or a backend: what it wants on any.
    """
    found = (need for row in _with_those_below(name) for need in in_words(row.name, row.needs, os, backend))
    return tuple(dict.fromkeys(found))


def in_words(
    name: Text, wanted: Iterable[SystemNeed], os: str = "", backend: Backend | None = None
) -> tuple[Need, ...]:
    """Say what something that is called `name` wants of a system, as `needs` does."""
    rows = {row.key: row for row in read_tables("needs", NeedTables).needs.rows}
    return tuple(
        Need(one.key, _(row.text, name=name, what=one.what), _(row.help[os]) if os in row.help else "", row.libraries)
        for one in wanted
        for row in (rows[one.key],)
        if os in ("", *(row.systems or (os,))) and backend in (None, *(row.backends or (backend,)))
    )


def beside(requirements: Iterable[Requirement], torch: str, variant: str, platform: str) -> Added:
    """Return what has to go along with companions so that they compute on a build of torch, or why they will not.

    `variant` is such as "cu130", `platform` such as "linux_x86_64". Distributions that the tables do not know, and
    those whose wheels come from torch's own index, add nothing.
    """
    major = cuda_major(torch, variant, platform)
    parts = [
        part
        for need in requirements
        for row in _with_those_below(need.name)
        for part in (_of_extras(row, need, torch, major), _of_wheels(row, need, torch, variant, platform))
    ]
    return Added(
        requires=tuple(dict.fromkeys(line for part in parts for line in part.requires)),
        warnings=tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
    )


def other_cuda(need: Requirement, torch: str, variant: str, platform: str) -> frozenset[int]:
    """Return the CUDA majors for which all wheels that may be taken are built, where torch computes with another.

    Empty where no versions are known that would serve torch's own: then only a warning can tell.
    """
    row, major = companion(need.name), cuda_major(torch, variant, platform)
    if row is None or not any(major in one.cuda for one in row.ranges):
        return frozenset()
    open_, wrong = _open(row, need, torch), for_other_cuda(row, torch, variant, platform)
    return frozenset(cuda for one in open_ for cuda in one.cuda) if all(one in wrong for one in open_) else frozenset()


def _with_those_below(name: str) -> list[Companion]:
    """Return a companion and those that it computes with."""
    row = companion(name)
    return [one for one in (row, *map(companion, row.through)) if one] if row else []


def clashes(versions: Mapping[str, str]) -> tuple[Overlap, ...]:
    """Return the packages (versions by name, "" for one not known yet) that must not stand in one environment."""
    text = _("{names} share one folder and overwrite one another; keep only one of them.")
    known: dict[str, str] = {canonicalize_name(name): version for name, version in versions.items()}
    found = {key: _there(needs, known) for key, needs in _by_clash().items()}
    return tuple(
        Overlap(key, names, text.format(names=", ".join(names))) for key, names in found.items() if len(names) > 1
    )


def sharing(key: str, versions: Mapping[str, str]) -> tuple[str, ...]:
    """Return the packages of one clash that are there, by its key; raise `ValueError` for a key that is none."""
    rows = _by_clash()
    if key not in rows:
        raise ValueError(f"there is no clash {key!r}; there are {', '.join(rows)}")
    known: dict[str, str] = {canonicalize_name(name): version for name, version in versions.items()}
    return _there(rows[key], known)


@cache
def _by_clash() -> dict[str, tuple[Requirement, ...]]:
    runtimes = [row.requirement for row in load_onnxruntimes().builds.rows]
    named = {CLASH: runtimes, **{row.key: row.names for row in load_companions().clashes.rows}}
    return {key: tuple(map(Requirement, names)) for key, names in named.items()}


def _there(needs: Iterable[Requirement], versions: Mapping[str, str]) -> tuple[str, ...]:
    found = ((need, versions[need.name]) for need in needs if need.name in versions)
    return tuple(
        need.name
        for need, version in found
        if not need.specifier or (version != "" and need.specifier.contains(version, prereleases=True))
    )


def _of_extras(row: Companion, need: Requirement, torch: str, major: int | None) -> Added:
    """Warn of an extra that brings the libraries of another CUDA, which write the files of torch's."""
    text = _(
        "{name}[{extra}] brings libraries of CUDA {other}, which overwrite the CUDA {major} libraries of torch {torch}."
    )
    help_ = _("Ask for {name} without that extra.", name=row.name)
    wrong = [extra for extra in sorted(need.extras) if major and major not in row.extras.get(extra, (major,))]
    return Added(
        warnings=tuple(
            sentences(
                (
                    text.format(name=row.name, extra=extra, other=_cudas(row.extras[extra]), torch=torch, major=major),
                    help_,
                )
            )
            for extra in wrong
        )
    )


def _of_wheels(row: Companion, need: Requirement, torch: str, variant: str, platform: str) -> Added:
    """Return what helps where all wheels on PyPI that may be taken are for another CUDA, else warn of them."""
    other = for_other_cuda(row, torch, variant, platform)
    if not other:
        return Added()
    major, os = cuda_major(torch, variant, platform), platform.partition("_")[0]
    open_ = _open(row, need, torch)
    wrong = [one for one in open_ if one in other]
    if not wrong or len(wrong) < len(open_):
        return Added()
    said = {"name": row.name, "other": _cudas(max(wrong, key=lambda one: one.least).cuda), "major": major}
    way = row.beside_cuda.get(str(major))
    if way is None or os not in way.folders:
        text = _(
            "PyPI's wheel of {name} is built for CUDA {other}, and this torch for CUDA {major}: "
            "they may not work together."
        )
        help_ = _("If they do not, choose a torch build for CUDA {other}.")
        return Added(warnings=(sentences((text.format(**said), help_.format(**said))),))
    text = _(
        "{name} is built for CUDA {other}, and this torch for CUDA {major}: {name} also needs {packages}, and before a "
        "program uses it on the GPU, {variable} must include the folder {folder} from the environment's site-packages."
    )
    where = {"packages": ", ".join(way.requires), "folder": way.folders[os], "variable": _VARIABLES[os]}
    return Added(way.requires, (text.format(**said, **where),))


def _open(row: Companion, need: Requirement, torch: str) -> list[VersionRange]:
    """Return the versions of a companion that a requirement of it, or of what computes with it, may take."""
    wanted = str(need.specifier) if canonicalize_name(need.name) == row.name else ""
    return [one for one in row.ranges if one.goes_with(torch) and overlap(one.versions, wanted)]


def _cudas(majors: Iterable[int]) -> str:
    return "/".join(map(str, majors))

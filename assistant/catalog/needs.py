"""What companions of torch want of the system and of one another, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog.companions import Companion, companion, load_companions
from assistant.catalog.onnxruntimes import CLASH, load_onnxruntimes
from assistant.catalog.rows import SystemNeed
from assistant.catalog.tables import Table, read_tables
from assistant.i18n import Message, Text, _
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


def needs(name: str, os: str = "", backend: Backend | None = None) -> tuple[Need, ...]:
    """Return what a distribution wants of a system ("linux", "windows", "macos"); nothing for one that is unknown.

    Without a system or a backend: what it wants on any.
    """
    found = (need for row in with_those_below(name) for need in in_words(row.name, row.needs, os, backend))
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


def with_those_below(name: str) -> list[Companion]:
    """Return a companion and those that it computes with."""
    row = companion(name)
    return [one for one in (row, *map(companion, row.through)) if one] if row else []


def clashes(versions: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return, by their key, packages that write one folder, so that only the last one installed would be whole.

    `versions` are by name, "" for one that is not known yet.
    """
    found = {key: sharing(key, versions) for key in _by_clash()}
    return {key: names for key, names in found.items() if len(names) > 1}


def sharing(key: str, versions: Mapping[str, str]) -> tuple[str, ...]:
    """Return the packages of one clash that are there, by its key; raise `ValueError` for a key that is none."""
    rows = _by_clash()
    if key not in rows:
        raise ValueError(f"there is no clash {key!r}; there are {', '.join(rows)}")
    known: dict[str, str] = {canonicalize_name(name): version for name, version in versions.items()}
    return tuple(
        need.name
        for need in rows[key]
        if (version := known.get(need.name)) is not None
        and (not need.specifier or (version != "" and need.specifier.contains(version, prereleases=True)))
    )


@cache
def _by_clash() -> dict[str, tuple[Requirement, ...]]:
    runtimes = [row.requirement for row in load_onnxruntimes().builds.rows]
    named = {CLASH: runtimes, **{row.key: row.names for row in load_companions().clashes.rows}}
    return {key: tuple(map(Requirement, names)) for key, names in named.items()}

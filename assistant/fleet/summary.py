"""What the rows of many machines come to: how they stand, what helps most, what is wrong, what they can run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from assistant.catalog import number
from assistant.fleet.rows import Build, Problem, Row, Standing
from assistant.i18n import Text
from assistant.model.finding import Severity
from assistant.model.plan import Backend
from assistant.model.record import Record
from assistant.session.kinds import Gain, Help


class Helped(Record, frozen=True, omit_defaults=False):
    """A change with the machines that it helps, by name; `now` and `then` are the releases of torch before and after.

    `then` is empty where the planner knows no more than the backend.
    """

    key: str
    text: Text
    gain: Gain
    machines: tuple[str, ...]
    backend: Backend
    now: tuple[str, ...] = ()
    then: tuple[str, ...] = ()


class Common(Record, frozen=True, omit_defaults=False):
    """A problem with the machines that have it; its words are those of the first of them."""

    problem: Problem
    machines: tuple[str, ...]


class Runs(Record, frozen=True, omit_defaults=False):
    """A build with the machines for which it is the best; None for those that nothing fits."""

    build: Build | None
    machines: tuple[str, ...]


class Fleet(Record, frozen=True, omit_defaults=False):
    """A report on many machines at one time; `helps` come by what is gained, then by how many machines gain it."""

    when: datetime
    standings: dict[Standing, int]
    helps: tuple[Helped, ...]
    problems: tuple[Common, ...]
    runs: tuple[Runs, ...]
    machines: tuple[Row, ...]


def summed_up(rows: tuple[Row, ...], now: datetime) -> Fleet:
    """Return the report on machines, each list with what concerns most of them first."""
    standings = {standing: sum(row.standing is standing for row in rows) for standing in Standing}
    return Fleet(
        when=now,
        standings={standing: count for standing, count in standings.items() if count},
        helps=_helps(rows),
        problems=_problems(rows),
        runs=_runs(row for row in rows if row.standing is not Standing.UNREAD),
        machines=rows,
    )


def _helps(rows: Iterable[Row]) -> tuple[Helped, ...]:
    alike: dict[tuple[str, Text, Gain, Backend], list[tuple[Row, Help]]] = {}
    for row in rows:
        for one in row.helps:
            alike.setdefault((one.key, one.text, one.gain, one.backend), []).append((row, one))
    found = [
        Helped(
            key=key,
            text=text,
            gain=gain,
            backend=backend,
            machines=tuple(row.name for row, _one in both),
            now=_releases(row.can_run.torch for row, _one in both if row.can_run),
            then=_releases(one.torch for _row, one in both),
        )
        for (key, text, gain, backend), both in alike.items()
    ]
    order = list(Gain)
    return tuple(sorted(found, key=lambda one: (order.index(one.gain), -len(one.machines))))


def _releases(versions: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(filter(None, {*versions}), key=number))


def _problems(rows: Iterable[Row]) -> tuple[Common, ...]:
    alike: dict[str, list[tuple[Row, Problem]]] = {}
    for row in rows:
        for problem in {one.key: one for one in reversed(row.problems)}.values():
            alike.setdefault(problem.key, []).append((row, problem))
    found = [Common(problem=both[0][1], machines=tuple(row.name for row, _one in both)) for both in alike.values()]
    order = list(Severity)
    return tuple(sorted(found, key=lambda one: (-len(one.machines), -order.index(one.problem.severity))))


def _runs(rows: Iterable[Row]) -> tuple[Runs, ...]:
    alike: dict[Build | None, list[str]] = {}
    for row in rows:
        alike.setdefault(row.can_run, []).append(row.name)
    found = [Runs(build=build, machines=tuple(names)) for build, names in alike.items()]
    return tuple(sorted(found, key=lambda one: -len(one.machines)))

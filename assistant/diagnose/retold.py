"""Messages that people retell in their own words instead of pasting them: the causes that these words leave."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

from assistant.diagnose.causes import Cause
from assistant.diagnose.log import Log
from assistant.diagnose.predicates import ask, check_facts
from assistant.diagnose.symptoms import asks_for_nothing
from assistant.diagnose.tables import table
from assistant.model.machine import Machine
from assistant.model.record import Record

APART = 160  # chosen: characters between words of one thought, some two sentences
LONGEST = 4000  # chosen: characters that a person writes of one problem


class Retold(Record, frozen=True):
    """A message retold: each pattern in `all` has a match near one of the first's, and none in `none` has any.

    Where `names` is set, what the first pattern matches is the value of that placeholder of the rule.
    """

    key: str
    all: tuple[str, ...]
    none: tuple[str, ...] = ()
    names: str = ""
    facts: dict[str, object] = {}
    unless: dict[str, object] = {}


class _File(Record, frozen=True):
    as_of: str
    retold: tuple[Retold, ...]


def retold_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield the causes of messages that a person retells; nothing where the person says that all is well."""
    lines = [
        (index, line.lower())
        for index, ((_number, line), own) in enumerate(zip(log.lines, log.written, strict=True))
        if own
    ]
    text = "\n".join(line for _index, line in lines)
    if not text or len(text) > LONGEST or asks_for_nothing(log):
        return
    starts = [0]
    for _index, line in lines:
        starts.append(starts[-1] + len(line) + 1)
    found: set[str] = set()
    for row in retold():
        place = _place(row, text)
        fits = all(ask(machine, row.facts).values()) and not any(ask(machine, row.unless).values())
        if place is None or row.key in found or not fits:
            continue
        basis = "another-message-retold" if found else "message-retold"
        found.add(row.key)
        names = {row.names: re.sub(r"[ _]", "-", place[0])} if row.names else {}
        index, _line = lines[bisect_right(starts, place.start()) - 1]
        yield Cause(row.key, basis, (index,), names, tuple(row.facts))


def _place(row: Retold, text: str) -> re.Match[str] | None:
    """Return where a text retells a message; None where it does not."""
    if any(_compiled(pattern).search(text) for pattern in row.none):
        return None
    first, *others = [list(_compiled(pattern).finditer(text)) for pattern in row.all]
    for place in first:
        if all(any(_near(place, other) for other in matches) for matches in others):
            return place
    return None


def _near(first: re.Match[str], second: re.Match[str]) -> bool:
    return second.end() + APART >= first.start() and second.start() <= first.end() + APART


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)  # a Chinese character ends an English word


@cache
def retold() -> tuple[Retold, ...]:
    """Read the shipped rows, once; raise `BadInput`, `ValueError` or `TypeError` naming what is wrong in them."""
    rows = table("retold.toml", _File).retold
    for row in rows:
        for facts in (row.facts, row.unless):
            check_facts(facts, f"retold.toml, {row.key}")
    return rows

"""How old the rows of the catalogue are: each has the day of its table, or one of its own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import msgspec

from assistant.catalog.editions import data_files, editions
from assistant.model.record import Record

OLD_DAYS = 90  # chosen
_EVENTS = {"seen"}  # files that tell what happened, which nobody has to compare with anything again


class Aged(Record, frozen=True):
    """The old rows of a table, named file.table; `as_of` is the day of the oldest, which was `days` ago."""

    table: str
    rows: int
    as_of: str
    days: int


def old_rows(today: date) -> tuple[Aged, ...]:
    """Return what is in force and older than `OLD_DAYS`, the table with the oldest row first."""
    last = str(today - timedelta(days=OLD_DAYS))
    found = []
    for name in set(data_files()) - _EVENTS:
        for title, table in msgspec.json.decode(editions().of(name).text(name), type=dict[str, Any]).items():
            days = [day for row in table["rows"] for day in _days_of(row, table["as_of"]) if day < last]
            if days:
                passed = (today - date.fromisoformat(min(days))).days
                found.append(Aged(table=f"{name}.{title}", rows=len(days), as_of=min(days), days=passed))
    return tuple(sorted(found, key=lambda aged: (aged.as_of, aged.table)))


def _days_of(row: Any, table_day: str) -> Iterator[str]:  # noqa: ANN401 - whatever a table holds
    """Yield a row's day, and those of the parts that have one of their own, such as the ranges of a companion."""
    columns = row if isinstance(row, dict) else {}
    yield columns.get("as_of") or table_day
    for parts in columns.values():
        found = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        yield from (part["as_of"] for part in found if "as_of" in part)

"""How a table of the catalogue is stored: rows of one kind with their source and date, read strictly."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from assistant.catalog.editions import Editions, Origin, editions, pass_over
from assistant.model.errors import BadInput
from assistant.model.record import Record, from_json, replace

Row = TypeVar("Row")


class Table(Record, Generic[Row], frozen=True):
    """Rows of one kind; `source` names where they were read, `as_of` the day (YYYY-MM-DD)."""

    source: str
    as_of: str
    rows: tuple[Row, ...]


class DatedRow(Record, frozen=True):
    """A row that a refresh can bring up to date; `as_of` is the day it was read, where that is not its table's."""

    as_of: str = ""


Dated = TypeVar("Dated", bound=DatedRow)


def with_rows(table: Table[Dated], rows: Iterable[Dated], today: str) -> Table[Dated]:
    """Return a table as of today (YYYY-MM-DD) with other rows; those that stay as they are keep their day."""
    dated = (replace(row, as_of=(row.as_of or table.as_of) if row in table.rows else "") for row in rows)
    return replace(table, rows=tuple(dated), as_of=today)


T = TypeVar("T", bound=msgspec.Struct)


def read_tables(name: str, kind: type[T]) -> T:
    """Decode a data file of the edition in force, once for all who ask; a fault in ours names the file and the key.

    An edition that has a fault is passed over for the next newest, and `editions()` says so from then on.
    """
    while True:
        now = editions()
        try:
            tables: T = _decoded(name, kind, now)
        except BadInput as error:
            if now.of(name).origin is Origin.SHIPPED:
                raise
            pass_over(now.of(name), error.message)
        else:
            return tables


@cache
def _decoded(name: str, kind: Any, now: Editions) -> Any:  # noqa: ANN401 - a cache keeps no type variable
    edition = now.of(name)
    return from_json(edition.text(name), kind, str(edition.folder / f"{name}.json"))

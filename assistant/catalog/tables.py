"""How a table of the catalogue is stored, and which tables count: the package's, or newer ones that the user refreshed.

A table is rows of one kind with their source and date, read strictly. What a refresh brought is one file in the user's
data folder, used as a whole or, with any fault, not at all; of each data file the newer tables count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from assistant.host.files import read_plain, write_whole
from assistant.host.folders import user_data
from assistant.i18n import Text, _
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import Record, from_json, replace, to_json

_DATA = Path(__file__).with_name("data")
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
    """Return the tables of a data file: the package's, or those that the user refreshed, which are no older."""
    newer: T | None = user_tables().tables.get(name)
    return shipped(name, kind) if newer is None else newer


@dataclass(frozen=True, eq=False)
class Refreshed:
    """The user's tables that are no older than the package's, by data file; `remark` says why none can be used."""

    tables: Mapping[str, Any]
    remark: Text = ""


def refreshed_file() -> Path:
    """Name the file of the tables that this user refreshed."""
    return user_data() / "catalog.json"


@cache
def user_tables() -> Refreshed:
    """Read the tables that this user refreshed, once per process."""
    path = refreshed_file()
    try:
        text = read_plain(path)
        read = from_json(text, _kind_of_refreshed(), path.name)
    except FileNotFoundError:
        return Refreshed({})
    except (OSError, BadInput) as error:
        remark = _(
            "The refreshed tables in {path} are not used, `assistant catalog refresh` makes new ones: {reason}",
            "refreshed-tables-not-used",
            path=path,
            reason=error.message if isinstance(error, BadInput) else str(error),
        )
        return Refreshed({}, remark)
    found: dict[str, msgspec.Struct | None] = msgspec.structs.asdict(read)
    newer = {name: new for name, new in found.items() if new and _day(new) >= _day(shipped(name, type(new)))}
    return Refreshed(newer)


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


def _kind_of_refreshed() -> type[msgspec.Struct]:
    """Return what the user's file is decoded into: the data files that a refresh brings up to date."""
    from assistant.catalog.rows import RocmTables, TorchTables  # noqa: PLC0415 - their rows are tables of this module

    kinds = {"torch": TorchTables, "rocm": RocmTables}
    fields = [(name, kind | None, None) for name, kind in kinds.items()]
    return msgspec.defstruct("Refreshed", fields, bases=(Record,), frozen=True)


def _day(tables: msgspec.Struct) -> str:
    """Return the newest day of a data file's tables."""
    day: str = max(getattr(tables, name).as_of for name in tables.__struct_fields__)
    return day


@cache
def shipped(name: str, kind: type[T]) -> T:
    """Decode a data file of the package, named without its suffix; a fault in it names the file and the key."""
    path = _DATA / f"{name}.json"
    return from_json(path.read_bytes(), kind, str(path))

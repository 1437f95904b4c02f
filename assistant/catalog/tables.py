"""How a table of the catalogue is stored: rows of one kind with their source and date, read strictly."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from assistant.model.record import Record, from_json

Row = TypeVar("Row")
_DATA = Path(__file__).with_name("data")


class Table(Record, Generic[Row], frozen=True):
    """Rows of one kind; `source` names where they were read, `as_of` the day (YYYY-MM-DD)."""

    source: str
    as_of: str
    rows: tuple[Row, ...]


T = TypeVar("T", bound=msgspec.Struct)


@cache
def data_files() -> tuple[str, ...]:
    """Name the shipped data files, without their suffix."""
    return tuple(sorted(path.stem for path in _DATA.glob("*.json")))


@cache
def read_text(name: str) -> bytes:
    """Read one shipped data file by its name without the suffix."""
    return (_DATA / f"{name}.json").read_bytes()


def read_tables(name: str, kind: type[T]) -> T:
    """Decode one shipped data file, once for all who ask; a fault in it names the file and the key."""
    tables: T = _decoded(name, kind)
    return tables


@cache
def _decoded(name: str, kind: Any) -> Any:  # noqa: ANN401 - a cache keeps no type variable; `read_tables` gives it
    return from_json(read_text(name), kind, f"catalog/data/{name}.json")

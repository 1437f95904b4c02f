"""The add-on's own tables in `data`, each with its source and the day when it was read."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from assistant.api.planning import Table
from assistant.api.records import from_json

R = TypeVar("R")


def load(name: str, kind: type[R]) -> tuple[R, ...]:
    """Return the rows of a table such as "conda.names", decoded strictly into `kind`; a fault raises `BadInput`."""
    rows: tuple[R, ...] = _decoded(name, kind)  # type: ignore[arg-type]  # a class is hashable
    return rows


@cache
def _decoded(name: str, kind: type[Any]) -> tuple[Any, ...]:
    file, _dot, title = name.partition(".")
    data = (Path(__file__).parent / "data" / f"{file}.json").read_bytes()
    tables = from_json(data, dict[str, msgspec.Raw], file)
    return from_json(bytes(tables[title]), Table[kind], name).rows  # type: ignore[valid-type]

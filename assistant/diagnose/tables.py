"""Reads the tables that lie beside the code of this room."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from assistant.model.record import Record, from_plain

T = TypeVar("T", bound=Record)


def table(name: str, kind: type[T]) -> T:
    """Read a shipped file as a record, once; raise `BadInput` naming what is wrong in it."""
    read: T = _read(name, kind)
    return read


@cache
def _read(name: str, kind: Any) -> Any:  # noqa: ANN401 - a cache keeps no type variable
    text = files("assistant.diagnose").joinpath(name).read_text("utf-8")
    return from_plain(tomllib.loads(text), kind, name)

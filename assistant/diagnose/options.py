"""The options with which programs save memory, or compute on the CPU."""

from __future__ import annotations

import re

from assistant.diagnose.tables import table
from assistant.model.record import Record


class Program(Record, frozen=True):
    """A program that is told by its `words`, and what it takes to save memory or to use the CPU; "" for nothing."""

    name: str
    words: str
    source: str
    memory: str = ""
    cpu: str = ""


class _File(Record, frozen=True):
    as_of: str
    program: tuple[Program, ...]


def programs() -> tuple[Program, ...]:
    """Read the shipped table, once."""
    return table("options.toml", _File).program


def option_names(text: str) -> dict[str, str]:
    """Name the program that a text is of, and its options; {} for a program that the table lacks."""
    found = next((row for row in programs() if re.search(row.words, text)), None)
    if found is None:
        return {}
    names = {"saving": found.memory, "on_cpu": found.cpu}
    return {"program": found.name, **{name: value for name, value in names.items() if value}}

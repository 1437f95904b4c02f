"""What reports call the facts of a machine: keys and columns, what only one tool prints, complaints without a GPU."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from assistant.catalog.tables import Table, read_tables
from assistant.model.machine import Vendor
from assistant.model.record import Record

Owner = Literal["gpu", "machine"]


class KeyRow(Record, frozen=True):
    """The keys under which reports tell a fact of a GPU or of the machine, the best first, as `plain_key` spells them.

    `forms` are patterns of the whole key, for keys with a number in them.
    """

    of: Owner
    fact: str
    keys: tuple[str, ...]


class ToolRow(Record, frozen=True):
    """A tool, patterns of what only it prints (`^` is a line's begin, indented or not), and what its running tells."""

    name: str
    marks: tuple[str, ...]
    os: Literal["linux", "windows", "macos"] | None = None
    vendor: Vendor | None = None
    wsl: bool | None = None


class ComplaintRow(Record, frozen=True):
    """What a tool prints (a pattern) in place of a GPU."""

    tool: str
    pattern: str
    os: Literal["linux", "windows", "macos"] | None = None


class VocabularyTables(Record, frozen=True):
    """How reports are worded; `products` are patterns of what begins a GPU's name, `others` of what is no GPU."""

    keys: Table[KeyRow]
    tools: Table[ToolRow]
    complaints: Table[ComplaintRow]
    products: Table[str]
    others: Table[str]


def vocabulary() -> VocabularyTables:
    """Return the tables in force."""
    return read_tables("vocabulary", VocabularyTables)


_ASIDE = re.compile(r"[(\[（][^()\[\]（）]{0,80}[)\]）]")
_JOINTS = re.compile(r"[\W_]{1,20}")


def plain_key(key: str) -> str:
    """Reduce a key to its letters and digits, without what stands in brackets: `memory.total [MiB]`, `VRAM_TOTAL`."""
    return _JOINTS.sub("", _ASIDE.sub("", key).lower())


@cache
def _meanings(of: Owner) -> dict[str, tuple[str, int]]:
    rows = (row for row in vocabulary().keys.rows if row.of == of)
    return {key: (row.fact, rank) for row in rows for rank, key in enumerate(row.keys)}


def meaning(of: Owner, key: str) -> tuple[str, int] | None:
    """Return the fact that a key (as `plain_key` spells it) tells of a GPU or of the machine, and its rank."""
    return _meanings(of).get(key)


@cache
def tool_marks() -> tuple[tuple[ToolRow, re.Pattern[str]], ...]:
    """Return each tool with the pattern that tells its output."""
    begun = re.compile(r"^\^")
    rows = (
        (row, "|".join(begun.sub(r"^[ \\t*-]{0,40}", mark) for mark in row.marks)) for row in vocabulary().tools.rows
    )
    return tuple((row, re.compile(marks, re.MULTILINE)) for row, marks in rows)


def tool_names() -> tuple[str, ...]:
    """Return the names of the tools whose output is known."""
    return tuple(row.name for row in vocabulary().tools.rows)


@cache
def complaints() -> tuple[tuple[ComplaintRow, re.Pattern[str]], ...]:
    """Return each complaint with its pattern."""
    return tuple((row, re.compile(row.pattern, re.IGNORECASE)) for row in vocabulary().complaints.rows)


@cache
def products() -> re.Pattern[str]:
    """Return what finds the name of a GPU within a text, from its maker or its line on; the last words may be more."""
    lines = "|".join(vocabulary().products.rows)
    return re.compile(
        r"(?:(?<![\w-])(?:NVIDIA|AMD|ATI|Intel|Apple)(?:\(R\)|®)?(?: Corporation)? )?"
        rf"(?<![\w.+/-])(?:{lines})(?![a-z])(?:\(R\)|\(TM\)|\(tm\)|®|™)?(?:[ -]{{1,2}}[\w()+™®/.-]{{1,20}}){{0,8}}",
        re.IGNORECASE | re.ASCII,  # Chinese stands before and behind a name without a blank
    )


@cache
def other_devices() -> re.Pattern[str]:
    """Return what tells that a device is none of the GPUs: a processor, a sound card, a bridge."""
    return re.compile("|".join(vocabulary().others.rows), re.IGNORECASE)

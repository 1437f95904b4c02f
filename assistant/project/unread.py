"""Files of other tools that are not read, and the command of each tool that writes one that is."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from assistant.catalog.tables import Table
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.record import Record, from_json
from assistant.project.source import shown

EXPLICIT = "@EXPLICIT"  # stands in a list of addresses that `conda list --explicit` prints


class UnreadFile(Record, frozen=True):
    """A file by its name, the tool that it belongs to, and the tool's command that writes what can be read."""

    name: str
    tool: str
    command: str


class UnreadTables(Record, frozen=True):
    """The files that are not read."""

    files: Table[UnreadFile]


@cache
def _unread() -> dict[str, UnreadFile]:
    file = Path(__file__).parent / "data" / "unread.json"
    tables = from_json(file.read_bytes(), UnreadTables, "project/data/unread.json")
    return {row.name.lower(): row for row in tables.files.rows}


def names_of_unread() -> tuple[str, ...]:
    """Return the names of all such files."""
    return tuple(row.name for row in _unread().values())


def unread_file(kind: str, file: str) -> BadInput | None:
    """Return the error for a `file` of a kind such as "Pipfile", None for a file that is read here."""
    row = _unread().get(kind.lower())
    if row is None:
        return None
    return BadInput(
        _("{file} belongs to {tool} and cannot be read here.", file=shown(file), tool=row.tool),
        hint=_("Run `{command}`, and name the file that it writes.", command=row.command),
    )

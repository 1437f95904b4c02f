"""Files of other tools that are not read, and the command of each tool that writes one that is."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from assistant.catalog.tables import Table
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.record import Record, from_json
from assistant.project.source import file_text, shown

CONDA_LIST = "conda list"  # what it prints has no name of its own
# A setup.py or setup.cfg without it is for building alone, or for other tools.
_DECLARES = re.compile(r"\binstall_requires\b")


class NotRead(BadInput):
    """A file of another tool's that may say what a project needs, and is not read."""


class UnreadFile(Record, frozen=True):
    """A file by its name, and its tool's command that writes what can be read."""

    name: str
    command: str


class UnreadTables(Record, frozen=True):
    """The files that are not read."""

    files: Table[UnreadFile]


@cache
def _rows() -> tuple[UnreadFile, ...]:
    file = Path(__file__).parent / "data" / "unread.json"
    return from_json(file.read_bytes(), UnreadTables, "project/data/unread.json").files.rows


def names_of_unread() -> tuple[str, ...]:
    """Return the names of all such files."""
    return tuple(row.name for row in _rows())


def not_read(kind: str, file: str) -> NotRead | None:
    """Return the error for a `file` of a kind such as "Pipfile", None for a file that is read here."""
    name = re.sub(r"^pylock\..*toml$", "pylock.toml", kind.lower())
    command = next((row.command for row in _rows() if row.name.lower() == name), None)
    if command is None:
        return None
    return NotRead(
        _("{file} is not read here.", file=shown(file)),
        hint=_("Run `{command}`, and name the file that it writes.", command=command),
    )


def declares_nothing(path: Path) -> bool:
    """Return whether a file is setuptools' own and lists no packages."""
    return path.name.lower() in {"setup.py", "setup.cfg"} and not _DECLARES.search(file_text(path))

"""Reads records one after the other, from a folder or from lines; what cannot be read gets a sentence in its place."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from assistant.fleet.record import FleetRecord
from assistant.host.files import open_plain, read_plain
from assistant.i18n import Text
from assistant.model.errors import AssistantError, BadInput, unreadable
from assistant.model.record import from_json
from assistant.model.visible import printable
from assistant.parsers.decode import text_lines, text_pieces

RECORD_LIMIT = 4 << 20  # chosen: bytes; a record has about 20 kB
_KINDS = (".json", ".jsonl")


class Unread(NamedTuple):
    """A file, or a line of one, that is no record, and why."""

    file: str
    why: Text


class Found(NamedTuple):
    """A record, and the file in which it was found."""

    file: str
    record: FleetRecord


def read_records(place: Path, written: Path | None = None) -> Iterator[Found | Unread]:
    """Yield all records of a folder (its `*.json`, and the lines of its `*.jsonl`), or of one such file.

    Nothing is held; `written` is a report of ours that may lie there, too. Links are not followed. Raises `BadInput`
    where the place cannot be read at all.
    """
    try:
        names = sorted(path.name for path in place.iterdir())
    except NotADirectoryError:
        yield from _of_file(place, place.name)
        return
    except OSError as error:
        raise unreadable(place, error) from error
    own = written.name if written and _is_in(written, place) else ""
    for name in names:
        if name.lower().endswith(_KINDS) and not name.startswith(".") and name != own:
            try:
                yield from _of_file(place / name, printable(name))
            except BadInput as error:
                yield Unread(printable(name), error.message)


def _is_in(path: Path, folder: Path) -> bool:
    with suppress(OSError):
        return path.parent.resolve() == folder.resolve()
    return False


def _of_file(path: Path, name: str) -> Iterator[Found | Unread]:
    try:
        if path.suffix.lower() == ".jsonl":
            with open_plain(path) as file:
                yield from read_lines(file, name)
            return
        text = "".join(text_pieces(read_plain(path, RECORD_LIMIT)))
    except OSError as error:
        raise unreadable(name, error) from error
    yield _read(text, name)


def read_lines(file: io.BufferedReader, name: str) -> Iterator[Found | Unread]:
    """Yield the record of each line."""
    for number, line in enumerate(text_lines(file), 1):
        yield _read(line, f"{name}:{number}")


def _read(text: str, name: str) -> Found | Unread:
    try:
        return Found(name, from_json(text, FleetRecord, name))
    except AssistantError as error:
        return Unread(name, error.message)

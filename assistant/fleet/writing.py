"""Writes the record of a machine where the user wants it; nothing of another machine is lost there."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from assistant.export import same_hardware
from assistant.fleet.record import FleetRecord
from assistant.host.files import read_plain, write_named
from assistant.model.errors import BadInput
from assistant.model.record import from_json, to_json


def write_record(record: FleetRecord, to: Path) -> Path:
    """Write a record where the user said and return the file: an existing one, a new `….json`, else into that folder.

    In a folder the file is called as the machine; a file of that name which is not of the same machine stays, and the
    new one gets a number. Raises `OSError`.
    """
    if to.is_dir() or not (to.exists() or to.suffix == ".json"):
        to.mkdir(parents=True, exist_ok=True)
        to = next(path for path in _places(to, record.name) if _is_free(path, record))
    write_named(to, to_json(record, indent=1) + "\n")
    return to


def _places(folder: Path, name: str) -> Iterator[Path]:
    stem = re.sub(r"[^\w.-]+", "-", name).strip(".-") or "machine"
    yield folder / f"{stem}.json"
    yield from (folder / f"{stem}-{number}.json" for number in itertools.count(2))


def _is_free(path: Path, record: FleetRecord) -> bool:
    """Return whether nothing is lost by writing there: no file, or an earlier record of the same machine."""
    try:
        there = from_json(read_plain(path), FleetRecord, path.name)
    except FileNotFoundError:
        return True
    except (OSError, BadInput):
        return False
    return there.name == record.name and same_hardware(there.machine, record.machine)

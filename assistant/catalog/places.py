"""Where environments usually lie: the folders of virtual environment tools, conda and known applications."""

from __future__ import annotations

from typing import Literal

from assistant.catalog.tables import Table, read_tables
from assistant.model.record import Record


class Place(Record, frozen=True):
    """The places of one tool or application.

    `paths` begin with "~" or a variable, and "*" stands for any one folder. `lists` are files that name an environment
    in each line. `settings` are JSON files whose `key` names a folder, and `below` are paths in that folder.
    """

    name: str
    kind: Literal["venv", "conda", "application"]
    paths: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    key: str = ""
    below: tuple[str, ...] = ()


class PlaceTables(Record, frozen=True):
    """The file of places."""

    places: Table[Place]


def places() -> tuple[Place, ...]:
    """Return the places that are known."""
    return read_tables("places", PlaceTables).places.rows

"""Which distribution an import stands for, by a table of names; never by the import's own name alone.

PyPI has other or abandoned projects under the names of many imports (whisper, docx, TTS), so what the table does not
hold is told and not guessed. No library was taken for it: pipreqs falls back on the name itself, and pyimport2pkg 1.0,
whose data the table's larger part rests on, brings an HTTP client for them and has had no release since.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from packaging.utils import canonicalize_name

from assistant.catalog.tables import Table
from assistant.model.record import Record, from_json


class Provider(Record, frozen=True):
    """A module, dotted below a namespace, and the distribution that provides it; "" where PyPI has none.

    `others` provide it as well, and which of them a project means cannot be seen from its code.
    """

    module: str
    distribution: str
    others: tuple[str, ...] = ()


class ImportTables(Record, frozen=True):
    """The map: `listed` by hand, `renamed` as "module distribution", `same` as modules called as their distribution."""

    listed: Table[Provider]
    renamed: Table[str]
    same: Table[str]


@cache
def _providers() -> dict[str, Provider]:
    file = Path(__file__).parent / "data" / "imports.json"
    tables = from_json(file.read_bytes(), ImportTables, "project/data/imports.json")
    found = {
        name: Provider(module=name, distribution=canonicalize_name(name))
        for row in tables.same.rows
        for name in row.split()
    }
    for row in tables.renamed.rows:
        module, _space, distribution = row.partition(" ")
        found[module] = Provider(module=module, distribution=distribution)
    return found | {row.module: row for row in tables.listed.rows}


def provider(module: str) -> Provider | None:
    """Return what provides a module such as "cv2" or "google.protobuf.message"; None where no table says it."""
    known, parts = _providers(), module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((known[name] for name in names if name in known), None)


def is_namespace(module: str) -> bool:
    """Return whether distributions share a module, each with a name below it, as "google" and "google.cloud"."""
    return module in _namespaces()


@cache
def _namespaces() -> frozenset[str]:
    dotted = (name.split(".") for name in _providers())
    return frozenset(".".join(parts[:length]) for parts in dotted for length in range(1, len(parts)))

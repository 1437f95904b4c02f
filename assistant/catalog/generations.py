"""How fast a card computes in half precision: by its exact name, else as the weakest card of its generation."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from assistant.catalog.identity import name_key, name_keys
from assistant.catalog.tables import Table, read_tables
from assistant.model.machine import Vendor
from assistant.model.record import Record


class Generation(Record, frozen=True):
    """A generation by the codes of its chips: compute capabilities, gfx targets, or how an Intel generation begins.

    `entry` is the rate of the weakest card known, in TFLOPS. The first row counts; `words` narrow it to some names.
    """

    vendor: Vendor
    name: str
    codes: tuple[str, ...]
    entry: float
    words: str = ""


SAME_MEMORY = 1.0  # GiB by which what a driver reports may differ from what the box says (chosen)


class CardRate(Record, frozen=True):
    """A card's rate in half precision in TFLOPS, dense and, on tensor cores, summed in float32.

    `gb` of memory tell cards of one name apart.
    """

    names: tuple[str, ...]
    half: float
    gb: float | None = None


class GenerationTables(Record, frozen=True):
    """Generations of every maker, cards by maker, and what data sheets say of some, which goes before."""

    generations: Table[Generation]
    nvidia: Table[CardRate]
    amd: Table[CardRate]
    intel: Table[CardRate]
    datacenter: Table[CardRate]
    geforce: Table[CardRate]
    radeon: Table[CardRate]


class Rate(NamedTuple):
    """TFLOPS in half precision; not `exact` where the card is only known to be no weaker than its generation."""

    half: float
    exact: bool


def _tables() -> GenerationTables:
    return read_tables("generations", GenerationTables)


@cache
def _by_name() -> dict[Vendor, dict[str, float]]:
    tables = _tables()
    makers = {Vendor.NVIDIA: tables.nvidia, Vendor.AMD: tables.amd, Vendor.INTEL: tables.intel}
    return {
        vendor: {name_key(name): row.half for row in table.rows for name in row.names}
        for vendor, table in makers.items()
    }


@cache
def _by_data_sheet() -> dict[str, list[CardRate]]:
    tables, found = _tables(), dict[str, list[CardRate]]()
    for row in (*tables.datacenter.rows, *tables.geforce.rows, *tables.radeon.rows):
        for name in row.names:
            found.setdefault(name_key(name), []).append(row)
    return found


@lru_cache(maxsize=8192)  # far above the kinds of cards that one fleet has
def rate_of(vendor: Vendor, name: str, code: str, memory: float | None = None) -> Rate | None:
    """Return a card's rate, None where neither its name nor its generation is known.

    `code` is the compute capability ("8.6"), the gfx target or Intel's generation; `memory` in GiB tells cards of one
    name apart.
    """
    half = _published(vendor, name, memory)
    if half is not None:
        return Rate(half, exact=True)
    for row in _tables().generations.rows:
        named = row.vendor is vendor and (not row.words or re.search(row.words, name))
        if named and any(code == one or (vendor is Vendor.INTEL and code.startswith(one)) for one in row.codes):
            return Rate(row.entry, exact=False)
    return None


def _published(vendor: Vendor, name: str, memory: float | None) -> float | None:
    own = _by_name().get(vendor, {})
    for key in name_keys(vendor, name):
        rows = (row for row in _by_data_sheet().get(key, ()) if row.gb is None or _is_near(row.gb, memory))
        half = next((row.half for row in rows), own.get(key))
        if half is not None:
            return half
    return None


def _is_near(size: float, memory: float | None) -> bool:
    return memory is not None and abs(size - memory) < SAME_MEMORY

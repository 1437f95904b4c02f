"""How fast a GPU computes in half precision: by data sheets, else no less than the weakest card of its generation."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from assistant.catalog.identity import name_key, name_keys
from assistant.catalog.tables import Row, rows
from assistant.model.machine import Vendor

SAME_MEMORY = 1.0  # GiB by which what a driver reports may differ from what the box says (chosen)
_LISTED = {Vendor.NVIDIA, Vendor.AMD, Vendor.INTEL}


class Rate(NamedTuple):
    """TFLOPS in half precision; not `exact` where the card is only known to be no weaker than its generation."""

    half: float
    exact: bool


@lru_cache(maxsize=8192)  # far above the kinds of cards that one fleet has
def rate_of(vendor: Vendor, name: str, code: str, memory: float | None = None) -> Rate | None:
    """Return a card's rate, None where neither its name nor its generation is known.

    `code` is the compute capability ("8.6"), the gfx target or Intel's generation; `memory` in GiB tells cards of one
    name apart.
    """
    half = _published(vendor, name, memory)
    if half is not None:
        return Rate(half, exact=True)
    # A generation is known by the codes of its chips, of Intel's by how they begin; `words` narrow it to some names.
    # The first row that fits counts; its `entry` is the rate of the weakest card known.
    for row in rows("generations.generations"):
        named = row.vendor == vendor.value and (not row.words or re.search(row.words, name))
        if named and any(code == own or (vendor is Vendor.INTEL and code.startswith(own)) for own in row.codes):
            return Rate(row.entry, exact=False)
    return None


def _published(vendor: Vendor, name: str, memory: float | None) -> float | None:
    """Return what a data sheet says, else the maker's table: dense and, on tensor cores, summed in float32."""
    listed = _by_name(vendor.value) if vendor in _LISTED else {}
    for key in name_keys(vendor, name):
        sheets = (row for row in _by_data_sheet().get(key, ()) if row.get("gb") is None or _is_near(row.gb, memory))
        half = next((row.half for row in sheets), listed.get(key))
        if half is not None:
            return half
    return None


@cache
def _by_name(maker: str) -> dict[str, float]:
    return {name_key(name): row.half for row in rows(f"generations.{maker}") for name in row.names}


@cache
def _by_data_sheet() -> dict[str, list[Row]]:
    """Return what data sheets say by the keys of names; `gb` of memory tell cards of one name apart."""
    found: dict[str, list[Row]] = {}
    for maker in ("datacenter", "geforce", "radeon"):
        for row in rows(f"generations.{maker}"):
            for name in row.names:
                found.setdefault(name_key(name), []).append(row)
    return found


def _is_near(size: float, memory: float | None) -> bool:
    return memory is not None and abs(size - memory) < SAME_MEMORY

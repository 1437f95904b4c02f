"""What a card can reach at most, as its vendor publishes it; found by its exact name, nothing is guessed."""

from __future__ import annotations

from functools import cache

from assistant.catalog.identity import name_key
from assistant.catalog.tables import Table, read_tables
from assistant.model.record import Record
from assistant.model.speed import Limit

SAME_MEMORY = 1.0  # GiB by which what a driver reports may differ from what the box says (chosen)


class LimitRow(Record, frozen=True):
    """One card: GB/s of its memory, TFLOP/s in float32 without tensor cores and in half precision summed in float32.

    `gb` of memory tell cards of one name apart. Half precision is dense, without the doubling for sparse matrices;
    `bfloat16` is False where the card computes that type slower than float16.
    """

    names: tuple[str, ...]
    bandwidth: float
    float32: float | None = None
    half: float | None = None
    bfloat16: bool = True
    gb: float | None = None


class LimitTables(Record, frozen=True):
    """The cards by maker and kind."""

    datacenter: Table[LimitRow]
    geforce: Table[LimitRow]
    radeon: Table[LimitRow]
    arc: Table[LimitRow]
    apple: Table[LimitRow]


def limits_of(name: str, memory: float | None = None) -> dict[str, Limit]:
    """Return what is published for a card as torch names it, with `memory` GiB, by "bandwidth" and type.

    Nothing for a name that is unknown, or that cards of different memory share when that is not known.
    """
    rows = _by_name().get(name_key(name), ())
    near = memory or 0.0
    fitting = [pair for pair in rows if pair[0].gb is None or abs(pair[0].gb - near) < SAME_MEMORY]
    if len(fitting) != 1:
        return {}
    row, source = fitting[0]
    teras = {"float32": row.float32, "float16": row.half, "bfloat16": row.half if row.bfloat16 else None}
    rates = {"bandwidth": row.bandwidth, **{dtype: 1000.0 * tera for dtype, tera in teras.items() if tera is not None}}
    return {kind: Limit(value=rate, source=source) for kind, rate in rates.items()}


@cache
def _by_name() -> dict[str, list[tuple[LimitRow, str]]]:
    """Return every card with its source, by the key of each of its names."""
    found: dict[str, list[tuple[LimitRow, str]]] = {}
    tables = read_tables("limits", LimitTables)
    for table in (tables.datacenter, tables.geforce, tables.radeon, tables.arc, tables.apple):
        for row in table.rows:
            for name in row.names:
                found.setdefault(name_key(name), []).append((row, f"{table.source} ({table.as_of})"))
    return found

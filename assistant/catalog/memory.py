"""What weights take in memory by their format, and the rules by which a need for memory is estimated."""

from __future__ import annotations

from assistant.catalog.tables import Table, read_tables
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.record import Record


class Format(Record, frozen=True):
    """A format of weights: bits for each, scales included; `embeddings` are the bits of those, 0 for the same.

    `also` are other names of it; `gguf` marks those of llama.cpp.
    """

    key: str
    bits: float
    also: tuple[str, ...] = ()
    embeddings: float = 0
    gguf: bool = False


class Rules(Record, frozen=True):
    """What an estimate adds to weights and cache, in GiB, and where the verdicts part, as shares of the card's memory.

    Above `share_from_gib` of weights the overhead is at least `overhead_share` of them; an estimate is told as a range
    of `range` to both sides. `cache_bytes` are those of one cached value. A model whose shape is not known is taken
    for one of `width_per_layer`, with a cache between `grouped` of the largest and the largest.
    """

    gguf_overhead_gib: float
    overhead_gib: float
    overhead_share: float
    share_from_gib: float
    tight_from: float
    range: float
    cache_bytes: int
    width_per_layer: int
    grouped: float


class MemoryTables(Record, frozen=True):
    """The file of formats and rules."""

    formats: Table[Format]
    rules: Table[Rules]


def rules() -> Rules:
    """Return the rules of an estimate."""
    return _tables().rules.rows[0]


def format_of(name: str) -> Format:
    """Find a format by one of its names, or by plain bits ("4" is llama.cpp's usual one); raise `BadInput` for none."""
    wanted = name.strip().lower()
    rows = _tables().formats.rows
    for row in rows:
        if wanted in (row.key, *row.also):
            return row
    names = ", ".join(row.key for row in rows)
    raise BadInput(
        _("'{name}' is not a known weight format.", name=name),
        hint=_("Choose one of: {names}.", names=names, option="--bits"),
    )


def _tables() -> MemoryTables:
    return read_tables("memory", MemoryTables)

"""A cause that was worked out from a log and the facts of its machine, rather than met as a message of its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from assistant.diagnose.tables import table
from assistant.model.record import Record

_NO_NAMES: Mapping[str, str] = MappingProxyType({})


class Cause(NamedTuple):
    """A cause that fits: the key of its rule, and on what it rests.

    `basis` is a row of evidence.toml; `lines` are indexes in `Log.lines`; `names` fill the placeholders of the rule's
    texts and commands; `known` are questions of predicates.py whose answers decided, `unknown` those that would.
    """

    key: str
    basis: str
    lines: tuple[int, ...] = ()
    names: Mapping[str, str] = _NO_NAMES
    known: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def confidence(self) -> float:
        """How often causes on this basis were right."""
        return confidences()[self.basis]


class Basis(Record, frozen=True):
    """A kind of evidence, and how often what rests on it was right in labelled cases."""

    key: str
    text: str
    confidence: float
    right: int = 0
    of: int = 0


class _File(Record, frozen=True):
    as_of: str
    source: str
    basis: tuple[Basis, ...]


@cache
def confidences() -> dict[str, float]:
    """Read the shipped kinds of evidence, once."""
    return {row.key: row.confidence for row in table("evidence.toml", _File).basis}

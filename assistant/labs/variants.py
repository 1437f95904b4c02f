"""Variants of a lab: each learner's name draws one, so that neighbours have different answers to the same lesson."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from assistant.model.record import Record, replace

_R = TypeVar("_R", bound=Record)


def variant_of(variants: Sequence[Mapping[str, str]], key: str, learner: str) -> Mapping[str, str]:
    """Return the values of a learner's variant: the first for no name, {} for a lab that has none."""
    if not variants:
        return {}
    drawn = int.from_bytes(hashlib.sha256(f"{key}\n{learner}".encode()).digest()[:8]) if learner else 0
    return variants[drawn % len(variants)]


def filled(record: _R, values: Mapping[str, str]) -> _R:
    """Fill the placeholders in all texts of a record; names without a value, such as `{lab}`, stay as they are.

    The sentences in `faults` have placeholders of their own as well, so `Scene.wrong` fills them.
    """
    if not values:
        return record
    fields = {name: getattr(record, name) for name in record.__struct_fields__ if name not in {"variant", "faults"}}
    return replace(record, **{name: _in(value, values) for name, value in fields.items()})


def put_in(text: str, values: Mapping[str, str]) -> str:
    """Fill the placeholders in a text."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _in(value: Any, values: Mapping[str, str]) -> Any:  # noqa: ANN401 - of the kind that was given
    if isinstance(value, str):
        return put_in(value, values)
    if isinstance(value, tuple):
        return tuple(_in(one, values) for one in value)
    if isinstance(value, dict):
        return {name: _in(one, values) for name, one in value.items()}
    return value

"""Says what to look at next where no cause is known: by an error that is complete in itself, a program or a maker."""

from __future__ import annotations

import re
from functools import cache

from assistant.diagnose.log import Log
from assistant.diagnose.rules import table
from assistant.i18n import _
from assistant.model.finding import Remedy
from assistant.model.machine import Machine
from assistant.model.record import Record


class Hint(Record, frozen=True):
    """What to do next, for a text in which one of the patterns `any` matches, or a machine with a GPU of a maker.

    Each of the patterns `all` must match as well. A hint about a `program` goes before those about errors. One by
    `vendor` is for the systems `os` ("linux", "windows", "macos"), or for all if that is empty.
    """

    key: str
    text: str
    source: str
    any: tuple[str, ...] = ()
    all: tuple[str, ...] = ()
    program: bool = False
    vendor: str = ""
    os: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


class _File(Record, frozen=True):
    as_of: str
    hint: tuple[Hint, ...]


def hint_for(log: Log, machine: Machine, *, about_a_gpu: bool) -> Remedy | None:
    """Return what to look at next for a text without a known cause; None if nothing can be said.

    The error that stands last in the text goes before those above it, and any of them before the check of the GPU,
    which is given if the text is `about_a_gpu` and all GPUs are of one maker.
    """
    found = (
        (row, [*re.finditer("|".join(row.any), log.text, re.ASCII)])
        for row in _rows()
        if row.any and all(re.search(pattern, log.text, re.ASCII) for pattern in row.all)
    )
    matches = [(found_in_row[-1].start(), row) for row, found_in_row in found if found_in_row]
    programs = [row for _at, row in matches if row.program]
    if matches:
        return _as_remedy(programs[0] if programs else max(matches, key=lambda pair: pair[0])[1])
    vendors = {gpu.vendor.value for gpu in machine.gpus}
    checks = [row for row in _rows() if {row.vendor} == vendors and (not row.os or machine.os in row.os)]
    return _as_remedy(checks[0]) if checks and about_a_gpu else None


def _as_remedy(hint: Hint) -> Remedy:
    """Return a hint as users read it."""
    return Remedy(text=_(hint.text), commands=hint.commands)


@cache
def _rows() -> tuple[Hint, ...]:
    """Return the shipped hints, read once; raise `BadInput` naming what is wrong in them."""
    return table("hints.toml", _File).hint

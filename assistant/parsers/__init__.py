"""Readers of what other programs print: text in, value or None out, in time proportional to the text.

Above each stands a real sample of what it reads, shortened.
"""

from __future__ import annotations

import re

from assistant.model.machine import Gpu
from assistant.model.record import Record


class Device(Record, frozen=True):
    """One GPU as a tool reports it, with its address on the bus (`0000:03:00.0`) and the tool's own number."""

    gpu: Gpu
    bus: str | None = None
    index: int | None = None


class Reading(Record, frozen=True):
    """What a tool's report says of its machine: facts named as in `Machine`, and GPUs.

    `absence` is what it prints if the tool is missing or sees no GPU; else "".
    """

    facts: dict[str, object] = {}
    devices: tuple[Device, ...] = ()
    absence: str = ""


def field(block: str, name: str) -> str:
    """Return what follows a name (a pattern) on its line: `Name: X`, `Name = X` or `Name   X`; "" for nothing."""
    found = re.search(rf"^[ \t]{{0,40}}{name}[ \t]{{0,80}}[:=]?[ \t]{{1,80}}(\S[^\n]{{0,100}})$", block, re.MULTILINE)
    return found[1].strip() if found else ""


def gib(mib: str | float | None) -> float | None:
    """Return MiB as GiB, rounded to a tenth; None for None and zero, which say nothing."""
    return round(float(mib) / 1024, 1) if mib and float(mib) else None


def bus_address(text: str) -> str | None:
    """Return a PCI address as Linux spells it, `0000:01:00.0`; None for any other text.

    NVIDIA's tools write the domain with eight digits.
    """
    found = re.fullmatch(r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])", text.lower())
    return f"{found[1][-4:]}:{found[2]}" if found else None

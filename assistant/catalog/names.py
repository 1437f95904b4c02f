"""Who and what the words and numbers of reports mean: vendors, systems, processors, adapters that cannot compute."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from assistant.catalog.tables import Row, load_table, rows
from assistant.model.machine import Vendor


@cache
def patterns(table: str) -> dict[str, re.Pattern[str]]:
    """Return patterns by the names of what they find: vendors, systems, processor architectures, adapters.

    `table` is "vendors", "systems", "architectures", "mentions" (vendors by product names in the midst of a lower-case
    log), "hints" (what only a system's programs print: paths, wheel tags, errors), "spoken" (how people name a system)
    or "idle_names" (a single pattern, of that name). Letters are ASCII's: a Chinese character ends a word.
    """
    systems, makers = rows("names.systems"), rows("names.vendors")
    written = {
        "vendors": {row.vendor: _words(row.words) for row in makers},
        "mentions": {row.vendor: "|".join(row.mentions) for row in makers if row.mentions},
        "systems": {row.name: "|".join([*row.patterns, _words(row.words)]) for row in systems},
        "hints": {row.name: "|".join(row.hints) for row in systems},
        "spoken": {row.name: "|".join(row.spoken) for row in systems},
        "architectures": {row.name: _words(row.words) for row in rows("names.architectures")},
        "idle_names": {table: rf"\b(?:{'|'.join(map(re.escape, load_table('names.idle_names', str).rows))})"},
    }[table]
    return {name: re.compile(pattern, re.IGNORECASE | re.ASCII) for name, pattern in written.items()}


def _words(words: Iterable[str]) -> str:
    return rf"\b(?:{'|'.join(map(re.escape, words))})\b"


def _first_named(table: str, texts: Iterable[str]) -> str | None:
    return next((name for text in texts for name, found in patterns(table).items() if found.search(text)), None)


def find_system(*texts: str) -> str | None:
    """Return "linux", "windows" or "macos" by the first text that names one; None if none does."""
    return _first_named("systems", texts)


def find_architecture(*texts: str) -> str | None:
    """Return the processor architecture by the first text that names one; None if none does."""
    return _first_named("architectures", texts)


def vendor_of_name(name: str) -> Vendor:
    """Return the vendor whose whole words a GPU's name holds; `UNKNOWN` for none."""
    return Vendor(_first_named("vendors", [name]) or Vendor.UNKNOWN)


def vendor_of(pci_id: str | None) -> Vendor:
    """Return the vendor of a PCI id, `vendor:device` or `vendor`; `UNKNOWN` for none, `OTHER` for anyone else."""
    if not pci_id:
        return Vendor.UNKNOWN
    number = pci_id.partition(":")[0].lower().removeprefix("0x")
    return next((Vendor(row.vendor) for row in rows("names.vendors") if row.pci == number), Vendor.OTHER)


def pci_id(vendor: Vendor, device: str | None) -> str | None:
    """Return the PCI id `vendor:device` (hex) of a device of a vendor; None if the id of either is unknown."""
    maker = next((row.pci for row in rows("names.vendors") if row.vendor == vendor.value), None)
    return f"{maker}:{device.lower():0>4}" if maker and device else None


def profiler_vendor(word: str) -> Vendor:
    """Return the vendor by system_profiler's word for it (`sppci_vendor_amd`); `UNKNOWN` for any other word."""
    return Vendor(next((row.vendor for row in rows("names.vendors") if word and row.profiler == word), "unknown"))


def find_idle_adapter(pci_id: str) -> Row | None:
    """Return the row of a display adapter that cannot compute, by its PCI id or vendor; None for any other.

    Its `kind` is "console" or "virtual".
    """
    adapters = {row.pci: row for row in rows("names.idle_adapters")}
    return adapters.get(pci_id) or adapters.get(pci_id.partition(":")[0])


def windows_release(build: int) -> str | None:
    """Return the name of the Windows that a build belongs to; None before Windows 10."""
    return next((row.name for row in rows("names.windows") if build >= row.build), None)

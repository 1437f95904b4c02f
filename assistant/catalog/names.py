"""Who and what the words and numbers of reports mean: vendors, systems, processors, adapters that cannot compute."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Literal

from assistant.catalog.tables import Table, read_tables
from assistant.model.machine import Vendor
from assistant.model.record import Record


class VendorRow(Record, frozen=True):
    """A maker of GPUs: its PCI id, whole words of its products' names, system_profiler's word for it.

    `mentions` are lower-case patterns of product names as they stand in the midst of a log.
    """

    vendor: Vendor
    pci: str | None = None
    words: tuple[str, ...] = ()
    profiler: str | None = None
    mentions: tuple[str, ...] = ()


class IdleAdapter(Record, frozen=True):
    """A display adapter without compute, by vendor (`1a03`) or device (`1002:515e`): a server's console or virtual."""

    pci: str
    maker: str
    kind: Literal["console", "virtual"]


class Named(Record, frozen=True):
    """A system or an architecture: the whole words and the patterns that name it, in any case.

    `hints` are lower-case patterns of what only its programs print: paths, wheel tags, errors; `spoken` of how people
    name it.
    """

    name: str
    words: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    spoken: tuple[str, ...] = ()


class WindowsName(Record, frozen=True):
    """The first build that bears a name, newest first."""

    build: int
    name: str


class NameTables(Record, frozen=True):
    """What reports call things; `products` are patterns of what begins a GPU's name, `others` of what is no GPU."""

    vendors: Table[VendorRow]
    idle_adapters: Table[IdleAdapter]
    idle_names: Table[str]
    systems: Table[Named]
    architectures: Table[Named]
    windows: Table[WindowsName]
    products: Table[str]
    others: Table[str]


def _tables() -> NameTables:
    return read_tables("names", NameTables)


@cache
def patterns(table: str) -> dict[str, re.Pattern[str]]:
    """Return what finds each row of a table by name, which is one of `rows` below; `idle_names` is one pattern.

    Letters are ASCII's: a Chinese character ends a word.
    """
    tables = _tables()
    systems, makers = tables.systems.rows, tables.vendors.rows
    rows = {
        "vendors": {row.vendor.value: _words(row.words) for row in makers},
        "mentions": {row.vendor.value: "|".join(row.mentions) for row in makers if row.mentions},
        "systems": {row.name: "|".join([*row.patterns, _words(row.words)]) for row in systems},
        "hints": {row.name: "|".join(row.hints) for row in systems},
        "spoken": {row.name: "|".join(row.spoken) for row in systems},
        "architectures": {row.name: _words(row.words) for row in tables.architectures.rows},
        "idle_names": {table: rf"\b(?:{'|'.join(map(re.escape, tables.idle_names.rows))})"},
    }[table]
    return {name: re.compile(pattern, re.IGNORECASE | re.ASCII) for name, pattern in rows.items()}


def _words(words: Iterable[str]) -> str:
    return rf"\b(?:{'|'.join(map(re.escape, words))})\b"


def _first_named(table: str, texts: Iterable[str]) -> str | None:
    return next((name for text in texts for name, found in patterns(table).items() if found.search(text)), None)


def system_of(*texts: str) -> str | None:
    """Return the system's family by the first text that names one."""
    return _first_named("systems", texts)


def arch_of(*texts: str) -> str | None:
    """Return the processor architecture by the first text that names one."""
    return _first_named("architectures", texts)


def vendor_of_name(name: str) -> Vendor:
    """Return who made a GPU, by the whole words of its name."""
    return Vendor(_first_named("vendors", [name]) or Vendor.UNKNOWN)


def vendor_of(pci_id: str | None) -> Vendor:
    """Return the vendor of a PCI id, `vendor:device` or `vendor`; `UNKNOWN` for none, `OTHER` for anyone else."""
    if not pci_id:
        return Vendor.UNKNOWN
    wanted = pci_id.partition(":")[0].lower().removeprefix("0x")
    return next((row.vendor for row in _tables().vendors.rows if row.pci == wanted), Vendor.OTHER)


def pci_id(vendor: Vendor, device: str | None) -> str | None:
    """Join a vendor's id and a device's (hex) to `vendor:device`; None without either."""
    maker = next((row.pci for row in _tables().vendors.rows if row.vendor is vendor), None)
    return f"{maker}:{device.lower():0>4}" if maker and device else None


def profiler_vendor(word: str) -> Vendor:
    """Return the vendor by system_profiler's word for it (`sppci_vendor_amd`)."""
    return next((row.vendor for row in _tables().vendors.rows if word and row.profiler == word), Vendor.UNKNOWN)


def idle_adapter(pci_id: str) -> IdleAdapter | None:
    """Return the display adapter without compute that has a PCI id."""
    known = {row.pci: row for row in _tables().idle_adapters.rows}
    return known.get(pci_id) or known.get(pci_id.partition(":")[0])


def windows_release(build: int) -> str | None:
    """Return the name of the Windows that a build belongs to; None before Windows 10."""
    return next((row.name for row in _tables().windows.rows if build >= row.build), None)


@cache
def products() -> re.Pattern[str]:
    """Return what finds the name of a GPU within a text, from its maker or its line on; the last words may be more."""
    lines = "|".join(_tables().products.rows)
    return re.compile(
        r"(?:(?<![\w-])(?:NVIDIA|AMD|ATI|Intel|Apple)(?:\(R\)|®)?(?: Corporation)? )?"
        rf"(?<![\w.+/-])(?:{lines})(?![a-z])(?:\(R\)|\(TM\)|\(tm\)|®|™)?(?:[ -]{{1,2}}[\w()+™®/.-]{{1,20}}){{0,8}}",
        re.IGNORECASE | re.ASCII,  # Chinese stands before and behind a name without a blank
    )


@cache
def other_devices() -> re.Pattern[str]:
    """Return what tells that a device is none of the GPUs: a processor, a sound card, a bridge."""
    return re.compile("|".join(_tables().others.rows), re.IGNORECASE)

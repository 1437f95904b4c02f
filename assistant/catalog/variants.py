"""What providers of wheel variants (PEP 825, 850) report of a machine, and which installers read variants."""

from __future__ import annotations

from functools import cache

from assistant.catalog.catalog import Number
from assistant.catalog.tables import Table, read_tables
from assistant.model.record import Record


class ProviderRow(Record, frozen=True):
    """A provider as a file of variants names it: its package, the object within, and the features that it reports.

    `version` is the one that was looked at, None where none is published; `uv` tells that uv has it built in.
    """

    namespace: str
    package: str
    plugin: str
    features: tuple[str, ...]
    version: str | None = None
    uv: bool = False


class CudaRange(Record, frozen=True):
    """The versions of CUDA that NVIDIA's provider knows, each major with each minor, and the least capability."""

    majors: tuple[int, int]
    minors: tuple[int, int]
    capability: Number


class IntelDevice(Record, frozen=True):
    """Intel's GPUs of one device IP by their PCI ids; `runs` is the base whose code they run, too."""

    ip: str
    ids: tuple[str, ...]
    runs: str | None = None


class AppleChip(Record, frozen=True):
    """The version of the ARM architecture that Apple's chips of one generation have."""

    chip: str
    version: str


class ArmVersions(Record, frozen=True):
    """Versions of the ARM architecture, newest first; each includes all that follow."""

    versions: tuple[str, ...]


class Level(Record, frozen=True):
    """A level of x86-64 above the first, and what a processor must have for it beyond the level before."""

    level: int
    flags: frozenset[str]


class Tool(Record, frozen=True):
    """An installer as it was tried, whether it reads variants, and the option that it needs for that."""

    tool: str
    version: str
    reads: bool
    option: str = ""


class VariantTables(Record, frozen=True):
    """The file of providers and of what they report."""

    providers: Table[ProviderRow]
    cuda: Table[CudaRange]
    intel: Table[IntelDevice]
    apple: Table[AppleChip]
    versions: Table[ArmVersions]
    levels: Table[Level]
    tools: Table[Tool]


def variant_tables() -> VariantTables:
    """Return the tables of variants."""
    return read_tables("variants", VariantTables)


@cache
def intel_ips() -> dict[str, tuple[str, ...]]:
    """Return the device IPs whose code a GPU of Intel runs, best first, by PCI device id."""
    rows = variant_tables().intel.rows
    return {device: (row.ip, *([row.runs] if row.runs else [])) for row in rows for device in row.ids}


def x86_level(flags: frozenset[str]) -> int:
    """Return the level of x86-64 that a processor with these flags (of /proc/cpuinfo) has."""
    level = 1
    for row in variant_tables().levels.rows:
        if not row.flags <= flags:
            break
        level = row.level
    return level

"""The support matrix: the best plan for each family of GPUs on each system."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from assistant.catalog import load_catalog
from assistant.catalog.tables import Table
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Plan
from assistant.model.record import Record, from_json, replace
from assistant.plan import make_plans

System = Literal["linux", "wsl", "windows", "macos"]
SYSTEMS: dict[System, Machine] = {
    "linux": Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12"),
    "wsl": Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12", wsl=True),
    "windows": Machine(os="windows", os_version="Windows 11 (build 26100)", arch="x86_64", python="3.12"),
    "macos": Machine(os="macos", os_version="macOS 15.5", arch="arm64", python="3.12"),
}
_DATA = Path(__file__).with_suffix(".json")


class Family(Record, frozen=True):
    """GPUs that get the same builds, with one card as their example; `vendor` is "" for a machine without a GPU."""

    family: str
    vendor: str
    name: str
    systems: tuple[System, ...]
    compute_capability: str | None = None
    gfx: str | None = None
    pci_id: str | None = None
    integrated: bool = False

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The example card as `Machine.gpus` has it."""
        if not self.vendor:
            return ()
        card = Gpu(
            vendor=Vendor(self.vendor),
            name=self.name,
            compute_capability=self.compute_capability,
            gfx=self.gfx,
            pci_id=self.pci_id,
            integrated=self.integrated,
        )
        return (card,)


class SupportTables(Record, frozen=True):
    """The tables of support.json."""

    families: Table[Family]


class Cell(Record, frozen=True):
    """The best plan for a family on a system with a current driver; None where that system never has such a card."""

    family: Family
    system: System
    plan: Plan | None = None


@cache
def _tables() -> SupportTables:
    return from_json(_DATA.read_bytes(), SupportTables, _DATA.name)


def matrix() -> tuple[Cell, ...]:
    """Plan for every family on every system with a current driver; families in order, then systems."""
    return tuple(_cell(family, system) for family in _tables().families.rows for system in SYSTEMS)


def _cell(family: Family, system: System) -> Cell:
    if system not in family.systems:
        return Cell(family=family, system=system)
    driver = "999.0" if family.vendor == Vendor.NVIDIA.value else None  # newer than any floor of the catalogue
    machine = replace(SYSTEMS[system], gpus=family.gpus, nvidia_driver=driver)
    return Cell(family=family, system=system, plan=make_plans(machine, load_catalog()).choice)

"""The support matrix: the best plan for GPUs on each system, what is known of workloads, and recipes on machines."""

from __future__ import annotations

from functools import cache
from typing import Literal

from assistant.catalog import load_catalog
from assistant.catalog.recipes import Recipe
from assistant.catalog.tables import Table, read_tables
from assistant.detect import detect
from assistant.host.recording import ReplayHost
from assistant.i18n import Message, Text, _
from assistant.machines import load, shipped
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan, Request
from assistant.model.record import Record, replace
from assistant.plan import make_plans
from assistant.views import rejection_reason

System = Literal["linux", "wsl", "windows", "macos"]
SYSTEMS: dict[System, Machine] = {
    "linux": Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12"),
    "wsl": Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12", wsl=True),
    "windows": Machine(os="windows", os_version="Windows 11 (build 26100)", arch="x86_64", python="3.12"),
    "macos": Machine(os="macos", os_version="macOS 15.5", arch="arm64", python="3.12"),
}
WORKLOADS = ("llm", "tts", "vocoder", "fine-tuning")


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


class Known(Record, frozen=True):
    """What is known of one workload on one backend: `verified` by us, `published` by others, or with `gaps`."""

    backend: Backend
    workload: str
    state: Literal["verified", "published", "gaps", "experimental"]
    source: str
    note: Text = ""


class SupportTables(Record, frozen=True):
    """The tables of catalog/data/support.json."""

    families: Table[Family]
    workloads: Table[Known]


class Cell(Record, frozen=True):
    """The best plan for a family on a system with a current driver; None where that system never has such a card."""

    family: Family
    system: System
    plan: Plan | None = None


Standing = Literal["works", "gaps", "none"]


def standing(cell: Cell) -> Standing:
    """Judge a cell with a plan: the GPU works, works with the gaps that its backend is known for, or is not used."""
    backend = cell.plan.backend if cell.plan else Backend.CPU
    if backend is Backend.CPU and cell.family.vendor:
        return "none"
    states = {known.state for known in _tables().workloads.rows if known.backend is backend}
    return "gaps" if states & {"gaps", "experimental"} else "works"


@cache
def _tables() -> SupportTables:
    return read_tables("support", SupportTables)


def matrix() -> tuple[Cell, ...]:
    """Plan for every family on every system with a current driver; families in order, then systems."""
    return tuple(_cell(family, system) for family in _tables().families.rows for system in SYSTEMS)


def _cell(family: Family, system: System) -> Cell:
    if system not in family.systems:
        return Cell(family=family, system=system)
    driver = "999.0" if family.vendor == Vendor.NVIDIA.value else None  # newer than any floor of the catalogue
    machine = replace(SYSTEMS[system], gpus=family.gpus, nvidia_driver=driver)
    return Cell(family=family, system=system, plan=make_plans(machine, load_catalog()).choice)


class Outcome(Record, frozen=True):
    """What a recipe gets on a shipped machine: the chosen `plan`, or why there is none."""

    recipe: str
    machine: str
    plan: Plan | None = None
    why: Text = ""


def outcomes(recipe: Recipe) -> tuple[Outcome, ...]:
    """Plan a recipe for every shipped machine; no index is asked."""
    return tuple(_outcome(recipe.key, name) for name in shipped())


def _outcome(key: str, name: str) -> Outcome:
    planning = make_plans(_machine(name), load_catalog(), Request(bundle=key))
    why = "" if planning.choice else rejection_reason(planning.rejected[0])
    return Outcome(recipe=key, machine=name, plan=planning.choice, why=why)


@cache
def _machine(name: str) -> Machine:
    return detect(ReplayHost(load(name))).machine


def workloads() -> dict[tuple[Backend, str], Known]:
    """Return what is known of each workload on each backend."""
    rows = _tables().workloads.rows
    return {
        (row.backend, row.workload): replace(row, note=_(row.note) if isinstance(row.note, str) and row.note else "")
        for row in rows
    }


_STATES = {
    "verified": _("verified"),
    "published": _("published"),
    "gaps": _("with gaps"),
    "experimental": _("experimental"),
}


def state_word(state: str) -> Message:
    """Return a workload's state as a word."""
    return _STATES[state]

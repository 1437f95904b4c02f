"""On how many machines a build was seen to compute right: what verifications of users have shown, and no more."""

from __future__ import annotations

from datetime import date
from functools import cache
from typing import Annotated, Literal, NamedTuple

import msgspec

from assistant.catalog.names import arch_of
from assistant.catalog.tables import Table, read_tables
from assistant.i18n import Text, _, ngettext
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan
from assistant.model.record import Record
from assistant.plan import architecture

System = Literal["linux", "wsl", "windows", "macos"]


class Case(NamedTuple):
    """What must be the same for one machine to speak for another: system, processor, GPU and build."""

    system: System
    arch: str
    architecture: str
    backend: Backend
    variant: str
    torch: str


class SeenRow(Record, frozen=True):
    """A build that was seen to work on one card: on how many `machines`, and the day of the last one.

    `architecture` is what decides which builds hold code for the card, such as "8.9" or "gfx1100"; it and `card` are ""
    where the CPU computed. `arch` is the processor's, "arm64" for each 64-bit ARM.
    """

    card: str
    architecture: str
    system: System
    arch: str
    backend: Backend
    variant: str
    torch: str
    last: date
    machines: Annotated[int, msgspec.Meta(ge=1)]

    @property
    def case(self) -> Case:
        """For which machines and which build the row speaks."""
        return Case(self.system, self.arch, self.architecture, self.backend, self.variant, self.torch)


class SeenTables(Record, frozen=True):
    """The table of catalog/data/seen.json."""

    seen: Table[SeenRow]


class Seen(Record, frozen=True, omit_defaults=False):
    """On how many machines a plan's build was seen to work, and the month of the last one; 0 and None for none yet."""

    machines: int
    last: str | None
    text: Text


def seen(machine: Machine, plan: Plan) -> Seen | None:
    """Return where a plan's build was seen to work on machines like this one.

    A machine is like another if its system, processor and GPU's architecture are the same: of these, None for one that
    is unknown, as nobody can tell then.
    """
    case = case_of(machine, plan)
    if case is None:
        return None
    rows = _by_case().get(case, ())
    if not rows:
        text = _("Not yet seen working on a machine of this kind; tell us with `assistant contribute`.")
        return Seen(machines=0, last=None, text=text)
    count, last = sum(row.machines for row in rows), f"{max(row.last for row in rows):%Y-%m}"
    told = ngettext(
        "Seen working on {count} machine of this kind, last in {month}.",
        "Seen working on {count} machines of this kind, last in {month}.",
        count,
        month=last,
    )
    return Seen(machines=count, last=last, text=told)


def case_of(machine: Machine, plan: Plan) -> Case | None:
    """Return what must be the same, None where a part of it is unknown."""
    arch, target = arch_of(machine.arch or ""), architecture(machine, plan.backend)
    if machine.os is None or arch is None or target is None:
        return None
    system: System = "wsl" if machine.wsl else machine.os  # unknown counts as no WSL, as the plan takes it
    return Case(system, "arm64" if arch == "aarch64" else arch, target, plan.backend, plan.variant, plan.torch)


@cache
def _by_case() -> dict[Case, tuple[SeenRow, ...]]:
    found: dict[Case, tuple[SeenRow, ...]] = {}
    for row in read_tables("seen", SeenTables).seen.rows:
        found[row.case] = (*found.get(row.case, ()), row)
    return found

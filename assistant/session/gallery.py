"""The recorded machines, each with what detection makes of it and the plans for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.host.recording import ReplayHost
from assistant.machines import load, shipped
from assistant.model.machine import Machine
from assistant.model.plan import Planning
from assistant.plan import make_plans


class Exhibit(NamedTuple):
    """One recorded machine: its name among the shipped ones, its facts and its plans."""

    name: str
    machine: Machine
    planning: Planning


def exhibits() -> Iterator[Exhibit]:
    """Yield every shipped machine by its name; no index is asked."""
    for name in shipped():
        machine = detect(ReplayHost(load(name))).machine
        yield Exhibit(name, machine, make_plans(machine, load_catalog()))

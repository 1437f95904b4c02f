"""The recorded machines with their facts and plans, to choose one from and to try what a change would bring."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.host.recording import ReplayHost
from assistant.i18n import render
from assistant.machines import label, load, shipped
from assistant.model.machine import Machine
from assistant.model.plan import Planning
from assistant.model.record import Record
from assistant.plan import make_plans


class Exhibit(Record, frozen=True):
    """One recorded machine: its name among the shipped ones, where it comes from, its facts and its plans."""

    name: str
    label: str
    origin: str
    machine: Machine
    planning: Planning

    @property
    def vendors(self) -> frozenset[str]:
        """The makers of its GPUs; "none" for a machine without any."""
        return frozenset(gpu.vendor.value for gpu in self.machine.gpus) or frozenset({"none"})


def exhibits() -> tuple[Exhibit, ...]:
    """Detect every shipped machine and plan for it, once; labels, and so the order, are in the language in force."""
    found = [
        Exhibit(
            name=name,
            label=render(label(name)),
            origin=load(name).origin,
            machine=_machine(name),
            planning=_planning(name),
        )
        for name in shipped()
    ]
    return tuple(sorted(found, key=lambda exhibit: exhibit.label))


@cache
def _machine(name: str) -> Machine:
    return detect(ReplayHost(load(name))).machine


@cache
def _planning(name: str) -> Planning:
    return make_plans(_machine(name), load_catalog())


def fitting(shown: Iterable[Exhibit], *, vendor: str = "", os: str = "", text: str = "") -> list[Exhibit]:
    """Filter by the GPUs' maker ("none": without a GPU), the operating system ("wsl" is one) and words of the label."""
    return [
        exhibit
        for exhibit in shown
        if (not vendor or vendor in exhibit.vendors)
        and (not os or os == ("wsl" if exhibit.machine.wsl else exhibit.machine.os))
        and text.lower() in f"{exhibit.label} {' '.join(gpu.name or '' for gpu in exhibit.machine.gpus)}".lower()
    ]


def changed(name: str, fact: str, value: str) -> tuple[Machine, Planning]:
    """Return a shipped machine with one fact changed, and its plans; raise `BadInput` for an unknown fact or value."""
    machine = detect(ReplayHost(load(name)), overrides={fact: value}).machine
    return machine, make_plans(machine, load_catalog())

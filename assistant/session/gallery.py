"""Every recorded machine with what it is and what it would get, for choosing one and for asking what a change opens."""

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
    """Look at every shipped machine and plan for it, by label."""
    return tuple(sorted(map(_exhibit, shipped()), key=lambda exhibit: exhibit.label))


def _exhibit(name: str) -> Exhibit:
    machine = _machine(name)
    recording = load(name)
    return Exhibit(
        name=name,
        label=render(label(name)),
        origin=recording.origin,
        machine=machine,
        planning=make_plans(machine, load_catalog()),
    )


@cache
def _machine(name: str) -> Machine:
    return detect(ReplayHost(load(name))).machine


def fitting(shown: Iterable[Exhibit], *, vendor: str = "", os: str = "", text: str = "") -> list[Exhibit]:
    """Keep those of a maker ("none": without a GPU), an operating system ("wsl" apart) and a piece of the label."""
    return [
        exhibit
        for exhibit in shown
        if (not vendor or vendor in exhibit.vendors)
        and (not os or os == ("wsl" if exhibit.machine.wsl else exhibit.machine.os))
        and text.lower() in f"{exhibit.label} {' '.join(gpu.name or '' for gpu in exhibit.machine.gpus)}".lower()
    ]


def changed(name: str, fact: str, value: str) -> tuple[Machine, Planning]:
    """Set one fact of a shipped machine and plan anew; raise `BadInput` for a fact or a value that there is not."""
    machine = detect(ReplayHost(load(name)), overrides={fact: value}).machine
    return machine, make_plans(machine, load_catalog())

"""What each kind of machine can run, and what would let it run more: worked out once for all machines alike."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import lru_cache

from assistant.catalog import load_catalog, number
from assistant.i18n import Text, _
from assistant.model.machine import Machine, Vendor
from assistant.model.plan import Backend, Plan, Planning, Request
from assistant.model.record import Record, from_json, replace, to_json
from assistant.plan import kind_of, make_plans
from assistant.session.doctor import is_mendable, planned

_KINDS = 4096  # chosen: kinds of machines that are kept, some 20 kB each
_TOO_OLD = "nvidia-driver-too-old"


class Gain(Enum):
    """What a machine gains, most first: torch at all, its GPU, a newer release of torch."""

    TORCH = "torch"
    GPU = "gpu"
    NEWER = "newer"


class Help(Record, frozen=True, omit_defaults=False):
    """A change to a machine that lets it run more: what to do, what is gained, and the build that it leads to.

    `key` is the planner's; `torch` is the release that the machine would get, "" where only its backend is certain.
    """

    key: str
    text: Text
    gain: Gain
    backend: Backend
    torch: str = ""


class Opening(Record, frozen=True):
    """What a driver from version `driver` on can run."""

    driver: str
    variant: str
    torch: str


class Kind(Record, frozen=True):
    """What machines of one kind get, and what would help them."""

    planning: Planning
    helps: tuple[Help, ...] = ()


def outlook_of(machine: Machine) -> Kind:
    """Return what a machine gets and what would help it; machines of one kind are planned once."""
    return _outlook_of(to_json(kind_of(machine)))


@lru_cache(maxsize=_KINDS)
def _outlook_of(text: str) -> Kind:
    machine = from_json(text, Machine, "machine")
    planning = planned(machine)
    return Kind(planning=planning, helps=tuple(_helps(machine, planning)))


def _helps(machine: Machine, planning: Planning) -> Iterator[Help]:
    """Yield the changes that the user can make, each with what the planner says that it opens."""
    choice, order = planning.choice, list(Backend)
    bare = choice is None or choice.backend is Backend.CPU
    for rejection in planning.rejected:
        above = choice is None or order.index(rejection.backend) < order.index(choice.backend)
        changes = rejection.key != _TOO_OLD and (choice is None or is_mendable(rejection))
        if bare and above and changes and rejection.would_help:
            gain = Gain.GPU if choice else Gain.TORCH
            yield Help(key=rejection.key, text=rejection.would_help, gain=gain, backend=rejection.backend)
    others = [one for one in planning.rejected if one.backend is Backend.CUDA and one.key != _TOO_OLD]
    if choice and (choice.backend is Backend.CUDA or (bare and not others)):
        yield from _newer_driver(machine, choice)


def _newer_driver(machine: Machine, choice: Plan) -> Iterator[Help]:
    """Yield the oldest NVIDIA driver with which the machine gets the newest torch that any driver lets it run."""
    found = _driver_openings(machine)
    best = max((number(one.torch) for one in found), default=())
    now = number(choice.torch) if choice.backend is Backend.CUDA else ()
    if best > now:
        one = next(opening for opening in found if number(opening.torch) == best)
        text = _("Update the NVIDIA driver to {driver} or newer.", driver=one.driver)
        gain = Gain.NEWER if now else Gain.GPU
        yield Help(key=_TOO_OLD, text=text, gain=gain, backend=Backend.CUDA, torch=one.torch)


def _driver_openings(machine: Machine) -> tuple[Opening, ...]:
    """Return the best CUDA plan under each driver that matters, oldest first; () without an NVIDIA GPU.

    Machines that differ in their driver alone are planned once.
    """
    cards = tuple(replace(gpu, driver=None) for gpu in machine.gpus if gpu.vendor is Vendor.NVIDIA)
    if not cards or machine.os not in {"linux", "windows"}:
        return ()
    no_driver = dict.fromkeys(("nvidia_driver", "nvidia_driver_state", "nvidia_smi_output", "cuda_driver_api"))
    return _openings(to_json(replace(kind_of(machine), gpus=cards, **no_driver)))


@lru_cache(maxsize=1024)
def _openings(text: str) -> tuple[Opening, ...]:
    """Return the openings of a machine without a driver."""
    bare = from_json(text, Machine, "machine")
    found: list[Opening] = []
    # Every driver of the catalogue from which some build runs, or runs fully; WSL has the driver of Windows.
    windows = bare.os == "windows" or bare.wsl
    rows = load_catalog().cuda.drivers.rows
    named = [(row.windows, row.full_windows) if windows else (row.linux, row.full_linux) for row in rows]
    for driver in sorted({text for pair in named for text in pair if text}, key=number):
        choice = make_plans(replace(bare, nvidia_driver=driver), load_catalog(), Request()).choice
        if choice and choice.backend is Backend.CUDA:
            last = found[-1] if found else None
            if last is None or (last.variant, last.torch) != (choice.variant, choice.torch):
                found.append(Opening(driver=driver, variant=choice.variant, torch=choice.torch))
    return tuple(found)

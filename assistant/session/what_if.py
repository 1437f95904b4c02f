"""What-if queries on the planner: each GPU alone, and each NVIDIA driver that matters."""

from __future__ import annotations

from functools import lru_cache

from assistant.catalog import load_catalog, number
from assistant.i18n import Text
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan, Request
from assistant.model.record import Record, from_json, replace, to_json
from assistant.plan import kind_of, make_plans


class CardOutlook(Record, frozen=True):
    """One GPU alone: the plans that use it, best first; where there is none, why not and what would help."""

    gpu: Gpu
    plans: tuple[Plan, ...] = ()
    why: Text = ""
    would_help: Text = ""


class Opening(Record, frozen=True):
    """What a driver from version `driver` on can run; `reached` when the machine's driver is that new."""

    driver: str
    variant: str
    torch: str
    reached: bool


class Outlook(Record, frozen=True):
    """What a machine's GPUs can run, and what each NVIDIA driver would let them run."""

    cards: tuple[CardOutlook, ...] = ()
    openings: tuple[Opening, ...] = ()


def outlook(machine: Machine) -> Outlook:
    """Return both for a machine; the answer is cached, as views ask whenever they are drawn."""
    return _asked(to_json(replace(machine, evidence=())))


@lru_cache(maxsize=8)
def _asked(text: str) -> Outlook:
    machine = from_json(text, Machine, "machine")
    cards = tuple(_card_outlook(gpu, machine) for gpu in dict.fromkeys(machine.gpus))
    return Outlook(cards=cards, openings=openings(machine))


def _card_outlook(gpu: Gpu, machine: Machine) -> CardOutlook:
    """Plan for one kind of GPU as if there were no other."""
    planning = make_plans(replace(machine, gpus=(gpu,)), load_catalog(), Request())
    plans = tuple(plan for plan in planning.plans if plan.backend is not Backend.CPU)
    against = next((row for row in planning.rejected if not plans), None)
    return CardOutlook(
        gpu=gpu,
        plans=plans,
        why=against.why if against else "",
        would_help=against.would_help if against else "",
    )


def openings(machine: Machine) -> tuple[Opening, ...]:
    """Return the best CUDA plan under each driver that matters, oldest first; () without an NVIDIA GPU.

    Machines that differ in their driver alone are planned once.
    """
    cards = tuple(replace(gpu, driver=None) for gpu in machine.gpus if gpu.vendor is Vendor.NVIDIA)
    if not cards or machine.os not in {"linux", "windows"}:
        return ()
    no_driver = dict.fromkeys(("nvidia_driver", "nvidia_driver_state", "nvidia_smi_output", "cuda_driver_api"))
    here = number(machine.nvidia_driver)
    found = _openings(to_json(replace(kind_of(machine), gpus=cards, **no_driver)))
    return tuple(replace(one, reached=bool(here) and here >= number(one.driver)) for one in found)


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
                found.append(Opening(driver=driver, variant=choice.variant, torch=choice.torch, reached=False))
    return tuple(found)

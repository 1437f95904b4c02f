"""What each graphics card of a machine can run, and what another NVIDIA driver would open: asked of the planner."""

from __future__ import annotations

from functools import lru_cache

from assistant.catalog import load_catalog, number
from assistant.i18n import Text
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan, Request
from assistant.model.record import Record, from_json, replace, to_json
from assistant.plan import make_plans


class CardOutlook(Record, frozen=True):
    """One card alone: the plans that use it, best first; where there is none, why not and what would help."""

    gpu: Gpu
    plans: tuple[Plan, ...] = ()
    why: Text = ""
    would_help: Text = ""


class Opening(Record, frozen=True):
    """What a driver from `driver` on opens: a build and the torch that comes with it; `reached` when it is there."""

    driver: str
    variant: str
    torch: str
    reached: bool


class Outlook(Record, frozen=True):
    """What a machine's cards can run, and what its NVIDIA driver opens."""

    cards: tuple[CardOutlook, ...] = ()
    openings: tuple[Opening, ...] = ()


def outlook(machine: Machine) -> Outlook:
    """Ask both; the answer is remembered, as views ask again whenever they are drawn."""
    return _asked(to_json(replace(machine, evidence=())))


@lru_cache(maxsize=8)
def _asked(text: str) -> Outlook:
    machine = from_json(text, Machine, "machine")
    return Outlook(cards=card_outlooks(machine), openings=driver_openings(machine))


def card_outlooks(machine: Machine) -> tuple[CardOutlook, ...]:
    """Plan for each kind of card as if there were no other."""
    return tuple(_outlook(gpu, replace(machine, gpus=(gpu,))) for gpu in dict.fromkeys(machine.gpus))


def _outlook(gpu: Gpu, alone: Machine) -> CardOutlook:
    planning = make_plans(alone, load_catalog(), Request())
    plans = tuple(plan for plan in planning.plans if plan.backend is not Backend.CPU)
    against = next((row for row in planning.rejected if not plans), None)
    return CardOutlook(
        gpu=gpu,
        plans=plans,
        why=against.why if against else "",
        would_help=against.would_help if against else "",
    )


def driver_openings(machine: Machine) -> tuple[Opening, ...]:
    """Ask for the best CUDA plan under each driver that matters, oldest first; () for a machine without such a card."""
    cards = tuple(replace(gpu, driver=None) for gpu in machine.gpus if gpu.vendor is Vendor.NVIDIA)
    if not cards or machine.os not in {"linux", "windows"}:
        return ()
    bare = replace(machine, gpus=cards, nvidia_driver_state=None, nvidia_smi_output=None, cuda_driver_api=None)
    here = number(machine.nvidia_driver)
    openings: list[Opening] = []
    for driver in _floors(machine):
        choice = make_plans(replace(bare, nvidia_driver=driver), load_catalog(), Request()).choice
        if choice and choice.backend is Backend.CUDA:
            found = Opening(
                driver=driver, variant=choice.variant, torch=choice.torch, reached=bool(here) and here >= number(driver)
            )
            last = openings[-1] if openings else None
            if last is None or (last.variant, last.torch) != (found.variant, found.torch):
                openings.append(found)
    return tuple(openings)


def _floors(machine: Machine) -> list[str]:
    """List every driver of the catalogue from which some build runs or runs fully; WSL borrows that of Windows."""
    windows = machine.os == "windows" or machine.wsl
    rows = load_catalog().cuda.drivers.rows
    named = [(row.windows, row.full_windows) if windows else (row.linux, row.full_linux) for row in rows]
    return sorted({text for pair in named for text in pair if text}, key=number)

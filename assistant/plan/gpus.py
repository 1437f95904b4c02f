"""The GPUs of a machine with what the identity tables add, and the state of its NVIDIA driver."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from assistant.catalog import Catalog, GpuIdentity, Number, identified, number, vendor_of
from assistant.catalog.tables import Row
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend


class Card(NamedTuple):
    """One GPU: `capability` and `gfx` from the machine's facts, else from the tables; `identity` None when unknown.

    `memory` is its own in GiB, None where it is unknown or shared with the processor.
    """

    vendor: Vendor
    name: str
    capability: Number
    gfx: str | None
    integrated: bool
    identity: GpuIdentity | None
    memory: float | None = None


def cards_of(machine: Machine) -> tuple[Card, ...]:
    """Return the GPUs of a machine, each completed from the identity tables."""
    return tuple(map(_card, machine.gpus))


@lru_cache(maxsize=8192)  # far above the kinds of cards that one fleet has
def _card(gpu: Gpu) -> Card:
    vendor = gpu.vendor
    if vendor in (Vendor.UNKNOWN, Vendor.OTHER) and gpu.pci_id:
        vendor = vendor_of(gpu.pci_id)
    needs = {Vendor.NVIDIA: not gpu.compute_capability, Vendor.AMD: not gpu.gfx or gpu.integrated is None}
    identity = identified(gpu) if needs.get(vendor, True) else None
    if vendor is Vendor.UNKNOWN and identity:
        vendor = identity.vendor
    stated = gpu.compute_capability or (identity and identity.compute_capability)
    capability = stated or (identity and next(reversed(identity.candidates), None)) or ""
    digits = number(capability)  # of "8.6", and of "sm_86" or "86" too
    integrated = bool(identity and identity.integrated) if gpu.integrated is None else gpu.integrated
    return Card(
        vendor=vendor,
        name=gpu.name or (identity.name if identity else gpu.pci_id) or vendor.value,
        capability=(digits[0] // 10, digits[0] % 10) if len(digits) == 1 else digits,
        gfx=_target(gpu, identity) or None,
        integrated=integrated,
        identity=identity,
        memory=None if integrated else gpu.vram_gb,
    )


def _target(gpu: Gpu, identity: GpuIdentity | None) -> str:
    """Return an AMD card's target; a name may hold it, as "AMD Radeon 8060S (gfx1151)" does; "" for unknown."""
    named = re.search(r"\bgfx\d{3,4}[a-c]?\b", gpu.name or "")
    target = gpu.gfx or (identity.gfx if identity else None) or (named[0] if named else "")
    return target.lower().partition(":")[0]


_MAKERS = {
    Backend.CUDA: (Vendor.NVIDIA,),
    Backend.ROCM: (Vendor.AMD,),
    Backend.XPU: (Vendor.INTEL,),
    Backend.MPS: (Vendor.APPLE, Vendor.AMD),
    Backend.DIRECTML: (Vendor.AMD, Vendor.INTEL, Vendor.NVIDIA),
}
_MARKS = re.compile(r"\((?:R|C|TM)\)|^(?:NVIDIA|AMD|Intel)\b|\bGraphics$", re.IGNORECASE)
_LONGEST_NAME = 40  # chosen: characters that a tile of JupyterLab's launcher shows in two lines


def driven_by(card: Card, backend: Backend) -> bool:
    """Return whether a card is of a maker whose cards a backend drives."""
    return card.vendor in _MAKERS.get(backend, ())


def card_name(machine: Machine, backend: Backend) -> str:
    """Return the GPU that a backend computes on, as people call it; "" where none is known or the CPU computes.

    "Intel(R) Arc(TM) B580 Graphics" is "Arc B580".
    """
    driven = (card for card in cards_of(machine) if driven_by(card, backend))
    card = min(driven, key=lambda card: card.integrated, default=None)  # a card of its own before the processor's
    return called(card) if card else ""


def called(card: Card) -> str:
    """Return a GPU's name as people say it."""
    name = "".join(filter(str.isprintable, card.name))
    return " ".join(_MARKS.sub(" ", name).split())[:_LONGEST_NAME].strip()


class Driver(NamedTuple):
    """The NVIDIA driver: its version, the CUDA API it speaks, and the obstacle where it is known not to be ready.

    The obstacle's `text` says what it means, `help` what to do, `wsl_help` what to do in WSL where that differs.
    """

    version: Number
    api: Number
    obstacle: Row | None
    text: str = ""


def driver_of(machine: Machine, catalog: Catalog) -> Driver:
    """Read the driver off the machine's facts, or off nvidia-smi's own text ("CUDA UMD Version" since driver 610)."""
    text = machine.nvidia_smi_output or ""
    cards = " ".join(gpu.driver or "" for gpu in machine.gpus if gpu.vendor is Vendor.NVIDIA)
    version = _nvidia_number(machine.nvidia_driver or "") or _after("Driver Version|KMD Version", text)
    version = version or _after("NVIDIA-SMI", text) or _first_version(cards) or _first_version(text)
    api = machine.cuda_driver_api or _after(r"CUDA(?: UMD)? Version", text)
    name = version or (api and f"CUDA {api}") or ""
    state = machine.nvidia_driver_state or ("nouveau" if "nouveau" in cards else "")
    state = state or (text.partition("|===")[0] if "Driver Version" in text else text)
    rows = (row for row in catalog.rows("cuda.states") if re.search(row.words, state, re.IGNORECASE))
    # A driver whose version is known is loaded, whatever else a text says is missing.
    obstacle = next((row for row in rows if not (name and row.key == "nvidia-missing")), None)
    return Driver(number(version), number(api), obstacle, name)


def _nvidia_number(text: str) -> str:
    """Turn Windows' number of a driver into NVIDIA's own: 32.0.15.7652 is 576.52."""
    return re.sub(r"\b\d+\.\d+\.\d*(\d)\.(\d{2})(\d{2})\b", r"\1\2.\3", text)


def _first_version(text: str) -> str | None:
    found = re.search(r"\b\d{3}\.[\d.]+", _nvidia_number(text))
    return found[0] if found else None


def _after(label: str, text: str) -> str | None:
    found = re.search(rf"(?:{label})\s*:?\s*v?(\d[\d.]*)", text)
    return found[1] if found else None

"""The GPUs of a machine with what the identity tables add, and whether the machine lets torch see them."""

from __future__ import annotations

import re
from typing import NamedTuple

from assistant.catalog import Catalog, GpuIdentity, Number, identified, number, vendor_of
from assistant.catalog.rows import DriverState
from assistant.model.machine import Gpu, Machine, Vendor


class Card(NamedTuple):
    """One GPU: `capability` and `gfx` from the machine's facts, else from the tables; `identity` None when unknown."""

    vendor: Vendor
    name: str
    capability: Number
    gfx: str | None
    integrated: bool
    identity: GpuIdentity | None


_KNOWN: dict[tuple[object, ...], Card] = {}


def cards_of(machine: Machine) -> tuple[Card, ...]:
    """List the GPUs of a machine."""
    return tuple(map(known_card, machine.gpus))


def known_card(gpu: Gpu) -> Card:
    """Complete one GPU's facts from the identity tables."""
    key = (gpu.vendor, gpu.name, gpu.pci_id, gpu.compute_capability, gpu.gfx, gpu.integrated)
    if key not in _KNOWN:
        if len(_KNOWN) > 8192:  # noqa: PLR2004 - far above the cards there are
            _KNOWN.clear()
        _KNOWN[key] = _card(gpu)
    return _KNOWN[key]


def _card(gpu: Gpu) -> Card:
    vendor = gpu.vendor
    if vendor in (Vendor.UNKNOWN, Vendor.OTHER) and gpu.pci_id:
        vendor = vendor_of(gpu.pci_id)
    needs = {Vendor.NVIDIA: not gpu.compute_capability, Vendor.AMD: not gpu.gfx or gpu.integrated is None}
    identity = identified(gpu) if needs.get(vendor, True) else None
    if vendor is Vendor.UNKNOWN and identity:
        vendor = identity.vendor
    capability = gpu.compute_capability or (identity and (identity.compute_capability or identity.candidates[-1:]))
    return Card(
        vendor=vendor,
        name=gpu.name or (identity.name if identity else gpu.pci_id) or vendor.value,
        capability=_capability(capability),
        gfx=(gpu.gfx or (identity.gfx if identity else None) or "").lower().partition(":")[0] or None,
        integrated=bool(identity and identity.integrated) if gpu.integrated is None else gpu.integrated,
        identity=identity,
    )


def _capability(value: object) -> Number:
    """Read "8.6" as (8, 6), and "sm_86" or "86" too."""
    text = value[0] if isinstance(value, tuple) and value else value
    if not isinstance(text, str):
        return ()
    digits = number(text)
    return digits if len(digits) > 1 else (digits[0] // 10, digits[0] % 10) if digits else ()


class Driver(NamedTuple):
    """The NVIDIA driver: its version, the CUDA API it speaks, and the obstacle where it is known not to be ready."""

    version: Number
    api: Number
    obstacle: DriverState | None
    text: str = ""


def driver_of(machine: Machine, catalog: Catalog) -> Driver:
    """Read the driver off the machine's facts, or off nvidia-smi's own text ("CUDA UMD Version" since driver 610)."""
    text = machine.nvidia_smi_output or ""
    cards = " ".join(gpu.driver or "" for gpu in machine.gpus if gpu.vendor is Vendor.NVIDIA)
    version = _plain(machine.nvidia_driver or "") or _after("Driver Version|KMD Version", text)
    version = version or _after("NVIDIA-SMI", text) or _of_card(cards) or _of_card(text)
    api = machine.cuda_driver_api or _after(r"CUDA(?: UMD)? Version", text)
    known = version or (api and f"CUDA {api}") or ""
    told = machine.nvidia_driver_state or ("nouveau" if "nouveau" in cards else "")
    told = told or (text.partition("|===")[0] if "Driver Version" in text else text)
    return Driver(number(version), number(api), _obstacle(told, catalog, known=bool(known)), known)


def _plain(text: str) -> str:
    """Turn the way Windows numbers drivers into NVIDIA's own: 32.0.15.7652 is 576.52."""
    return re.sub(r"\b\d+\.\d+\.\d*(\d)\.(\d{2})(\d{2})\b", r"\1\2.\3", text)


def _of_card(text: str) -> str | None:
    plain = re.search(r"\b\d{3}\.[\d.]+", _plain(text))
    return plain[0] if plain else None


def _after(label: str, text: str) -> str | None:
    found = re.search(rf"(?:{label})\s*:?\s*v?(\d[\d.]*)", text)
    return found[1] if found else None


def _obstacle(told: str, catalog: Catalog, *, known: bool) -> DriverState | None:
    """Find what a state or a tool's complaint means; a driver whose version is known is loaded."""
    rows = (row for row in catalog.cuda.states.rows if re.search(row.words, told, re.IGNORECASE))
    return next((row for row in rows if not (known and row.key == "nvidia-missing")), None)


def hidden_by(vendor: Vendor, machine: Machine, catalog: Catalog) -> str | None:
    """Name the setting that hides every GPU of a vendor from torch, such as `CUDA_VISIBLE_DEVICES=-1`."""
    for row in catalog.systems.hiding.rows:
        value = machine.env.get(row.variable) if vendor.value in row.vendors else None
        if value is not None and value.split(",")[0].strip().lower() in _NOTHING:
            return f"{row.variable}={value}"
    return None


_NOTHING = {"", "-1", "none", "void", "nodevfiles"}  # a list of devices ends at the first that is none

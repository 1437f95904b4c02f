"""Readers of the JSON that the vendors' management tools print: `amd-smi static` and `xpu-smi discovery`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from assistant.catalog.names import pci_id
from assistant.model.machine import Gpu, Vendor
from assistant.model.record import Record
from assistant.parsers.fields import gib

_DEEPEST = 6  # both tools nest less; a hostile text could nest without end
_BDF = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


class SmiDevice(Record, frozen=True):
    """One GPU as its vendor's tool tells it; `index` is the tool's own number."""

    gpu: Gpu
    bus: str | None = None
    index: int | None = None


# {"gpu_data": [{"gpu": 0,
#     "asic": {"market_name": "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M]", "vendor_id": "0x1002",
#              "device_id": "0x744c", "target_graphics_version": "gfx1100"},
#     "bus": {"bdf": "0000:03:00.0"}}]}
def amd_smi(text: str) -> tuple[SmiDevice, ...] | None:
    """Read `amd-smi static --asic --bus --vram --json`, a list or, since ROCm 7, an object that holds one."""
    return tuple(_amd(told) for told in _objects(text) if _part(told, "asic")) or None


def _amd(told: dict[str, object]) -> SmiDevice:
    asic, size = _part(told, "asic"), _part(told, "vram").get("size")
    target = str(asic.get("target_graphics_version")).lower()
    device = _hex(asic.get("device_id"))
    gpu = Gpu(
        vendor=Vendor.AMD,
        name=None if device else _text(asic.get("market_name")),  # by its id the catalogue names one card, not five
        gfx=target if re.fullmatch(r"gfx[0-9a-f]{3,4}", target) else None,
        pci_id=pci_id(Vendor.AMD, device),
        vram_gb=_gib(size),
    )
    return SmiDevice(gpu, _bus(_part(told, "bus").get("bdf")), _number(told.get("gpu")))


# {"device_id": 0,
#     "device_name": "Intel(R) Arc(TM) A770 Graphics",
#     "pci_bdf_address": "0000:03:00.0",
#     "pci_device_id": "0x56a0",
#     "memory_physical_size_byte": "16225243136"}
def xpu_smi(text: str) -> tuple[SmiDevice, ...] | None:
    """Read `xpu-smi discovery -j`, with or without `-d N`; only the latter tells the memory."""
    found = [told for told in _objects(text) if "pci_bdf_address" in told]
    return tuple(map(_intel, found)) or None


def _intel(told: dict[str, object]) -> SmiDevice:
    device, size = _hex(told.get("pci_device_id")), _number(told.get("memory_physical_size_byte"))
    gpu = Gpu(
        vendor=Vendor.INTEL,
        name=None if device else _text(told.get("device_name")),
        pci_id=pci_id(Vendor.INTEL, device),
        vram_gb=round(size / 2**30, 1) if size else None,
        driver=_text(told.get("driver_version")),
    )
    return SmiDevice(gpu, _bus(told["pci_bdf_address"]), _number(told.get("device_id")))


def _objects(text: str) -> Iterator[dict[str, object]]:
    """Give every object in a text that is JSON but for what a tool prints before it."""
    start = min((at for at in map(text.find, "[{") if at >= 0), default=None)
    if start is None:
        return
    try:
        values = [msgspec.json.decode(text[start:])]
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return
    for _depth in range(_DEEPEST):
        yield from (value for value in values if isinstance(value, dict))
        values = [inner for value in values for inner in _inner(value)]


def _inner(value: object) -> list[object]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _part(told: dict[str, object], name: str) -> dict[str, object]:
    part = told.get(name)
    return part if isinstance(part, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value not in {"", "N/A"} else None


def _number(value: object) -> int | None:
    """Read a number that some releases print as a text."""
    return int(value) if isinstance(value, int | str) and re.fullmatch(r"[0-9]{1,18}", str(value)) else None


def _hex(value: object) -> str | None:
    found = re.fullmatch(r"(?:0x)?([0-9a-f]{4})", str(value).lower())
    return found[1] if found else None


def _bus(value: object) -> str | None:
    address = str(value).lower()
    return address if _BDF.fullmatch(address) else None


def _gib(size: object) -> float | None:
    """Read a size in MB of 2**20 bytes: a number, or since ROCm 6.1 an object with value and unit."""
    told = size.get("value") if isinstance(size, dict) else str(size).removesuffix(" MB")
    return gib(_number(told))

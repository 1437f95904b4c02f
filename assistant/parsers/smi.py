"""Readers of the JSON that the vendors' management tools print: `amd-smi static` and `xpu-smi discovery`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from assistant.catalog.names import pci_id
from assistant.model.machine import Gpu, Vendor
from assistant.parsers.cards import Device, bus_address, gib

_DEEPEST = 6  # both tools nest less; a hostile text could nest without end


# {"gpu_data": [{"gpu": 0,
#     "asic": {"market_name": "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M]", "vendor_id": "0x1002",
#              "device_id": "0x744c", "target_graphics_version": "gfx1100"},
#     "bus": {"bdf": "0000:03:00.0"}}]}
def amd_smi(text: str) -> tuple[Device, ...] | None:
    """Read `amd-smi static --asic --bus --vram --json`, a list or, since ROCm 7, an object that holds one."""
    return tuple(_amd(values) for values in _objects(text) if _part(values, "asic")) or None


def _amd(values: dict[str, object]) -> Device:
    asic, size = _part(values, "asic"), _part(values, "vram").get("size")
    target = str(asic.get("target_graphics_version")).lower()
    device = _hex(asic.get("device_id"))
    # In MB of 2**20 bytes: a number, or since ROCm 6.1 an object with value and unit.
    megabytes = size.get("value") if isinstance(size, dict) else str(size).removesuffix(" MB")
    gpu = Gpu(
        vendor=Vendor.AMD,
        name=None if device else _text(asic.get("market_name")),  # by its id the catalogue names one card, not five
        gfx=target if re.fullmatch(r"gfx[0-9a-f]{3,4}", target) else None,
        pci_id=pci_id(Vendor.AMD, device),
        vram_gb=gib(_number(megabytes)),
    )
    return Device(gpu=gpu, bus=bus_address(str(_part(values, "bus").get("bdf"))), index=_number(values.get("gpu")))


# {"device_id": 0,
#     "device_name": "Intel(R) Arc(TM) A770 Graphics",
#     "pci_bdf_address": "0000:03:00.0",
#     "pci_device_id": "0x56a0",
#     "memory_physical_size_byte": "16225243136"}
def xpu_smi(text: str) -> tuple[Device, ...] | None:
    """Read `xpu-smi discovery -j`, with or without `-d N`; only the latter reports the memory."""
    return tuple(_intel(values) for values in _objects(text) if "pci_bdf_address" in values) or None


def _intel(values: dict[str, object]) -> Device:
    device, size = _hex(values.get("pci_device_id")), _number(values.get("memory_physical_size_byte"))
    gpu = Gpu(
        vendor=Vendor.INTEL,
        name=None if device else _text(values.get("device_name")),
        pci_id=pci_id(Vendor.INTEL, device),
        vram_gb=round(size / 2**30, 1) if size else None,
        driver=_text(values.get("driver_version")),
    )
    return Device(gpu=gpu, bus=bus_address(str(values["pci_bdf_address"])), index=_number(values.get("device_id")))


def _objects(text: str) -> Iterator[dict[str, object]]:
    """Yield every object in a text that is JSON but for what a tool prints before it."""
    start = min((at for at in map(text.find, "[{") if at >= 0), default=None)
    if start is None:
        return
    try:
        values = [msgspec.json.decode(text[start:])]
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return
    for _depth in range(_DEEPEST):
        yield from (value for value in values if isinstance(value, dict))
        within = (
            value.values() if isinstance(value, dict) else value for value in values if isinstance(value, dict | list)
        )
        values = [inner for items in within for inner in items]


def _part(values: dict[str, object], name: str) -> dict[str, object]:
    part = values.get(name)
    return part if isinstance(part, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value not in {"", "N/A"} else None


def _number(value: object) -> int | None:
    """Read a number that some releases print as a text."""
    return int(value) if isinstance(value, int | str) and re.fullmatch(r"[0-9]{1,18}", str(value)) else None


def _hex(value: object) -> str | None:
    found = re.fullmatch(r"(?:0x)?([0-9a-f]{4})", str(value).lower())
    return found[1] if found else None

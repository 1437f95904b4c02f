"""Readers of what macOS's system_profiler prints, as JSON or as text."""

from __future__ import annotations

import json
import re

from assistant.catalog.names import pci_id, profiler_vendor, vendor_of_name
from assistant.model.machine import Gpu, Vendor


# {"SPDisplaysDataType": [
#     {"_name": "Intel Iris Plus Graphics",
#      "_spdisplays_vram": "1536 MB",
#      "spdisplays_device-id": "0x8a53",
#      "spdisplays_vendor": "Intel",
#      "spdisplays_vram_shared": "1536 MB",
#      "sppci_model": "Intel Iris Plus Graphics"}]}
def profiler_json(text: str) -> tuple[Gpu, ...] | None:
    """Read the GPUs off `system_profiler -json SPDisplaysDataType`; None when it is no such text."""
    start = text.rfind("{", 0, max(text.find('"SPDisplaysDataType"'), 0))
    try:
        told = json.JSONDecoder().raw_decode(text, start)[0]["SPDisplaysDataType"]  # whatever stands behind it
    except (ValueError, KeyError, IndexError, RecursionError):
        return None
    cards = [card for card in told if isinstance(card, dict)] if isinstance(told, list) else []
    return tuple(_card({str(name): str(value) for name, value in card.items()}) for card in cards)


def _card(told: dict[str, str]) -> Gpu:
    name = told.get("sppci_model") or told.get("_name") or ""
    size = told.get("spdisplays_vram") or told.get("_spdisplays_vram") or ""
    vendor = profiler_vendor(told.get("spdisplays_vendor", ""))
    return _gpu(name, vendor, told.get("spdisplays_device-id", ""), size, "spdisplays_vram_shared" in told)


def _gpu(name: str, vendor: Vendor, device: str, size: str, shared: bool) -> Gpu:  # noqa: FBT001
    vendor = vendor if vendor is not Vendor.UNKNOWN else vendor_of_name(name)
    number = re.match(r"(\d{1,6}) ?([GM])B", size)
    device = device.lower().removeprefix("0x")
    return Gpu(
        vendor=vendor,
        name=name or None,
        pci_id=pci_id(vendor, device) if re.fullmatch(r"[0-9a-f]{4}", device) else None,
        vram_gb=round(int(number[1]) / (1 if number[2] == "G" else 1024), 1) if number else None,
        integrated=True if shared or vendor is Vendor.APPLE else None,
    )


_HEADING = re.compile(r"^ {4}(?=\S)[^\n]{1,80}:[ \t]{0,40}$", re.MULTILINE)


# Graphics/Displays:
#
#     Radeon Pro 560X:
#
#       Chipset Model: Radeon Pro 560X
#       VRAM (Total): 4 GB
#       Vendor: AMD (0x1002)
#       Device ID: 0x67ef
def profiler_text(text: str) -> tuple[Gpu, ...] | None:
    """Read the GPUs off the text of `system_profiler SPDisplaysDataType`; None when it is no such text."""
    start = text.find("Graphics/Displays:")
    if start < 0:
        return None
    section = re.split(
        r"^\S[^\n]{0,80}:[ \t]{0,40}$", text[start + len("Graphics/Displays:") :], maxsplit=1, flags=re.MULTILINE
    )[0]
    blocks = _HEADING.split(section)[1:]
    return tuple(filter(None, map(_block, blocks)))


def _block(block: str) -> Gpu | None:
    told: dict[str, str] = dict(re.findall(r"^ {6}(\w[\w ,()-]{1,40}): ([^\n]{1,100})$", block, re.MULTILINE))
    name = told.get("Chipset Model")
    if not name:
        return None
    size = next((value for field, value in told.items() if field.startswith("VRAM")), "")
    shared = any("Dynamic" in field or "Shared" in field for field in told)
    return _gpu(name, vendor_of_name(told.get("Vendor", name)), told.get("Device ID", ""), size, shared)


#     Hardware Overview:
#
#       Model Name: MacBook Pro
#       Processor Name: 6-Core Intel Core i7
#       Memory: 16 GB
# and, on another Mac:
#       System Version: macOS 15.1 (24B83)
def overview(text: str) -> dict[str, object]:
    """Read system facts off the text of system_profiler's hardware and software parts, named as in `Machine`."""
    version = re.search(r"^[ \t]{0,40}System Version: macOS ([\d.]{2,12})", text, re.MULTILINE)
    chip = re.search(r"^[ \t]{0,40}Chip: (Apple M[^\n]{1,30})$", text, re.MULTILINE)
    intel = re.search(r"^[ \t]{0,40}Processor Name: [^\n]{0,40}Intel", text, re.MULTILINE)
    memory = re.search(r"^[ \t]{0,40}Memory: (\d{1,5}) GB[ \t]{0,40}$", text, re.MULTILINE)
    told = {
        "os_version": f"macOS {version[1]}" if version else None,
        "arch": "arm64" if chip else "x86_64" if intel else None,
        "memory_gb": float(memory[1]) if memory else None,
    }
    return {name: value for name, value in told.items() if value is not None}

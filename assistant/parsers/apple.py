"""Readers of what macOS's system_profiler prints, as JSON or as text."""

from __future__ import annotations

import re

from assistant.catalog.identity import pci_id, profiler_vendor, vendor_of_name
from assistant.model.machine import Gpu, Vendor
from assistant.parsers import Device, Reading


# {"SPDisplaysDataType": [
#     {"_name": "Intel Iris Plus Graphics",
#      "_spdisplays_vram": "1536 MB",
#      "spdisplays_device-id": "0x8a53",
#      "spdisplays_vendor": "Intel",
#      "spdisplays_vram_shared": "1536 MB",
#      "sppci_model": "Intel Iris Plus Graphics"}]}
def read_profiler_json(text: str) -> tuple[Gpu, ...] | None:
    """Return the GPUs in the output of `system_profiler -json SPDisplaysDataType`; None for any other text."""
    import json  # noqa: PLC0415 - which detection elsewhere does without

    start = text.rfind("{", 0, max(text.find('"SPDisplaysDataType"'), 0))
    try:
        cards = json.JSONDecoder().raw_decode(text, start)[0]["SPDisplaysDataType"]  # whatever stands behind it
    except (ValueError, KeyError, IndexError, RecursionError):
        return None
    found = []
    for card in cards if isinstance(cards, list) else []:
        if isinstance(card, dict):
            values = {str(name): str(value) for name, value in card.items()}
            name = values.get("sppci_model") or values.get("_name") or ""
            size = values.get("spdisplays_vram") or values.get("_spdisplays_vram") or ""
            vendor, device = values.get("spdisplays_vendor", ""), values.get("spdisplays_device-id", "")
            found.append(_gpu(name, profiler_vendor(vendor), device, size, shared="spdisplays_vram_shared" in values))
    return tuple(found)


def _gpu(name: str, vendor: Vendor, device: str, size: str, *, shared: bool) -> Gpu:
    """Return a GPU by system_profiler's values: `device` is its id in hex, `size` its memory with a unit.

    An unknown vendor is taken from the name. `shared` memory, or Apple's chip, makes it an integrated one.
    """
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


_HEADING = r"(?m)^ {4}(?=\S)[^\n]{1,80}:[ \t]{0,40}$"


# Quoted, shortened, from https://github.com/zeam-vm/cpu_info/issues/17:
# Graphics/Displays:
#
#     Radeon Pro Vega 64:
#
#       Chipset Model: Radeon Pro Vega 64
#       VRAM (Total): 16 GB
#       Vendor: AMD (0x1002)
#       Device ID: 0x6860
def _read_text_gpus(text: str) -> tuple[Gpu, ...] | None:
    """Return the GPUs in the text of `system_profiler SPDisplaysDataType`; None for any other text."""
    start = text.find("Graphics/Displays:")
    if start < 0:
        return None
    section = re.split(
        r"^\S[^\n]{0,80}:[ \t]{0,40}$", text[start + len("Graphics/Displays:") :], maxsplit=1, flags=re.MULTILINE
    )[0]
    found = []
    for block in re.split(_HEADING, section)[1:]:
        values: dict[str, str] = dict(re.findall(r"^ {6}(\w[\w ,()-]{1,40}): ([^\n]{1,100})$", block, re.MULTILINE))
        if name := values.get("Chipset Model"):
            size = next((value for field, value in values.items() if field.startswith("VRAM")), "")
            shared = any("Dynamic" in field or "Shared" in field for field in values)
            vendor = vendor_of_name(values.get("Vendor", name))
            found.append(_gpu(name, vendor, values.get("Device ID", ""), size, shared=shared))
    return tuple(found)


#     Hardware Overview:
#
#       Model Name: MacBook Pro
#       Processor Name: 6-Core Intel Core i7
#       Memory: 16 GB
# and, on another Mac:
#       System Version: macOS 15.1 (24B83)
def _read_overview(text: str) -> dict[str, object]:
    """Return system facts in the hardware and software parts of system_profiler's text, named as in `Machine`.

    Those are `os_version`, `arch` and `memory_gb`; unknown ones are left out.
    """
    version = re.search(r"^[ \t]{0,40}System Version: macOS ([\d.]{2,12})", text, re.MULTILINE)
    chip = re.search(r"^[ \t]{0,40}Chip: (Apple M[^\n]{1,30})$", text, re.MULTILINE)
    intel = re.search(r"^[ \t]{0,40}Processor Name: [^\n]{0,40}Intel", text, re.MULTILINE)
    memory = re.search(r"^[ \t]{0,40}Memory: (\d{1,5}) GB[ \t]{0,40}$", text, re.MULTILINE)
    facts = {
        "os_version": f"macOS {version[1]}" if version else None,
        "arch": "arm64" if chip else "x86_64" if intel else None,
        "memory_gb": float(memory[1]) if memory else None,
    }
    return {name: value for name, value in facts.items() if value is not None}


# What system_profiler calls things in Chinese.
_CHINESE = {
    "图形卡/显示器": "Graphics/Displays",
    "图形/显示器": "Graphics/Displays",
    "芯片组型号": "Chipset Model",
    "硬件概览": "Hardware Overview",
    "系统软件概览": "System Software Overview",
    "系统版本": "System Version",
    "芯片": "Chip",
    "内存": "Memory",
    "供应商": "Vendor",
    "设备ID": "Device ID",
}


def read_system_profiler(text: str) -> Reading | None:
    """Return what system_profiler prints of a Mac, in English or Chinese: GPUs, hardware; None for any other text."""
    if re.search("图形卡?/显示器|硬件概览", text):
        text = re.sub(r"(VRAM[^:\n]{0,20}):(?=\d)", r"\1: ", text)
        text = re.sub("(" + "|".join(_CHINESE) + ") ?: ?", lambda found: f"{_CHINESE[found[1]]}: ", text)
    gpus = read_profiler_json(text) if '"SPDisplaysDataType"' in text else _read_text_gpus(text)
    facts = _read_overview(text) if gpus is not None or "Hardware Overview:" in text else {}
    if gpus is None and not facts:
        return None
    return Reading(facts={"os": "macos", **facts}, devices=tuple(Device(gpu=gpu) for gpu in gpus or ()))

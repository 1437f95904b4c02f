"""Reads the text that Windows' dxdiag saves."""

from __future__ import annotations

import re

from assistant.catalog.names import pci_id
from assistant.model.machine import Vendor
from assistant.model.record import Record
from assistant.parsers.fields import gib
from assistant.parsers.windows import Adapter, adapter


class Dxdiag(Record, frozen=True):
    """What the report tells; a card that drives several screens is told once."""

    os_version: str | None = None
    arch: str | None = None
    memory_gb: float | None = None
    adapters: tuple[Adapter, ...] = ()


_SECTION = re.compile(r"^-{4,60}[ \t]{0,40}\n[ \t]*([A-Z][\w /&]{2,40}?)[ \t]*\n-{4,60}[ \t]*$", re.MULTILINE)
_CARDS, _HEAD = {"Display Devices", "Render Devices"}, "System Information"


# ------------------
# System Information
# ------------------
#          Operating System: Windows 11 Pro 64-bit (10.0, Build 22631) (22621.ni_release.220506-1250)
#                    Memory: 32768MB RAM
# ---------------
# Display Devices
# ---------------
#            Card name: NVIDIA GeForce RTX 3080
#           Device Key: Enum\PCI\VEN_10DE&DEV_2206&SUBSYS_38871462&REV_A1
#     Dedicated Memory: 10053 MB
#       Driver Version: 31.0.15.3179
def dxdiag(text: str) -> Dxdiag | None:
    """Read a report, whole or only its display part; None when the text is none."""
    parts = _SECTION.split(text)
    sections = dict(zip(parts[1::2], parts[2::2], strict=False))
    if not sections.keys() & {*_CARDS, _HEAD}:
        return None
    head = _fields(sections.get(_HEAD, ""))
    cards = [card for name in (*sorted(_CARDS), _HEAD) for card in _cards(sections.get(name, ""))]
    known = {(card.device.partition("&SUBSYS")[0], card.gpu.name): card for card in reversed(cards)}
    found = Dxdiag(
        os_version=_system(head.get("Operating System", "")),
        arch="x86_64" if re.search(r"\b(?:AMD|Intel)\b", head.get("Processor", "")) else None,
        memory_gb=_gib(head.get("Memory", "")),
        adapters=tuple(reversed(known.values())),
    )
    return found if found != Dxdiag() else None


def _fields(section: str) -> dict[str, str]:
    told: dict[str, str] = {}
    for name, value in re.findall(r"^[ \t]{0,40}(\w[\w ()/]{1,40}?): ([^\n]{1,300})$", section, re.MULTILINE):
        told.setdefault(name, value.strip())
    return told


def _cards(section: str) -> list[Adapter]:
    """Read each device of a section; one begins at its card's name."""
    found = []
    for block in re.split(r"^[ \t]{0,40}(?=Card name: )", section, flags=re.MULTILINE)[1:]:
        told = _fields(block)
        size = _gib(told.get("Dedicated Memory", ""))
        values = {
            "DriverDesc": told.get("Card name", ""),
            "MatchingDeviceId": told.get("Device Key") or _amd_device(told.get("Chip type", "")),
            "DriverVersion": told.get("Driver Version", ""),
            "HardwareInformation.qwMemorySize": int(size * 2**30) if size else 0,
        }
        found.append(adapter(values))
    return [card for card in found if card]


def _amd_device(chip: str) -> str:
    """Read the device off `AMD Radeon Graphics Processor (0x7550)`, for excerpts that leave its key out."""
    found = re.match(r"AMD [^(]{0,60}\(0x([0-9A-Fa-f]{4})\)", chip)
    vendor, _colon, device = (pci_id(Vendor.AMD, found[1]) or "").partition(":") if found else ("", "", "")
    return f"VEN_{vendor}&DEV_{device}" if device else ""


def _system(text: str) -> str | None:
    """Read `Windows 11 Pro (10.0.22631)` off `Windows 11 Pro 64-bit (10.0, Build 22631) (…)`."""
    found = re.match(r"(Windows [^(]{1,60}?)(?: 64-bit| 32-bit)? \((\d{1,2}\.\d), Build (\d{4,6})\)", text)
    return f"{found[1]} ({found[2]}.{found[3]})" if found else None


def _gib(text: str) -> float | None:
    """Read gibibytes off `32768MB RAM` or `10053 MB`."""
    found = re.match(r"(\d{1,8}) ?MB", text)
    return gib(found[1]) if found else None

"""Readers of what Windows keeps about its display adapters, and of `dxdiag`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from assistant.catalog.identity import pci_id, vendor_of, vendor_of_name, windows_release
from assistant.model.machine import Gpu, Vendor
from assistant.model.record import Record
from assistant.parsers import Device, Reading, gib


class Adapter(Record, frozen=True):
    r"""One entry of the registry's display class; `device` is what the driver was matched with (`pci\ven_10de&…`)."""

    gpu: Gpu
    device: str = ""
    date: str | None = None


def read_pci_id(device: str) -> str | None:
    r"""Return `10de:2684` for `PCI\VEN_10DE&DEV_2684&SUBSYS_…`; None for another text."""
    found = re.search(r"ven_([0-9a-f]{4})&dev_([0-9a-f]{4})", device, re.IGNORECASE)
    return f"{found[1]}:{found[2]}".lower() if found else None


# {"DriverDesc": "NVIDIA GeForce GTX 1060 6GB", "ProviderName": "NVIDIA", "DriverDate": "12-19-2018",
#  "DriverVersion": "25.21.14.1771", "MatchingDeviceId": "PCI\\VEN_10DE&DEV_1C03",
#  "HardwareInformation.qwMemorySize": 6442450944}
def read_adapter(values: Mapping[str, object]) -> Adapter | None:
    """Return the adapter that its registry values describe; None without a description."""
    name, device = str(values.get("DriverDesc") or ""), str(values.get("MatchingDeviceId") or "")
    if not name:
        return None
    size = values.get("HardwareInformation.qwMemorySize")
    pci_id = read_pci_id(device)
    vendor = vendor_of(pci_id)
    vendor = vendor_of_name(name) if vendor in {Vendor.UNKNOWN, Vendor.OTHER} else vendor
    return Adapter(
        gpu=Gpu(
            vendor=vendor,
            name=name,
            pci_id=pci_id,
            vram_gb=round(size / 2**30, 1) if isinstance(size, int) and size else None,
            driver=str(values["DriverVersion"]) if values.get("DriverVersion") else None,
        ),
        device=device,
        date=str(values["DriverDate"]) if values.get("DriverDate") else None,
    )


def read_nvidia_version(windows_version: str) -> str | None:
    """Return NVIDIA's own number (`560.94`) for the one Windows shows (`32.0.15.6094`): its last five digits.

    Returns None for any other text.
    """
    digits = "".join(windows_version.split(".")[-2:])
    return (
        f"{digits[-5:-2]}.{digits[-2:]}" if re.fullmatch(r"\d+(?:\.\d+){3}", windows_version) and digits[4:] else None
    )


# ProductName    Windows 10 Pro
# CurrentBuild   17763
# ReleaseId      1809
def windows_name(values: Mapping[str, object]) -> str | None:
    r"""Return `Windows 11 24H2 (10.0.26100)` by the values of `…\Windows NT\CurrentVersion`; None without build."""
    build = str(values.get("CurrentBuild") or values.get("CurrentBuildNumber") or "")
    if not build.isdigit():
        return None
    product = str(values.get("ProductName") or "Windows")
    if "Server" not in product:
        product = windows_release(int(build)) or product
    release = str(values.get("DisplayVersion") or values.get("ReleaseId") or "")
    return f"{product} {release}".strip() + f" (10.0.{build})"


# HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows NT\CurrentVersion
#     ProductName    REG_SZ    Windows 10 Pro
#     CurrentBuild    REG_SZ    17763
_VALUE = r"(?m)^ {4}(\S[^\n]{0,100}?) {4}REG_(\w{2,10}) {4}([^\n]{0,400})$"


def read_reg_query(text: str) -> dict[str, object]:
    """Return the values that `reg query KEY` prints for one key, by name; DWORD and QWORD as numbers."""
    found: dict[str, object] = {}
    for name, kind, value in re.findall(_VALUE, text.replace("\r", "")):
        number = kind in {"DWORD", "QWORD"} and re.fullmatch(r"0x[0-9a-f]{1,16}", value.strip())
        found[name] = int(value.strip(), 16) if number else value.strip()
    return found


_SECTION = r"^-{4,60}[ \t]{0,40}\n[ \t]*([A-Z][\w /&]{2,40}?)[ \t]*\n-{4,60}[ \t]*$"
_CARDS, _HEAD = ("Display Devices", "Render Devices"), "System Information"


# ------------------
# System Information
# ------------------
#          Operating System: Windows 11 Pro 64-bit (10.0, Build 22631) (22621.ni_release.220506-1250)
#                    Memory: 32768MB RAM
# Quoted, shortened, from https://github.com/microsoft/WSL/issues/6423:
# ---------------
# Display Devices
# ---------------
#            Card name: NVIDIA GeForce RTX 2060
#         Manufacturer: NVIDIA
#            Chip type: GeForce RTX 2060
#           Device Key: Enum\PCI\VEN_10DE&DEV_1F11&SUBSYS_126A1462&REV_A1
#     Dedicated Memory: 5980 MB
#       Driver Version: 27.21.14.5541
def read_dxdiag(text: str) -> Reading | None:
    """Return the system and the GPUs in dxdiag's report, whole or only its display part; None for any other text.

    A GPU that several parts list is returned once.
    """
    parts = re.split(_SECTION, text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=False))
    if "Card name: " in parts[0] and re.search(r"^ {0,40}(?:DAC|Chip) type: ", parts[0], re.MULTILINE):
        sections.setdefault(_HEAD, parts[0])  # an excerpt without its headings
    if not sections.keys() & {*_CARDS, _HEAD}:
        return None
    head = _fields(sections.get(_HEAD, ""))
    cards = [card for name in (*_CARDS, _HEAD) for card in _cards(sections.get(name, ""))]
    by_card = {(card.device.partition("&SUBSYS")[0], card.gpu.name): card for card in reversed(cards)}
    # `Windows 11 Pro 64-bit (10.0, Build 22631) (…)` is `Windows 11 Pro (10.0.22631)`.
    system = re.match(
        r"(Windows [^(]{1,60}?)(?: 64-bit| 32-bit)? \((\d{1,2}\.\d), Build (\d{4,6})\)",
        head.get("Operating System", ""),
    )
    facts = {
        "os_version": f"{system[1]} ({system[2]}.{system[3]})" if system else None,
        "arch": "x86_64" if re.search(r"\b(?:AMD|Intel)\b", head.get("Processor", "")) else None,
        "memory_gb": _gib(head.get("Memory", "")),
    }
    devices = tuple(Device(gpu=card.gpu) for card in reversed(by_card.values()))
    return Reading(facts={"os": "windows", **facts}, devices=devices) if devices or any(facts.values()) else None


def _fields(section: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in re.findall(r"^[ \t]{0,40}(\w[\w ()/]{1,40}?): ([^\n]{1,300})$", section, re.MULTILINE):
        found.setdefault(name, value.strip())
    return found


def _cards(section: str) -> list[Adapter]:
    """Return the adapters in a section of dxdiag's report, one for each line `Card name: ` with a name."""
    found = []
    for block in re.split(r"^[ \t]{0,40}(?=Card name: )", section, flags=re.MULTILINE)[1:]:
        fields = _fields(block)
        device = fields.get("Device Key")
        # Excerpts leave the key out, but keep `Chip type: AMD Radeon Graphics Processor (0x7550)`.
        chip = re.match(r"AMD [^(]{0,60}\(0x([0-9A-Fa-f]{4})\)", fields.get("Chip type", ""))
        if not device and chip:
            vendor, _colon, number = (pci_id(Vendor.AMD, chip[1]) or "").partition(":")
            device = f"VEN_{vendor}&DEV_{number}"
        size = _gib(fields.get("Dedicated Memory", ""))
        values = {
            "DriverDesc": fields.get("Card name", ""),
            "MatchingDeviceId": device or "",
            "DriverVersion": fields.get("Driver Version", ""),
            "HardwareInformation.qwMemorySize": int(size * 2**30) if size else 0,
        }
        found.append(read_adapter(values))
    return [card for card in found if card]


def _gib(text: str) -> float | None:
    """Return GiB for `32768MB RAM` or `10053 MB`; None for any other text."""
    found = re.match(r"(\d{1,8}) ?MB", text)
    return gib(found[1]) if found else None

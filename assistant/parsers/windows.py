"""Readers of what Windows keeps about its display adapters."""

from __future__ import annotations

import re
from collections.abc import Mapping

from assistant.catalog.names import vendor_of, vendor_of_name, windows_release
from assistant.model.machine import Gpu, Vendor
from assistant.model.record import Record


class Adapter(Record, frozen=True):
    r"""One entry of the registry's display class; `device` is what the driver was matched with (`pci\ven_10de&…`)."""

    gpu: Gpu
    device: str = ""
    date: str | None = None


def pci_id_of(device: str) -> str | None:
    r"""Read `10de:2684` off `PCI\VEN_10DE&DEV_2684&SUBSYS_…`."""
    found = re.search(r"ven_([0-9a-f]{4})&dev_([0-9a-f]{4})", device, re.IGNORECASE)
    return f"{found[1]}:{found[2]}".lower() if found else None


# {"DriverDesc": "NVIDIA GeForce GTX 1060 6GB", "ProviderName": "NVIDIA", "DriverDate": "12-19-2018",
#  "DriverVersion": "25.21.14.1771", "MatchingDeviceId": "PCI\\VEN_10DE&DEV_1C03",
#  "HardwareInformation.qwMemorySize": 6442450944}
def adapter(values: Mapping[str, object]) -> Adapter | None:
    """Read one adapter off its registry values; None without a description."""
    name, device = str(values.get("DriverDesc") or ""), str(values.get("MatchingDeviceId") or "")
    if not name:
        return None
    size = values.get("HardwareInformation.qwMemorySize")
    pci_id = pci_id_of(device)
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


def nvidia_version(windows_version: str) -> str | None:
    """Read NVIDIA's own number (`560.94`) off the one Windows shows (`32.0.15.6094`): its last five digits."""
    digits = "".join(windows_version.split(".")[-2:])
    return (
        f"{digits[-5:-2]}.{digits[-2:]}" if re.fullmatch(r"\d+(?:\.\d+){3}", windows_version) and digits[4:] else None
    )


# ProductName    Windows 10 Pro
# CurrentBuild   17763
# ReleaseId      1809
def windows_name(values: Mapping[str, object]) -> str | None:
    r"""Name the release from `…\Windows NT\CurrentVersion`: `Windows 11 24H2 (10.0.26100)`."""
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
_VALUE = re.compile(r"^ {4}(\S[^\n]{0,100}?) {4}REG_(\w{2,10}) {4}([^\n]{0,400})$", re.MULTILINE)


def reg_query(text: str) -> dict[str, object]:
    """Read the values that `reg query KEY` prints for one key; numbers come in hex."""
    found: dict[str, object] = {}
    for name, kind, value in _VALUE.findall(text.replace("\r", "")):
        number = kind in {"DWORD", "QWORD"} and re.fullmatch(r"0x[0-9a-f]{1,16}", value.strip())
        found[name] = int(value.strip(), 16) if number else value.strip()
    return found

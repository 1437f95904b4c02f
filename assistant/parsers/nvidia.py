"""Readers of what NVIDIA's driver and tools print."""

from __future__ import annotations

import re

from assistant.model.machine import Gpu, Vendor
from assistant.model.record import Record
from assistant.parsers.cards import cut_card
from assistant.parsers.fields import Device, bus_address, field, gib


class NvidiaReport(Record, frozen=True):
    """Values read from one nvidia-smi report; None where it is silent."""

    driver: str | None = None
    cuda: str | None = None
    devices: tuple[Device, ...] = ()


_HEADER_DRIVER = r"\b(?:Driver|KMD) Version\s*:\s*(\d{2,4}\.[\d.]{1,12})"
_HEADER_CUDA = r"\bCUDA(?: UMD| Driver)? Version\s*:\s*(\d{1,3}\.\d{1,3})"
_ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]"
_ROW = rf"^[ \t]*\|?[ \t]{{0,8}}(\d{{1,3}})[ \t]{{1,8}}(\S[^|\n]{{0,90}})\|[ \t]{{1,8}}({_ADDRESS}|N/A)"
_MEMORY = r"/[ \t]{0,12}(\d{1,8}(?:\.\d{1,2})?)[ \t]{0,4}([MG])iB"


# | NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |
# | GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
# |=========================================+========================+======================|
# |   0  NVIDIA B200                    Off |   00000000:63:00.0   On |                  N/A |
# |  0%   45C    P8             23W /  450W |     551MiB / 183359MiB |      0%      Default |
def smi_table(text: str) -> NvidiaReport | None:
    """Read the table that `nvidia-smi` prints, of one or more GPUs; a name cut short is completed if one fits."""
    if not any(mark in text for mark in ("NVIDIA-SMI", "NVITOP", "Persistence-M")):  # pastes begin anywhere
        return None
    text = text.replace("│", "|")  # nvitop
    devices = []
    for row in re.finditer(_ROW, text, re.MULTILINE):
        memory = re.search(_MEMORY, text[row.end() : row.end() + 400])  # the next line of the row
        name = re.sub(r"\s(?:On|Off|WDDM|TCC|MCDM|N/A|ERR!|Enabled|Disabled)$", "", row[2].strip()).rstrip()
        size = float(memory[1]) * (1024 if memory[2] == "G" else 1) if memory else None
        devices.append(_device(row[3], name, size))
    report = NvidiaReport(driver=_first(_HEADER_DRIVER, text), cuda=_first(_HEADER_CUDA, text), devices=tuple(devices))
    return report if report != NvidiaReport() else None


def _device(bus: str, name: str, size: str | float | None, pci_id: str | None = None) -> Device:
    vram = gib(size)
    card = cut_card(name, vram)
    known = card.compute_capability if card.name is None else None
    gpu = Gpu(vendor=Vendor.NVIDIA, name=card.name, vram_gb=vram, pci_id=pci_id, compute_capability=known)
    return Device(gpu=gpu, bus=bus_address(bus))


def _first(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text)
    return found[1].rstrip(".") if found else None


# Quoted, shortened, from https://github.com/MatthiasSchinzel/sysmon/issues/12:
# ==============NVSMI LOG==============
#
# Timestamp                                 : Sat Oct 10 17:02:53 2020
# Driver Version                            : 450.66
# CUDA Version                              : 11.0
#
# Attached GPUs                             : 1
# GPU 00000000:01:00.0
#     Product Name                          : GeForce GTX 780
# and further down:
#         Device Id                         : 0x100410DE
#     FB Memory Usage
#         Total                             : 3020 MiB
def smi_query(text: str) -> NvidiaReport | None:
    """Read what `nvidia-smi -q` prints."""
    head, *parts = re.split(rf"^[ \t]{{0,40}}GPU ({_ADDRESS})[ \t]{{0,40}}$", text, flags=re.MULTILINE)
    if "NVSMI LOG" not in head and "FB Memory Usage" in head:  # the top was cut off
        parts = [field(head, "Bus Id"), head, *parts]
    elif "NVSMI LOG" not in head and not (parts and "Product Name" in text):
        return None
    devices = []
    for bus, block in zip(parts[::2], parts[1::2], strict=True):
        memory = re.search(r"FB Memory Usage\s{0,8}\n\s{0,12}Total\s{0,60}:\s{0,4}(\d{1,8}) MiB", block)
        ids = re.match(r"0x([0-9A-Fa-f]{4})([0-9A-Fa-f]{4})$", field(block, "Device Id"))
        pci_id = f"{ids[2]}:{ids[1]}".lower() if ids else None
        devices.append(_device(bus, field(block, "Product Name"), memory[1] if memory else None, pci_id))
    return NvidiaReport(driver=_first(_HEADER_DRIVER, head), cuda=_first(_HEADER_CUDA, head), devices=tuple(devices))


# NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Tue Sep 23 09:55:41 UTC 2025
def driver_version(proc_version: str) -> str | None:
    """Read the kernel module's version off /proc/driver/nvidia/version."""
    found = re.search(r"Kernel Module(?: for \w{1,12})?\s{1,8}(\d{2,4}\.[\d.]{1,12})", proc_version)
    return found[1].rstrip(".") if found else None


# NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA
# driver is installed and running.
# or: Failed to initialize NVML: Driver/library version mismatch
_COMPLAINTS = {
    "mismatch": "Driver/library version mismatch",
    "not-communicating": "couldn't communicate with the NVIDIA driver",
    "no-devices": "No devices were found",
    "no-permission": "Insufficient Permissions",
    "lost": "GPU is lost|Unable to determine the device handle",
    "blocked-by-os": "GPU access blocked by the operating system",
    "failed": "Failed to initialize NVML|NVIDIA-SMI has failed",
}


def smi_complaint(text: str) -> str | None:
    """Name what nvidia-smi complains of: `mismatch`, `not-communicating`, `no-devices` and the like."""
    return next((state for state, words in _COMPLAINTS.items() if re.search(words, text, re.IGNORECASE)), None)

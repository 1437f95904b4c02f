"""Readers of what NVIDIA's driver and tools print."""

from __future__ import annotations

import re

from assistant.model.machine import Gpu, Vendor
from assistant.model.record import Record
from assistant.parsers.fields import field, gib


class NvidiaRow(Record, frozen=True):
    """One GPU of a report."""

    gpu: Gpu
    bus: str | None = None


class NvidiaReport(Record, frozen=True):
    """What a report tells; None where it does not."""

    driver: str | None = None
    cuda: str | None = None
    rows: tuple[NvidiaRow, ...] = ()


_HEADER_DRIVER = re.compile(r"\b(?:Driver|KMD) Version\s*:\s*(\d{2,4}\.[\d.]{1,12})")
_HEADER_CUDA = re.compile(r"\bCUDA(?: UMD| Driver)? Version\s*:\s*(\d{1,3}\.\d{1,3})")
_ROW = re.compile(
    r"^[ \t]*\|[ \t]{1,8}(\d{1,3})[ \t]{1,8}(\S[^|\n]{0,90})\|[ \t]{1,8}"
    r"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])",
    re.MULTILINE,
)
_MEMORY = re.compile(r"/[ \t]{0,12}(\d{1,8})[ \t]{0,4}MiB")


# | NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |
# | GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
# |=========================================+========================+======================|
# |   0  NVIDIA B200                    Off |   00000000:63:00.0   On |                  N/A |
# |  0%   45C    P8             23W /  450W |     551MiB / 183359MiB |      0%      Default |
def smi_table(text: str) -> NvidiaReport | None:
    """Read the table that `nvidia-smi` prints, of one or more GPUs; names it cut short ("…") are left out."""
    if "NVIDIA-SMI" not in text:
        return None
    rows = tuple(_table_row(text, found) for found in _ROW.finditer(text))
    report = NvidiaReport(driver=_first(_HEADER_DRIVER, text), cuda=_first(_HEADER_CUDA, text), rows=rows)
    return report if report != NvidiaReport() else None


def _table_row(text: str, found: re.Match[str]) -> NvidiaRow:
    memory = _MEMORY.search(text, found.end(), found.end() + 400)
    name = re.sub(r"\s(?:On|Off|WDDM|TCC|MCDM|N/A|ERR!|Enabled|Disabled)$", "", found[2].strip()).rstrip()
    return NvidiaRow(gpu=_gpu(name=name, mib=memory[1] if memory else None), bus=_bus(found[3]))


def _gpu(*, name: str | None, mib: str | None, pci_id: str | None = None) -> Gpu:
    whole = name if name and not name.endswith(("..", "…")) else None
    return Gpu(vendor=Vendor.NVIDIA, name=whole, vram_gb=gib(mib), pci_id=pci_id)


def _bus(text: str) -> str:
    """Spell a bus address as the kernel does: `0000:01:00.0`."""
    domain, _colon, rest = text.lower().partition(":")
    return f"{domain[-4:]:0>4}:{rest}"


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1].rstrip(".") if found else None


_QUERY_GPU = re.compile(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])[ \t]{0,40}$", re.MULTILINE)


# ==============NVSMI LOG==============
# Driver Version                            : 450.66
# CUDA Version                              : 11.0
# GPU 00000000:01:00.0
#     Product Name                          : GeForce GTX 780
#         Device Id                         : 0x100410DE
#     FB Memory Usage
#         Total                             : 3020 MiB
def smi_query(text: str) -> NvidiaReport | None:
    """Read what `nvidia-smi -q` prints."""
    starts = list(_QUERY_GPU.finditer(text))
    head = text[: starts[0].start()] if starts else text
    if "NVSMI LOG" not in head and not (starts and "Product Name" in text):
        return None
    ends = [*(start.start() for start in starts[1:]), len(text)]
    rows = tuple(_query_row(start[1], text[start.end() : end]) for start, end in zip(starts, ends, strict=False))
    return NvidiaReport(driver=_first(_HEADER_DRIVER, head), cuda=_first(_HEADER_CUDA, head), rows=rows)


def _query_row(bus: str, block: str) -> NvidiaRow:
    memory = re.search(r"FB Memory Usage\s{0,8}\n\s{0,12}Total\s{0,60}:\s{0,4}(\d{1,8}) MiB", block)
    device = re.match(r"0x([0-9A-Fa-f]{4})([0-9A-Fa-f]{4})$", field(block, "Device Id"))
    gpu = _gpu(
        name=field(block, "Product Name") or None,
        mib=memory[1] if memory else None,
        pci_id=f"{device[2]}:{device[1]}".lower() if device else None,
    )
    return NvidiaRow(gpu=gpu, bus=_bus(bus))


# NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Tue Sep 23 09:55:41 UTC 2025
def driver_version(proc_version: str) -> str | None:
    """Read the kernel module's version off /proc/driver/nvidia/version."""
    found = re.search(r"Kernel Module(?: for \w{1,12})?\s{1,8}(\d{2,4}\.[\d.]{1,12})", proc_version)
    return found[1].rstrip(".") if found else None


# NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA
# driver is installed and running.
# or: Failed to initialize NVML: Driver/library version mismatch
_COMPLAINTS = (
    ("mismatch", re.compile(r"Driver/library version mismatch", re.IGNORECASE)),
    ("not-communicating", re.compile(r"couldn't communicate with the NVIDIA driver", re.IGNORECASE)),
    ("no-devices", re.compile(r"No devices were found", re.IGNORECASE)),
    ("no-permission", re.compile(r"Insufficient Permissions", re.IGNORECASE)),
    ("lost", re.compile(r"GPU is lost|Unable to determine the device handle", re.IGNORECASE)),
    ("blocked-by-os", re.compile(r"GPU access blocked by the operating system", re.IGNORECASE)),
    ("failed", re.compile(r"Failed to initialize NVML|NVIDIA-SMI has failed", re.IGNORECASE)),
)


def smi_complaint(text: str) -> str | None:
    """Name what nvidia-smi complains of: `mismatch`, `not-communicating`, `no-devices` and the like."""
    return next((state for state, pattern in _COMPLAINTS if pattern.search(text)), None)

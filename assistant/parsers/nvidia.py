"""Readers of what NVIDIA's driver and tools print."""

from __future__ import annotations

import re
from itertools import zip_longest
from os.path import commonprefix

from assistant.catalog.identity import complete_cut_name, identify_name
from assistant.model.machine import Gpu, Vendor
from assistant.model.record import replace
from assistant.parsers import Device, Reading, bus_address, field, gib

_ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]"
_ROW = rf"^[ \t]*\|?[ \t]{{0,8}}(\d{{1,3}})[ \t]{{1,8}}(\S[^|\n]{{0,90}})\|[ \t]{{1,8}}({_ADDRESS}|N/A)"
_MEMORY = r"/[ \t]{0,12}(\d{1,8}(?:\.\d{1,2})?)[ \t]{0,4}([MG])iB"

# GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-2f1e0f0c-…)
_LISTED = r"(?m)^[ \t]{0,8}GPU \d{1,3}: ([^\n]{3,80}) \(UUID: GPU-"


# | NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |
# | GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
# |=========================================+========================+======================|
# |   0  NVIDIA B200                    Off |   00000000:63:00.0   On |                  N/A |
# |  0%   45C    P8             23W /  450W |     551MiB / 183359MiB |      0%      Default |
def read_smi_table(text: str) -> Reading | None:
    """Return the driver and the GPUs in the table that `nvidia-smi` or nvitop prints; None for any other text.

    A name that was cut off is taken from `nvidia-smi -L` beside it, if the name at its place there begins alike.
    """
    if not any(mark in text for mark in ("NVIDIA-SMI", "NVITOP", "Persistence-M")):  # pastes begin anywhere
        return None
    text = text.replace("│", "|")  # nvitop
    devices: list[Device] = []
    whole = re.findall(_LISTED, text)
    rows = list(re.finditer(_ROW, text, re.MULTILINE))
    for row, after in zip_longest(rows, rows[1:]):
        end = min(row.end() + 400, after.start() if after else len(text))  # the next line, of the same GPU
        memory = re.search(_MEMORY, text[row.end() : end])
        name = re.sub(r"\s(?:On|Off|WDDM|TCC|MCDM|N/A|ERR!|Enabled|Disabled)$", "", row[2].strip()).rstrip()
        size = float(memory[1]) * (1024 if memory[2] == "G" else 1) if memory else None
        listed = whole[len(devices)] if len(devices) < len(whole) else ""  # `nvidia-smi -L` beside the table
        if name.endswith("...") and listed.startswith(name.removesuffix("...").rstrip()):
            name = listed
        devices.append(_device(row[3], name, size))
    facts = _read_facts(text)
    return Reading(facts=facts, devices=tuple(devices)) if devices or any(facts.values()) else None


_WDDM = r"(?m) (?:WDDM|MCDM|TCC/WDDM) |: (?:WDDM|MCDM|TCC)$"  # only Windows has driver models


def _read_facts(text: str) -> dict[str, object]:
    """Return `nvidia_driver`, `cuda_driver_api` and `os` ("windows") in what nvidia-smi prints; None for unknown."""
    return {
        "nvidia_driver": _search_first(r"\b(?:Driver|KMD) Version\s*:\s*(\d{2,4}\.[\d.]{1,12})", text),
        "cuda_driver_api": _search_first(r"\bCUDA(?: UMD| Driver)? Version\s*:\s*(\d{1,3}\.\d{1,3})", text),
        "os": "windows" if re.search(_WDDM, text) else None,
    }


def _device(bus: str, shown: str, size: str | float | None, pci_id: str | None = None) -> Device:
    """Return a GPU by its PCI address and name as a tool shows them, and its memory (`size`) in MiB.

    A name that was cut off is completed as `_complete_name` does, which may give the compute capability instead.
    """
    vram = gib(size)
    name, capability = _complete_name(shown.strip(), vram)
    gpu = Gpu(vendor=Vendor.NVIDIA, name=name, vram_gb=vram, pci_id=pci_id, compute_capability=capability)
    return Device(gpu=gpu, bus=bus_address(bus))


_CUT = r"^(?:\.{2,3}|…)|(?:\.{2,3}|…)$"
_LEAST_SHOWN = 0.85  # of a card's memory, drivers and error correction leave so much; measured: 14.9 of 16, 39.4 of 40


def _complete_name(shown: str, vram_gb: float | None) -> tuple[str | None, str | None]:
    """Return the whole name for one that a table cut off at either end, `NVIDIA GeForce RTX 4060 ...`, and None.

    A name that was not cut off, or a beginning that no name completes, stays as it is; an ending that none or several
    complete is None. If several complete a beginning, those whose memory differs are left out, and what the others
    share is returned, or None if that is another card's name or no more than was shown; the second value then is the
    compute capability that all of them have, None if they differ.
    """
    part, at_end = re.sub(_CUT, "", shown).strip(), bool(re.match(_CUT, shown))
    if part == shown or (at_end and identify_name(Vendor.NVIDIA, part)):
        return part or None, None
    names = []
    for name in complete_cut_name(part, at_end=at_end, width=len(shown)):
        stated = re.search(r"\b(\d{1,3}) ?GB\b", name)
        if stated is None or not vram_gb or _LEAST_SHOWN * int(stated[1]) <= vram_gb <= int(stated[1]):
            names.append(name if at_end else part + name[len(part) :])
    if len(names) < 2:  # noqa: PLR2004 - one is sure
        return names[0] if names else None if at_end else shown, None
    capabilities = {found.compute_capability for name in names if (found := identify_name(Vendor.NVIDIA, name))}
    capability = capabilities.pop() if len(capabilities) == 1 else None
    shared = "" if at_end else commonprefix(names).rpartition(" ")[0]
    is_new = len(shared) > len(part) and not identify_name(Vendor.NVIDIA, shared)
    return shared if is_new else None, capability


def _search_first(pattern: str, text: str) -> str | None:
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
def read_smi_query(text: str) -> Reading | None:
    """Return the driver and the GPUs in what `nvidia-smi -q` prints, also without its top; None for any other text."""
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
    facts = {**_read_facts(head), "os": "windows" if re.search(_WDDM, text) else None}
    return Reading(facts=facts, devices=tuple(devices))


# 0, NVIDIA GeForce RTX 3090, 1523 MiB, 24576 MiB, 550.54.14, 8.6, 00000000:01:00.0     (--query-gpu=… --format=csv)
_NAME_CELL = r"(?:NVIDIA|Tesla|Quadro|GeForce) [\w ()+-]{2,60}"
_OTHER_CELL = rf"[\d./: ]{{1,24}}(?:MiB|W|%|MHz)?|{_ADDRESS}|GPU-[\w-]{{8,40}}|P\d{{1,2}}|\[?N/A\]?|(?:En|Dis)abled"
_MOST = 64  # GPUs of one machine


def read_smi_list(text: str) -> Reading | None:
    """Return the GPUs, and the driver if listed, in what `nvidia-smi -L` or `--query-gpu=… --format=csv` prints.

    Returns None for a text without any. A CSV line counts if one cell is a name, and there are others, all of known
    forms. At most 64 lines of each kind are read.
    """
    devices = [_device("", name, None) for name in re.findall(_LISTED, text)[:_MOST]]
    lines = re.findall(r"^[^\n]{0,300}(?:NVIDIA|Tesla|Quadro|GeForce) [^\n]{0,300}$", text, re.MULTILINE)
    driver = None
    for line in lines[:_MOST]:
        cells = [cell.strip() for cell in line.split(",")]
        names = [cell for cell in cells if re.fullmatch(_NAME_CELL, cell)]
        others = [cell for cell in cells if cell not in names]
        if len(names) == 1 and others and all(re.fullmatch(_OTHER_CELL, other) for other in others):
            devices.append(_device_from_cells(names[0], others))
            driver = driver or next(
                (cell for cell in others if re.fullmatch(r"\d{3}\.\d{2,3}(?:\.\d{2})?", cell)), None
            )
    return Reading(facts={"nvidia_driver": driver}, devices=tuple(devices)) if devices else None


def _device_from_cells(name: str, cells: list[str]) -> Device:
    """Return a GPU from a CSV row's cells, recognised by their form; the largest size is the whole memory."""
    sizes = [int(size[1]) for cell in cells if (size := re.fullmatch(r"(\d{4,7})(?: MiB)?", cell))]
    bus = next((cell for cell in cells if re.fullmatch(_ADDRESS, cell)), "")
    device = _device(bus, name, max(sizes, default=None))
    capability = next((cell for cell in cells if re.fullmatch(r"\d{1,2}\.\d", cell)), None)
    return replace(device, gpu=replace(device.gpu, compute_capability=capability or device.gpu.compute_capability))


# NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Tue Sep 23 09:55:41 UTC 2025
def read_driver_version(proc_version: str) -> str | None:
    """Return the kernel module's version in /proc/driver/nvidia/version; None without it."""
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


def find_smi_complaint(text: str) -> str | None:
    """Return the key of nvidia-smi's error message in a text: `mismatch`, `no-devices` and so on; None if none."""
    return next((state for state, words in _COMPLAINTS.items() if re.search(words, text, re.IGNORECASE)), None)


# What stands in the place of an answer where there is no tool, or no device.
_NOT_THERE = (
    r"(?im)[\"'‘]?nvidia-smi[\"'’]?(?:\.exe)? (?:is not recognized|不是内部或外部命令)|无法将“nvidia-smi”项识别为"
    r"|The term 'nvidia-smi' is not recognized|nvidia-smi: (?:command )?not found|nvidia-smi: 未找到命令"
    r"|Command 'nvidia-smi' not found|couldn't find libnvidia-ml|^No devices were found"
    r"|Unable to determine the device handle"
)


def read_smi_trouble(text: str) -> Reading | None:
    """Return what a text says that is wrong with nvidia-smi; None if nothing is.

    `absence` is the line that says that it is missing or sees no device, the fact `nvidia_driver_state` the key of its
    error message; one of the two may be lacking.
    """
    if found := re.search(_NOT_THERE, text):
        line = text[text.rfind("\n", 0, found.start()) + 1 :].partition("\n")[0]
        os = "windows" if re.search(r"recogni[sz]ed|不是内部|项识别为", line) else None
        return Reading(facts={"os": os, "nvidia_driver_state": find_smi_complaint(line)}, absence=line)
    at = max(text.find("NVIDIA-SMI"), text.find("NVML"))
    state = find_smi_complaint(text[max(at - 200, 0) : at + 300]) if at >= 0 else None
    return Reading(facts={"nvidia_driver_state": state}) if state else None


def read_nvidia_smi(text: str) -> Reading | None:
    """Return what the table of `nvidia-smi` says, or else the error printed instead of it; None without either."""
    return read_smi_table(text) or read_smi_trouble(text)

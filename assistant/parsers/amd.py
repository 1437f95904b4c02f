"""Readers of what AMD's kernel driver and tools print, and Intel's xpu-smi, whose JSON is like that of amd-smi."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

import msgspec

from assistant.catalog.identity import pci_id
from assistant.model.machine import Gpu, Vendor
from assistant.parsers import Device, Reading, bus_address, field, gib


# /sys/class/kfd/kfd/topology/nodes/1/properties     and its mem_banks/0/properties
#     simd_count 96                                       heap_type 1
#     gfx_target_version 100301                           size_in_bytes 12868124672
#     vendor_id 4098
#     device_id 29663
#     location_id 2816
#     domain 0
def read_kfd_node(properties: str, banks: str = "") -> Device | None:
    """Return the GPU of a KFD topology node by its `properties` and its first memory bank's; None for a CPU node."""
    facts = {name: int(value) for name, value in re.findall(r"^(\w+) (\d{1,20})[ \t]{0,40}$", properties, re.MULTILINE)}
    target = facts.get("gfx_target_version", 0)
    if not facts.get("simd_count") or not target:
        return None
    size = re.search(r"^size_in_bytes (\d{1,20})", banks, re.MULTILINE)
    gpu = Gpu(
        vendor=Vendor.AMD,
        gfx=f"gfx{target // 10000}{target // 100 % 100:x}{target % 100:x}",
        pci_id=pci_id(Vendor.AMD, f"{facts['device_id']:x}" if facts.get("device_id") else None),
        vram_gb=round(int(size[1]) / 2**30, 1) if size else None,
    )
    location = facts.get("location_id")
    return Device(gpu=gpu, bus=None if location is None else _bus(location, facts.get("domain", 0)))


def _bus(location: int, domain: int = 0) -> str:
    """Return KFD's location (bus, device and function in one number) as an address spelt by the kernel."""
    return f"{domain:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7}"


# Quoted, shortened, from https://github.com/ollama/ollama/issues/3158:
# *******
# Agent 3
# *******
#   Name:                    gfx1100
#   Marketing Name:          Radeon RX 7900 XTX
#   Device Type:             GPU
#   Chip ID:                 29772(0x744c)
#   BDFID:                   2304
# and an agent's memory, from https://github.com/ROCm/legacy-rocm-build/issues/5725:
#       Segment:                 GLOBAL; FLAGS: FINE GRAINED
#       Size:                    49301900(0x2f0498c) KB
def read_rocminfo(text: str) -> Reading | None:
    """Return the GPU agents in rocminfo's output, and whether it says WSL; None for any other text.

    If it says that the kernel module is not loaded, that is the reading's `absence`.
    """
    facts: dict[str, object] = {"os": "linux", "wsl": True if "WSL environment detected" in text else None}
    if not any(mark in text for mark in ("HSA Agents", "HSA System Attributes", "Alloc Recommended Granule", "BDFID:")):
        absence = "ROCk module is NOT loaded"
        return Reading(facts=facts, absence=absence) if absence in text else None
    blocks = re.split(r"^\*{3,20}[ \t]{0,40}\nAgent \d{1,4}[ \t]{0,40}\n\*{3,20}", text, flags=re.MULTILINE)[1:]
    devices = []
    for block in (block for block in blocks if field(block, "Device Type").startswith("GPU")):
        name, location = field(block, "Name"), field(block, "BDFID")
        chip = re.search(r"\(0x([0-9a-f]{1,6})\)", field(block, "Chip ID"))
        size = re.search(r"GLOBAL[^\n]{0,80}\n\s*Size:\s*(\d{1,15})", block)
        gpu = Gpu(
            vendor=Vendor.AMD,
            name=field(block, "Marketing Name") or None,
            gfx=name.partition(":")[0] if name.startswith("gfx") else None,
            pci_id=pci_id(Vendor.AMD, chip[1] if chip else None),
            vram_gb=round(int(size[1]) / 2**20, 1) if size else None,
        )
        bus = _bus(int(location)) if re.fullmatch("[1-9][0-9]{0,7}", location) else None
        devices.append(Device(gpu=gpu, bus=bus))
    return Reading(facts=facts, devices=tuple(devices))


# GPU[0]		: Card Series: 		AMD Radeon RX 7900 XTX
# GPU[0]		: Card Model: 		0x744c
# GPU[0]		: GFX Version: 		gfx1100
# GPU[0]		: VRAM Total Memory (B): 25753026560
# with --json: {"card0": {"Card Series": "AMD Radeon RX 7900 XTX", "Card Model": "0x744c"}}
_ROCM_SMI = r"(?m)^[ \t]{0,8}GPU\[(\d{1,3})\]\s{0,40}: ([\w ()]{2,40}):[ \t]{0,40}(\S[^\n]{0,120})$"
_CARD = r"\"card(\d{1,3})\": ?\{([^{}]{2,8000})\}"
_PAIR = r"\"([\w ()]{2,40})\": ?\"([^\"\n]{1,120})\""
# GPU  Temp (DieEdge)  AvgPwr … ⏎ 0    51.0c …     Device  [Model : Revision] … ⏎ 0       [0x0e3b : 0xc3]       45.0°C
_CONCISE = r"(?m)^(\d{1,3}) {1,8}(?:\d {1,8}(0x[0-9a-f]{4}),|[^\n]{0,60}\d(?:\.\d{1,2})?(?:°C|c) )"


def read_rocm_smi(text: str) -> Reading | None:
    """Return the GPUs in rocm-smi's lines or JSON, else one for each row of its table; None for any other text."""
    cards: dict[int, dict[str, str]] = {}
    for number, key, value in re.findall(_ROCM_SMI, text):
        cards.setdefault(int(number), {}).setdefault(key.strip().lower(), value.strip())
    for number, block in re.findall(_CARD, text):
        cards.setdefault(int(number), {}).update({key.lower(): value for key, value in re.findall(_PAIR, block)})
    if "ROCm System Management Interface" in text:
        cards = cards or {int(number): {"device id": chip} for number, chip in re.findall(_CONCISE, text)}
    elif not any({"card series", "card model", "vram total memory (b)"} & facts.keys() for facts in cards.values()):
        return None
    devices = tuple(_card(facts) for _number, facts in sorted(cards.items()))
    return Reading(facts={"os": "linux"}, devices=devices)


def _card(facts: dict[str, str]) -> Device:
    """Return the GPU by values that rocm-smi prints, with their names in lower case, such as "card series"."""
    shown = (facts.get(key, "") for key in ("card model", "device id", "card series"))
    chip = next((found[1] for text in shown if (found := re.fullmatch(r"0x([0-9a-f]{4})", text))), None)
    names = (facts.get(key, "") for key in ("card series", "device name", "card model"))
    name = next((text for text in names if text and not text.startswith("0x") and text != "N/A"), None)
    target = facts.get("gfx version", "")
    size = facts.get("vram total memory (b)", "")
    gpu = Gpu(
        vendor=Vendor.AMD,
        name=name,
        gfx=re.sub(r"^gfx9010$", "gfx90a", target) if target.startswith("gfx") else None,
        pci_id=pci_id(Vendor.AMD, chip),
        vram_gb=round(int(size) / 2**30, 1) if size.isdigit() else None,
    )
    return Device(gpu=gpu)


# 7.2.0-43
def read_rocm_release(text: str) -> str | None:
    """Return the ROCm version (`7.2.1`) in /opt/rocm/.info/version or a folder's name (`rocm-7.2.1`); None if none."""
    found = re.search(r"(?:^|rocm-)(\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)(?![\d.])", text.strip())
    return found[1] if found else None


_FIRST_LINES = 50  # of a text, at which JSON may begin
_DEEPEST = 6  # both tools nest less; a hostile text could nest without end


# {"gpu_data": [{"gpu": 0,
#     "asic": {"market_name": "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M]", "vendor_id": "0x1002",
#              "device_id": "0x744c", "target_graphics_version": "gfx1100"},
#     "bus": {"bdf": "0000:03:00.0"}}]}
def read_amd_smi(text: str) -> tuple[Device, ...] | None:
    """Return the GPUs in the output of `amd-smi static --asic --bus --vram --json`; None without any.

    It is a list or, since ROCm 7, an object that holds one. A GPU with a PCI id gets no name: the catalogue has it.
    """
    devices = []
    for values in (values for values in _json_objects(text) if _part(values, "asic")):
        asic, size = _part(values, "asic"), _part(values, "vram").get("size")
        target, device = str(asic.get("target_graphics_version")).lower(), _hex(asic.get("device_id"))
        # In MB of 2**20 bytes: a number, or since ROCm 6.1 an object with value and unit.
        megabytes = size.get("value") if isinstance(size, dict) else str(size).removesuffix(" MB")
        gpu = Gpu(
            vendor=Vendor.AMD,
            # By its id the catalogue names one card, not five.
            name=None if device else _text(asic.get("market_name")),
            gfx=target if re.fullmatch(r"gfx[0-9a-f]{3,4}", target) else None,
            pci_id=pci_id(Vendor.AMD, device),
            vram_gb=gib(_number(megabytes)),
        )
        bus = bus_address(str(_part(values, "bus").get("bdf")))
        devices.append(Device(gpu=gpu, bus=bus, index=_number(values.get("gpu"))))
    return tuple(devices) or None


# {"device_id": 0,
#     "device_name": "Intel(R) Arc(TM) A770 Graphics",
#     "pci_bdf_address": "0000:03:00.0",
#     "pci_device_id": "0x56a0",
#     "memory_physical_size_byte": "16225243136"}
def read_xpu_smi(text: str) -> tuple[Device, ...] | None:
    """Return the GPUs in the output of `xpu-smi discovery -j`, with or without `-d N`; None without any.

    Only with `-d N` is the memory reported. A GPU with a PCI id gets no name: the catalogue has it.
    """
    devices = []
    for values in (values for values in _json_objects(text) if "pci_bdf_address" in values):
        device, size = _hex(values.get("pci_device_id")), _number(values.get("memory_physical_size_byte"))
        gpu = Gpu(
            vendor=Vendor.INTEL,
            name=None if device else _text(values.get("device_name")),
            pci_id=pci_id(Vendor.INTEL, device),
            vram_gb=round(size / 2**30, 1) if size else None,
            driver=_text(values.get("driver_version")),
        )
        bus = bus_address(str(values["pci_bdf_address"]))
        devices.append(Device(gpu=gpu, bus=bus, index=_number(values.get("device_id"))))
    return tuple(devices) or None


def _json_objects(text: str) -> Iterator[dict[str, object]]:
    """Yield the objects, the outermost first and down to the sixth level, of JSON that ends a text; none without.

    The JSON begins a line; lines of warnings before it may begin with a bracket, too.
    """
    values: list[object] = []
    for start in islice(re.finditer(r"^[ \t]*[\[{]", text, re.MULTILINE), _FIRST_LINES):
        with suppress(msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            values = [msgspec.json.decode(text[start.start() :])]
            break
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

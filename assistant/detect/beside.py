"""Notes what a text tells of a GPU outside any list: its memory, its driver, its PCI id."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from assistant.catalog.identity import identify
from assistant.catalog.names import patterns, vendor_of
from assistant.detect.adapters import note_adapter, note_nvidia
from assistant.detect.observations import Notes
from assistant.model.machine import Gpu, Vendor

_MOST = 200  # places of one kind that are looked at (chosen)
_SIZE = r"(\d{1,6}(?:\.\d{1,2})?) ?(G|GB|GiB|M|MB|MiB)(?![A-Za-z0-9_])(?! ?(?:of )?(?:ram\b|ddr|内存|memory|system|/s))"
# Task Manager: X ⏎ Dedicated GPU memory 0.8/4.0 GB
_TASK_MANAGER = r"(?:\s?(?:专用 ?GPU ?内存|Dedicated GPU memory)[: ]{0,2}[\d.]{1,5} ?/ ?)"
# RTX 4060Ti 16G    3060 (12 GB)    RTX 3080 Ti, 12GB    X (98304 MiB, 97280 MiB free)
_AFTER = re.compile(
    r"[ \t,，(（|/-]{0,4}(?:Laptop GPU |with |的 ?|是 ?|有 ?|de |con |mit |avec |改 ?)?"
    rf"{_TASK_MANAGER}?[ (（]{{0,2}}{_SIZE}",
    re.IGNORECASE,
)
# 4095MB NVIDIA GeForce GTX 1050 Ti
_BEFORE = re.compile(rf"(?<![\w.]){_SIZE} (?:NVIDIA |AMD |Intel )?(?:GeForce |Radeon )?$", re.IGNORECASE)
# Device detect: memory=16.0 (SD.Next)    (Get-ItemProperty … -Name HardwareInformation.qwMemorySize)…/1GB ⏎ 8
# GPU 0 has a total capacity of 7.79 GiB of which    (GPU 0; 5.81 GiB total capacity; …     (PyTorch, out of memory)
_ASKED = (
    r"total capacity of ([\d.]{3,6}) GiB|([\d.]{3,6}) GiB total capacity|Device detect: memory=([\d.]{1,6})"
    r"|qwMemorySize[^\n]{0,40}/ ?1GB[^\n]{0,20}\n\s{0,8}(\d{1,3})(?![\d.])"
)
# VRAM：6G    各32G显存    Detected Free GPU Memory: 8192 MB    Memory Size 8192 MB    8gb of vram    VRAM 15983
# Max memory: 23.568 GB (Unsloth)    专用 GPU 内存 0.0/6.0 GB
_ALONE = re.compile(
    r"(?:\bv-?ram|显存|\bgpu memory|\b(?:dedicated )?video memory|\bmemory size|\bmax memory|gpu ?内存)"
    r"(?!_?(?:un)?used|_free|占用)[^\d\n]{0,12} {0,60}(?:[\d.]{1,5} ?/ ?)?"
    r"(\d{1,6}(?:\.\d{1,3})?) ?([GM])i?B?(?![A-Za-z0-9_])"
    r"|(?<![A-Za-z0-9_.])(\d{1,3}) ?(G)i?B? ?(?:of )?(?:的)?(?:v-?ram|显存)"
    r"|\bVRAM (\d{4,6})(?![\w.]| ?[GM])|" + _ASKED,
    re.IGNORECASE,
)
# PCI\\VEN_10DE&DEV_1F82&SUBSYS_…    PCI_VEN_1002&DEV_731F…    Device ID: 10DE 2783 - 196E 141D
# modalias : pci:v000010DEd000011C6sv…    pci:vendor=8086,device=56A0,card=0    VENDOR= 0x10de, DEVICE=0x25a0 (Chromium)
# Vendor: pci 0x8086 "Intel Corporation" ⏎ Device: pci 0x56c1
# [drm] initializing kernel modesetting (DIMGREY_CAVEFISH 0x1002:0x73EF 0x1043:0x05E5 0xC1).
# NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2b85)    kfd kfd: amdgpu: added device 1002:744c
# pci 0000:01:00.0: [10de:2204] type 00 class 0x030000
_PCI_ID = re.compile(
    r"(?:VEN_|(?:Device|设备) ?ID:? {0,30}|pci:v0000|pci:vendor=|VENDOR= ?0x|Vendor: pci 0x|modesetting \(\w{2,30} 0x"
    r"|PCI ID: |added device |0000:\w\w:\w\w\.\d: \[)"
    r"([0-9A-F]{4})"
    r"(?:&DEV_|d0000|,device=|[^\n]{0,60}?, DEVICE= ?0x| [^\n]{0,60}\n\s{0,9}Device: pci 0x|:0x|:| )"
    r"([0-9A-F]{4})(?![0-9A-F])",
    re.IGNORECASE,
)

_OF_DRM = re.compile(r"\[drm\] Found [\w/-]{2,40} \(device ID ([0-9a-f]{4})\)")  # Intel's drivers i915 and xe


def note_memory(text: str, notes: Notes) -> None:
    """Give each GPU whose memory no list told the size that stands beside its name, or the only one that is told."""
    names = {_name(seen.gpu) for seen in notes.gpus}
    unknown = {_name(seen.gpu) for seen in notes.gpus if seen.gpu.vram_gb is None}
    sizes = {name: _beside(text, name) for name in unknown if name}
    if len(names) == 1 and unknown and not any(sizes.values()) and (told := _ALONE.search(text)):
        unit = told[2] or told[4] or ("M" if told[5] else "G")
        sizes = {name: _gib(next(filter(None, told.group(1, 3, 5, 6, 7, 8, 9))), unit) for name in names}
    for at, seen in enumerate(notes.gpus):
        if seen.gpu.vram_gb is None and (size := sizes.get(_name(seen.gpu))):
            notes.gpus[at] = replace(seen, gpu=replace(seen.gpu, vram_gb=size))


def _name(gpu: Gpu) -> str:
    """Return a GPU's name, or the one that its PCI id has in the catalogue."""
    known = identify(gpu.pci_id)
    return gpu.name or (known.name if known else "")


def _beside(text: str, name: str) -> float | None:
    """Return the size that stands right after or before a name anywhere in a text, else the one within the name."""
    number = re.search(r"\d{3,4} ?(?:Ti|Super|XTX?)?\b.{0,20}$", name, re.IGNORECASE)
    spellings = (name, number[0], number[0].removesuffix(" Laptop GPU")) if number else (name,)
    for wanted in dict.fromkeys(spelling.lower() for spelling in spellings):
        for at in _places(text.lower(), wanted):
            after = _AFTER.match(text, at + len(wanted))
            before = _BEFORE.search(text[max(0, at - 40) : at])
            if told := after or before:
                return _gib(told[1], told[2])
    inside = set(re.findall(r"[ -](\d{1,3}) ?GB?\b", name, re.IGNORECASE))
    return float(inside.pop()) if len(inside) == 1 else None


def _places(text: str, wanted: str) -> Iterator[int]:
    at = -1
    for _place in range(_MOST):
        at = text.find(wanted, at + 1)
        if at < 0:
            return
        yield at


def _gib(number: str, unit: str) -> float | None:
    size = float(number) / (1 if unit[0] in "gG" else 1024)
    return round(size, 1) if 0.1 <= size <= 1024 else None  # noqa: PLR2004 - no GPU has less or more


def note_pci_ids(text: str, notes: Notes) -> None:
    """Note the GPUs whose PCI ids stand anywhere; where one of that maker is known without an id, it is that one."""
    found = [f"{one[1]}:{one[2]}" for one in islice(_PCI_ID.finditer(text), _MOST)]
    found += [f"8086:{device}" for device in _OF_DRM.findall(text)[:_MOST]]
    ids = dict.fromkeys(pci_id.lower() for pci_id in found)
    seen = {item.gpu.pci_id for item in notes.gpus}
    for pci_id in ids:
        known = identify(pci_id)
        if pci_id in seen or known is None:  # a bridge or a sound card
            continue
        mine = [at for at, item in enumerate(notes.gpus) if item.gpu.vendor is vendor_of(pci_id)]
        open_ = [at for at in mine if notes.gpus[at].gpu.pci_id is None]
        if len(open_) == 1:
            item = notes.gpus[open_[0]]
            notes.gpus[open_[0]] = replace(item, gpu=replace(item.gpu, pci_id=pci_id))
        elif not mine:
            note_adapter(Gpu(vendor=vendor_of(pci_id), pci_id=pci_id), "report", notes)


# Adrenalin 25.3.1    with 24.12.1 drivers    驱动版本 24.8.1
_ADRENALIN = re.compile(
    r"(?:adrenalin|drivers?|驱动)[^\n\d]{0,12}(2\d\.\d{1,2}\.\d{1,2})(?![\w.])"
    r"|(?<![\w.])(2\d\.\d{1,2}\.\d{1,2}) (?:adrenalin|drivers?\b|驱动)",
    re.IGNORECASE,
)


def note_drivers(text: str, notes: Notes) -> None:
    """Give a maker's only GPU the only driver of that maker that the text tells, by the form of its number."""
    told = {Vendor(maker): set(form.findall(text)) for maker, form in patterns("wddm").items()}
    if not told[Vendor.AMD]:
        told[Vendor.AMD] = {one[1] or one[2] for one in _ADRENALIN.finditer(text)}
    for maker, versions in told.items():
        mine = [at for at, seen in enumerate(notes.gpus) if seen.gpu.vendor is maker]
        if len(mine) == len(versions) == 1 and notes.gpus[mine[0]].gpu.driver is None:
            seen = notes.gpus[mine[0]]
            notes.gpus[mine[0]] = replace(seen, gpu=replace(seen.gpu, driver=next(iter(versions))))
            note_nvidia(notes.gpus[mine[0]].gpu, "text", notes)

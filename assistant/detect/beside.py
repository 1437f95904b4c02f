"""Notes what a text tells of a GPU outside any list: the memory beside its name, the PCI id that Windows prints."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from assistant.catalog.identity import identify
from assistant.catalog.names import vendor_of
from assistant.detect.adapters import note_adapter
from assistant.detect.observations import Notes
from assistant.model.machine import Gpu
from assistant.parsers.windows import pci_id_of

_MOST = 200  # places of one kind that are looked at (chosen)
_SIZE = r"(\d{1,6}(?:\.\d{1,2})?) ?(G|GB|GiB|M|MB|MiB)\b(?! ?(?:of )?(?:ram\b|ddr|内存|memory|system|/s))"
# RTX 4060Ti 16G    3060 (12 GB)    RTX 3080 Ti, 12GB    X (98304 MiB, 97280 MiB free)    X|  6064963584|
_AFTER = re.compile(
    rf"[ \t,(|/-]{{0,4}}(?:Laptop GPU |with |改 ?)?[ (]{{0,2}}{_SIZE}"
    r"|[^\n]{0,80}[| ](\d{10,12})\||[^\n]{0,80}[| ](\d{4,6})M\|",
    re.IGNORECASE,
)
# 4095MB NVIDIA GeForce GTX 1050 Ti
_BEFORE = re.compile(rf"(?<![\w.]){_SIZE} (?:NVIDIA |AMD |Intel )?(?:GeForce |Radeon )?$", re.IGNORECASE)
# VRAM：6G    各32G显存    Detected Free GPU Memory: 8192 MB    Memory Size 8192 MB    8gb of vram    VRAM 15983
_ALONE = re.compile(
    r"(?:\bv-?ram|显存|\bgpu memory|\b(?:dedicated )?video memory|\bmemory size|\bmax memory)[^\d\n]{0,12}"
    r"(\d{1,6}(?:\.\d{1,2})?) ?([GM])i?B?\b"
    r"|(?<![A-Za-z0-9_.])(\d{1,3}) ?(G)i?B? ?(?:of )?(?:的)?(?:v-?ram|显存)"
    r"|\bVRAM (\d{4,6})(?![\w.]| ?[GM])",
    re.IGNORECASE,
)
# PCI\\VEN_10DE&DEV_1F82&SUBSYS_…    PCI_VEN_1002&DEV_731F…    Device ID: 10DE 2783 - 196E 141D
_WINDOWS_ID = re.compile(
    r"VEN_[0-9A-F]{4}&DEV_[0-9A-F]{4}|Device ID:? {1,30}([0-9A-F]{4}) ([0-9A-F]{4}) -", re.IGNORECASE
)


def note_memory(text: str, notes: Notes) -> None:
    """Give each GPU whose memory no list told the size that stands beside its name, or the only one that is told."""
    names = {seen.gpu.name or "" for seen in notes.gpus}
    unknown = {seen.gpu.name or "" for seen in notes.gpus if seen.gpu.vram_gb is None}
    sizes = {name: _beside(text, name) for name in unknown if name}
    if len(names) == 1 and unknown and not any(sizes.values()) and (told := _ALONE.search(text)):
        sizes = {name: _gib(told[1] or told[3] or told[5], told[2] or told[4] or "M") for name in names}
    for at, seen in enumerate(notes.gpus):
        if seen.gpu.vram_gb is None and (size := sizes.get(seen.gpu.name or "")):
            notes.gpus[at] = replace(seen, gpu=replace(seen.gpu, vram_gb=size))


def _beside(text: str, name: str) -> float | None:
    """Return the size that stands right after or before a name anywhere in a text, else the one within the name."""
    number = re.search(r"\d{3,4} ?(?:Ti|Super|XTX?)?\b.{0,20}$", name, re.IGNORECASE)
    for wanted in dict.fromkeys((name.lower(), number[0].lower() if number else name.lower())):
        for at in _places(text.lower(), wanted):
            after = _AFTER.match(text, at + len(wanted))
            before = _BEFORE.search(text[max(0, at - 40) : at])
            if after and after[3]:
                return round(int(after[3]) / 2**30, 1)
            if after and after[4]:
                return _gib(after[4], "M")
            if told := after or before:
                return _gib(told[1], told[2])
    inside = re.search(r"[ -](\d{1,3}) ?GB\b", name, re.IGNORECASE)
    return float(inside[1]) if inside else None


def _places(text: str, wanted: str) -> Iterator[int]:
    at = -1
    for _place in range(_MOST):
        at = text.find(wanted, at + 1)
        if at < 0:
            return
        yield at


def _gib(number: str, unit: str) -> float | None:
    size = float(number) / (1 if unit[0] in "gG" else 1024)
    return round(size, 1) if 0.2 <= size <= 1024 else None  # noqa: PLR2004 - no GPU has less or more


def note_pci_ids(text: str, notes: Notes) -> None:
    """Note the GPUs whose PCI ids Windows prints; where one of that maker is known without an id, it is that one."""
    found = list(_WINDOWS_ID.finditer(text))[:_MOST]
    ids = dict.fromkeys(f"{one[1]}:{one[2]}".lower() if one[1] else pci_id_of(one[0]) or "" for one in found)
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

"""Readers of what AMD's kernel driver and tools tell."""

from __future__ import annotations

import re

from assistant.detect.parsers.guess import field
from assistant.model.machine import Gpu, Vendor
from assistant.model.record import Record

__all__ = ["RocmAgent", "kfd_node", "rocm_release", "rocminfo"]


class RocmAgent(Record, frozen=True):
    """One GPU as KFD or rocminfo tells it."""

    gpu: Gpu
    bus: str | None = None


def kfd_node(properties: str, banks: str = "") -> RocmAgent | None:
    """Read a KFD topology node's `properties` and its first memory bank's; None for a CPU node."""
    told = {name: int(value) for name, value in re.findall(r"^(\w+) (\d{1,20})[ \t]{0,40}$", properties, re.MULTILINE)}
    target = told.get("gfx_target_version", 0)
    if not told.get("simd_count") or not target:
        return None
    size = re.search(r"^size_in_bytes (\d{1,20})", banks, re.MULTILINE)
    gpu = Gpu(
        vendor=Vendor.AMD,
        gfx=f"gfx{target // 10000}{target // 100 % 100:x}{target % 100:x}",
        pci_id=f"{told.get('vendor_id', 0x1002):04x}:{told['device_id']:04x}" if told.get("device_id") else None,
        vram_gb=round(int(size[1]) / 2**30, 1) if size else None,
    )
    return RocmAgent(gpu=gpu, bus=_bus(told["location_id"], told.get("domain", 0)) if "location_id" in told else None)


def _bus(location: int, domain: int = 0) -> str:
    """Spell KFD's location (bus, device and function in one number) as the kernel spells addresses."""
    return f"{domain:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7}"


def rocminfo(text: str) -> tuple[RocmAgent, ...] | None:
    """Read the GPU agents off rocminfo's output; None when it is not rocminfo's."""
    if "HSA Agents" not in text and "HSA System Attributes" not in text:
        return None
    blocks = re.split(r"^\*{3,20}[ \t]{0,40}\nAgent \d{1,4}[ \t]{0,40}\n\*{3,20}", text, flags=re.MULTILINE)[1:]
    return tuple(_agent(block) for block in blocks if re.search(r"^[ \t]{0,40}Device Type:\s*GPU", block, re.MULTILINE))


def _agent(block: str) -> RocmAgent:
    name, marketing = field(block, "Name"), field(block, "Marketing Name")
    chip = re.search(r"^[ \t]{0,40}Chip ID:\s*\d{1,8}\(0x([0-9a-f]{1,6})\)", block, re.MULTILINE)
    location = re.search(r"^[ \t]{0,40}BDFID:\s*(\d{1,8})", block, re.MULTILINE)
    size = re.search(r"GLOBAL[^\n]{0,80}\n\s*Size:\s*(\d{1,15})", block)
    gpu = Gpu(
        vendor=Vendor.AMD,
        name=marketing or None,
        gfx=name.partition(":")[0] if name.startswith("gfx") else None,
        pci_id=f"1002:{chip[1]:0>4}" if chip else None,
        vram_gb=round(int(size[1]) / 2**20, 1) if size else None,
    )
    return RocmAgent(gpu=gpu, bus=_bus(int(location[1])) if location and int(location[1]) else None)


def rocm_release(text: str) -> str | None:
    """Read a ROCm version (`7.2.1`) off /opt/rocm/.info/version or a folder's name (`rocm-7.2.1`)."""
    found = re.search(r"(?:^|rocm-)(\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)(?![\d.])", text.strip())
    return found[1] if found else None

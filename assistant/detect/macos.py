"""Probes for macOS; system_profiler, which takes a second, is asked only on Macs with Intel processors."""

from __future__ import annotations

import re

from assistant.detect.common import Notes, reason_not_a_gpu
from assistant.host.base import Host
from assistant.model.machine import Gpu, Vendor
from assistant.parsers.apple import profiler_json

_NAMES = ("hw.memsize", "hw.optional.arm64", "sysctl.proc_translated", "machdep.cpu.brand_string")


def _sysctl(host: Host) -> dict[str, str]:
    """Ask the kernel; names that this Mac does not know fail by themselves and leave the others known."""
    return dict(re.findall(r"^([\w.]+): (.+)$", host.run("sysctl", *_NAMES).text, re.MULTILINE))


def release(host: Host, notes: Notes) -> None:
    """Note the release of macOS, the memory, and a Python that Rosetta translates."""
    version = re.search(r"ProductVersion:\s*([\d.]+)", host.run("sw_vers").text)
    notes.fact("os_version", f"macOS {version[1]}" if version else None, "sw_vers")
    values = _sysctl(host)
    size = values.get("hw.memsize", "")
    notes.fact("memory_gb", round(int(size) / 2**30, 1) if size.isdigit() else None, "sysctl")
    notes.fact("rosetta", values.get("sysctl.proc_translated") == "1" if values else None, "sysctl")


def gpus(host: Host, notes: Notes) -> None:
    """Note the GPU of the Apple chip, or the cards of a Mac with an Intel processor."""
    values = _sysctl(host)
    chip = values.get("machdep.cpu.brand_string", "")
    size = values.get("hw.memsize", "")
    if values.get("hw.optional.arm64") == "1" and re.fullmatch(r"Apple M\d+(?: \w+)?", chip):
        vram = round(int(size) / 2**30, 1) if size.isdigit() else None
        notes.gpu(Gpu(vendor=Vendor.APPLE, name=chip, integrated=True, vram_gb=vram), "sysctl")
        return
    answer = host.run("system_profiler", "-json", "SPDisplaysDataType")
    for gpu in profiler_json(notes.text_of("system_profiler", answer)) or ():
        if not reason_not_a_gpu(gpu.pci_id or "", name=gpu.name):
            notes.gpu(gpu, "system_profiler")

"""Probes for macOS; system_profiler, which takes a second, is asked only on Macs with Intel processors."""

from __future__ import annotations

import re

from assistant.detect.common import Notes, reason_not_a_gpu
from assistant.host.base import Host
from assistant.model.machine import Gpu, Vendor
from assistant.parsers.apple import read_profiler_json

_NAMES = ("hw.memsize", "hw.optional.arm64", "sysctl.proc_translated", "machdep.cpu.brand_string")


def _ask_sysctl(host: Host) -> dict[str, str]:
    """Return the values of `_NAMES` that the kernel gives, by name; those that this Mac does not know are left out."""
    return dict(re.findall(r"^([\w.]+): (.+)$", host.run("sysctl", *_NAMES).text, re.MULTILINE))


def release(host: Host, notes: Notes) -> None:
    """Record the release of macOS, the memory, and whether Rosetta translates this Python."""
    version = re.search(r"ProductVersion:\s*([\d.]+)", host.run("sw_vers").text)
    notes.record_fact("os_version", f"macOS {version[1]}" if version else None, "sw_vers")
    values = _ask_sysctl(host)
    size = values.get("hw.memsize", "")
    notes.record_fact("memory_gb", round(int(size) / 2**30, 1) if size.isdigit() else None, "sysctl")
    notes.record_fact("rosetta", values.get("sysctl.proc_translated") == "1" if values else None, "sysctl")


def gpus(host: Host, notes: Notes) -> None:
    """Record the GPU of the Apple chip, with all of the memory, or else the GPUs that system_profiler lists."""
    values = _ask_sysctl(host)
    chip = values.get("machdep.cpu.brand_string", "")
    size = values.get("hw.memsize", "")
    if values.get("hw.optional.arm64") == "1" and re.fullmatch(r"Apple M\d+(?: \w+)?", chip):
        vram = round(int(size) / 2**30, 1) if size.isdigit() else None
        notes.record_gpu(Gpu(vendor=Vendor.APPLE, name=chip, integrated=True, vram_gb=vram), "sysctl")
        return
    answer = host.run("system_profiler", "-json", "SPDisplaysDataType")
    for gpu in read_profiler_json(notes.read_answer("system_profiler", answer)) or ():
        if not reason_not_a_gpu(gpu.pci_id or "", name=gpu.name):
            notes.record_gpu(gpu, "system_profiler")

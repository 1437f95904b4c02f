"""Readers of the small files in which Linux describes itself, and of `lspci`."""

from __future__ import annotations

import re

from assistant.catalog.identity import identify, pci_id, vendor_of, vendor_of_name
from assistant.model.machine import Gpu, Vendor
from assistant.model.record import Record
from assistant.parsers import Device, Reading, bus_address


# NAME="Alpine Linux"
# VERSION_ID=3.21.3
def read_os_name(os_release: str) -> str | None:
    """Return name and number in /etc/os-release: `Ubuntu 24.04`; a rolling system has no number. None without name."""
    pairs = (line.partition("=") for line in os_release.splitlines())
    fields = {name: value.strip().strip("\"'") for name, _sign, value in pairs}
    name = fields.get("NAME") or fields.get("ID")
    return f"{name} {fields.get('VERSION_ID', '')}".strip() if name else None


# MemTotal:        8187281 kB
def read_total_memory_kib(meminfo: str) -> int | None:
    """Return the total memory in KiB in /proc/meminfo; None without it."""
    found = re.search(r"^MemTotal: {0,40}(\d{1,15}) kB", meminfo, re.MULTILINE)
    return int(found[1]) if found else None


class PciDevice(Record, frozen=True):
    """A PCI function: ids in lower-case hex, `kind` its class (`03`, `12`) and subclass, `driver` the bound one."""

    bus: str
    pci_id: str
    kind: str
    driver: str | None = None
    revision: str | None = None

    @property
    def vendor(self) -> Vendor:
        """Who made it."""
        return vendor_of(self.pci_id)


# DRIVER=amdgpu
# PCI_CLASS=30000
# PCI_ID=1002:73DF
# PCI_SLOT_NAME=0000:0b:00.0
# REVISION=0xc1
def read_pci_devices(uevents: str) -> tuple[PciDevice, ...]:
    """Return the devices in `uevent` descriptions, separated by empty lines, each with its REVISION line last.

    Descriptions without id, class or address are left out.
    """
    blocks = (dict(re.findall(r"^(\w+)=(.*)$", block, re.MULTILINE)) for block in uevents.split("\n\n"))
    return tuple(
        PciDevice(
            bus=fields["PCI_SLOT_NAME"].lower(),
            pci_id=fields["PCI_ID"].lower(),
            kind=fields["PCI_CLASS"].zfill(6)[:4],
            driver=fields.get("DRIVER"),
            revision=fields.get("REVISION"),
        )
        for fields in blocks
        if {"PCI_ID", "PCI_CLASS", "PCI_SLOT_NAME"} <= fields.keys()
    )


_LONGEST = 2 * 10**5  # characters (chosen): no machine lists more


# 03:00.0 Display controller [0380]: Advanced Micro Devices, Inc. [AMD/ATI] Device [1002:1114] (rev c3)
#     Subsystem: ASUSTeK Computer Inc. Device [1043:3c88]
#     Kernel driver in use: amdgpu
# without -nn:
# 01:00.0 VGA compatible controller: NVIDIA Corporation TU116 [GeForce GTX 1660 SUPER] (rev a1)
# with -n:
# 01:00.0 0300: 10de:2704 (rev a1)
_LSPCI = (
    r"(?m)^([0-9a-f]{4}:)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) "
    r"(VGA|3D|Display|Processing|03(?=\d\d: )|12(?=\d\d: ))[\w -]{0,30}(?: \[[0-9a-f]{4}\])?: "
    r"([^\n]{1,250})((?:\n[ \t]+[^\n]{0,300}){0,12})"
)
# A forum wraps long lines, within a name too:
# d8:00.0 Display controller: Advanced Micro Devices, Inc. [AMD/ATI] Arcturus GL
# -XL [Instinct MI100] (rev 01)
_WRAPPED = (
    r"(?m)^((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] [^\n]{10,200})\n"
    r"(?![0-9a-f:]{5,10}\.[0-7] |[ \t]*[A-Z][\w /]{2,30}: )"
    r"([^\n]{0,200}\(rev \w\w\)|[^\n]{1,200}(?=\n[^\n:]{0,200}\(rev \w\w\)))"
)


def read_lspci(text: str) -> Reading | None:
    """Return the GPUs in lspci's output, with ids (-nn), drivers (-k) or neither; None without any.

    Audio devices and NPUs are left out. `lspci` and `lspci -nn` may both be there: of two lines for one address, that
    with ids counts.
    """
    found: dict[str | None, Device] = {}
    text = text[:_LONGEST]
    for _line in range(2):
        text = re.sub(
            _WRAPPED,
            lambda line: (
                line[0] if "(rev " in line[1] else line[1].rstrip() + " "[: line[2][:1] != "-"] + line[2].lstrip()
            ),
            text,
        )
    for domain, address, kind, name, more in re.findall(_LSPCI, text):
        ids = _ids(name)
        vendor = vendor_of(ids[-1]) if ids else vendor_of_name(name)
        if kind in {"Processing", "12"} and vendor not in {Vendor.AMD, Vendor.NVIDIA}:
            continue
        driver = re.search(r"Kernel driver in use: (\w{1,20})", more)
        plain = _name_for_shared_id(name, ids[-1]) if ids else re.sub(r" \(rev \w\w\).*$", "", name)
        gpu = Gpu(vendor=vendor, name=plain, pci_id=ids[-1] if ids else None, driver=driver[1] if driver else None)
        bus = bus_address(f"{domain or '0000:'}{address}")
        if gpu.pci_id or bus not in found:
            found[bus] = Device(gpu=gpu, bus=bus)
    return Reading(facts={"os": "linux"}, devices=tuple(found.values())) if found else None


def _ids(name: str) -> list[str]:
    """Return the PCI ids beside a name, else that of its maker and the number in "Device 1db6"; [] for none."""
    ids = re.findall(r"\[([0-9a-f]{4}:[0-9a-f]{4})\]|^([0-9a-f]{4}:[0-9a-f]{4})\b", name)
    unknown = re.search(r"(?:Corporation|Inc\. \[AMD/ATI\]) Device ([0-9a-f]{4})(?![\w\[])", name)
    number = pci_id(vendor_of_name(name), unknown[1]) if unknown else None
    return [own or other for own, other in ids] or ([number] if number else [])


def _name_for_shared_id(line: str, number: str) -> str | None:
    """Return the product that lspci names in a line if the catalogue has several for its id (`number`); else None."""
    identity = identify(number)
    named = re.search(r"(?:Inc\. \[AMD/ATI\]|Corporation) ([A-Z][^\n]{3,100}?) \[[0-9a-f]{4}:", line)
    family = identity and re.search(r" / |\(", identity.name)
    return named[1] if family and named and not named[1].startswith("Device") else None

"""Readers of the small files in which Linux describes itself."""

from __future__ import annotations

import re

from assistant.catalog.names import vendor_of
from assistant.model.machine import Vendor
from assistant.model.record import Record


# NAME="Alpine Linux"
# VERSION_ID=3.21.3
def os_name(os_release: str) -> str | None:
    """Read name and version number off /etc/os-release: `Ubuntu 24.04`; a rolling system has no number."""
    pairs = (line.partition("=") for line in os_release.splitlines())
    fields = {name: value.strip().strip("\"'") for name, _sign, value in pairs}
    name = fields.get("NAME") or fields.get("ID")
    return f"{name} {fields.get('VERSION_ID', '')}".strip() if name else None


# MemTotal:        8187281 kB
def meminfo_total_kib(meminfo: str) -> int | None:
    """Read the total memory in KiB off /proc/meminfo."""
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
def pci_devices(uevents: str) -> tuple[PciDevice, ...]:
    """Read `uevent` descriptions, parted by empty lines, each with its REVISION line last."""
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

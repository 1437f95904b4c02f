"""Sorts what sits on the PCI bus: GPUs, and the adapters that only look like one."""

from __future__ import annotations

import re

from assistant.catalog.identity import vendor_of
from assistant.detect.notes import Notes
from assistant.detect.parsers.system import PciDevice
from assistant.i18n import Text, _
from assistant.model.finding import Severity
from assistant.model.machine import Gpu, Vendor

__all__ = ["not_a_gpu", "sort_out"]

# Adapters without compute, by vendor or by vendor:device. Ids: https://pci-ids.ucw.cz/ (2026-11).
_SERVER_CONSOLES = {
    "1a03": "ASPEED",
    "102b": "Matrox G200",
    "19e5:1711": "Huawei iBMC",
    "1002:515e": "ATI ES1000",
    "1002:4752": "ATI Rage XL",
}
_VIRTUAL = {
    "1013:00b8": "Cirrus (QEMU)",
    "1234": "QEMU",
    "1414": "Microsoft",
    "15ad": "VMware",
    "1ab8": "Parallels",
    "1af4": "virtio",
    "1b36": "QXL",
    "1d0f": "Amazon EC2",
    "5853": "Xen",
    "80ee": "VirtualBox",
}

# Adapters that Windows lists and that no card stands behind, by a word of their names.
_VIRTUAL_NAMES = re.compile(
    r"\b(?:Microsoft (?:Basic|Remote|Hyper-V|Indirect)|Remote Desktop|RemoteFX|Parsec|"
    r"Virtual (?:Display|Desktop|Monitor)|IddSample|Indirect Display|DisplayLink|SpaceDesk|TeamViewer|Citrix|DameWare|"
    r"Mirage|VMware|VirtualBox|Parallels|QXL|"
    r"Meta Virtual|Sunshine|Oray|GameViewer|ToDesk|LuminonCore|AnyDesk)",
    re.IGNORECASE,
)


def not_a_gpu(pci_id: str, kind: str = "0300", name: str | None = None) -> Text:
    """Say in one sentence why an adapter does not count as a GPU; "" for one that does."""
    vendor = pci_id.partition(":")[0]
    if maker := _SERVER_CONSOLES.get(pci_id) or _SERVER_CONSOLES.get(vendor):
        text = _("{name} ({pci_id}) is a server's console adapter and cannot compute.")
        return text.format(name=name or maker, pci_id=pci_id)
    if maker := _VIRTUAL.get(pci_id) or _VIRTUAL.get(vendor):
        return _("{name} is a virtual display adapter and cannot compute.", name=name or f"{maker} ({pci_id})")
    if name and _VIRTUAL_NAMES.search(name):
        return _("{name} is a virtual display adapter and cannot compute.", name=name)
    if kind.startswith("12") and vendor_of(pci_id) in {Vendor.INTEL, Vendor.OTHER}:
        text = _("{pci_id} is an accelerator (an NPU or the like) that PyTorch's wheels do not drive.")
        return text.format(pci_id=pci_id)
    return ""


def sort_out(device: PciDevice, source: str, notes: Notes) -> None:
    """Note a PCI device as a GPU, or as a finding that says why it is none."""
    reason = not_a_gpu(device.pci_id, device.kind)
    if reason:
        notes.finding("adapter-skipped", Severity.INFO, reason, evidence=(source,))
        return
    gpu = Gpu(vendor=vendor_of(device.pci_id), pci_id=device.pci_id, driver=device.driver)
    notes.gpu(gpu, source, bus=device.bus, revision=device.revision)

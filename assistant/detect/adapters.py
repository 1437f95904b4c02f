"""Sorts what sits on the PCI bus: GPUs, and the adapters that only look like one."""

from __future__ import annotations

from assistant.catalog.identity import vendor_of
from assistant.detect.notes import Notes
from assistant.detect.parsers.system import PciDevice
from assistant.i18n import _
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


def not_a_gpu(pci_id: str, kind: str = "0300") -> str | None:
    """Say in one sentence why an adapter does not count as a GPU; None for one that does."""
    vendor = pci_id.partition(":")[0]
    if maker := _SERVER_CONSOLES.get(pci_id) or _SERVER_CONSOLES.get(vendor):
        return _("{maker} ({pci_id}) is a server's console adapter and cannot compute.").format(
            maker=maker, pci_id=pci_id
        )
    if maker := _VIRTUAL.get(pci_id) or _VIRTUAL.get(vendor):
        return _("{maker} ({pci_id}) is a virtual display adapter and cannot compute.").format(
            maker=maker, pci_id=pci_id
        )
    if kind.startswith("12") and vendor_of(pci_id) in {Vendor.INTEL, Vendor.OTHER}:
        return _("{pci_id} is an accelerator (an NPU or the like) that PyTorch's wheels do not drive.").format(
            pci_id=pci_id
        )
    return None


def sort_out(device: PciDevice, source: str, notes: Notes) -> None:
    """Note a PCI device as a GPU, or as a finding that says why it is none."""
    reason = not_a_gpu(device.pci_id, device.kind)
    if reason:
        return notes.finding("adapter-skipped", Severity.INFO, reason, evidence=(source,))
    gpu = Gpu(vendor=vendor_of(device.pci_id), pci_id=device.pci_id, driver=device.driver)
    return notes.gpu(gpu, source, bus=device.bus, revision=device.revision)

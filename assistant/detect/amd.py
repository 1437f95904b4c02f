"""Probes for AMD GPUs on Linux: the kernel's topology first, ROCm's tools only when it is silent."""

from __future__ import annotations

from assistant.detect.notes import Notes
from assistant.detect.parsers import amd, system
from assistant.host.base import Host
from assistant.i18n import _
from assistant.model.finding import Remedy, Severity
from assistant.model.machine import Gpu, Vendor

__all__ = ["amd_access", "amd_gpus", "rocm"]

NODES = "/sys/class/kfd/kfd/topology/nodes"
VENDOR = "1002"


def _has_amd(host: Host) -> bool:
    return any(device.vendor_id == VENDOR for device in system.pci_devices(host.ask("pci").text)) or bool(
        host.link("/dev/kfd")
    )


def amd_gpus(host: Host, notes: Notes) -> None:
    """Note each AMD GPU's gfx target and memory."""
    if not _has_amd(host):
        return
    for node in host.names(NODES).text.split():
        folder = f"{NODES}/{node}"
        agent = amd.kfd_node(host.read(f"{folder}/properties").text, host.read(f"{folder}/mem_banks/0/properties").text)
        if agent:
            notes.gpu(agent.gpu, folder, bus=agent.bus)
    for device in system.pci_devices(host.ask("pci").text):
        if device.vendor_id == VENDOR:
            _memory(host, notes, device)


def _memory(host: Host, notes: Notes, device: system.PciDevice) -> None:
    """Note what amdgpu says of a card's memory; KFD may be absent while amdgpu works."""
    path = f"/sys/bus/pci/devices/{device.bus}/mem_info_vram_total"
    size = host.read(path).text.strip()
    if size.isdigit():
        gpu = Gpu(vendor=Vendor.AMD, vram_gb=round(int(size) / 2**30, 1))
        notes.gpu(gpu, path, bus=device.bus)


def rocm(host: Host, notes: Notes) -> None:
    """Note the installed ROCm and its tools; ask rocminfo only where the kernel tells nothing."""
    if not _has_amd(host):
        return
    version = host.read("/opt/rocm/.info/version")
    notes.fact("rocm_version", amd.rocm_release(version.text), "/opt/rocm/.info/version")
    tool = host.which("rocminfo") or host.link("/opt/rocm/bin/rocminfo")
    notes.fact("rocm_tools", bool(tool), "PATH")


def amd_access(host: Host, notes: Notes) -> None:
    """Say what keeps this user from computing on an AMD GPU: no /dev/kfd, or no right to open it."""
    if not _has_amd(host):
        return
    kfd = host.access("/dev/kfd")
    if kfd.status == "denied":
        text = _("This user may not open /dev/kfd, which ROCm computes through.")
        commands = ("sudo usermod -aG render,video $USER",)
        remedy = Remedy(text=_("Join the groups render and video, then log in again."), commands=commands)
        notes.finding("kfd-permission", Severity.WARNING, text, remedies=(remedy,))
    elif kfd.status == "missing":
        text = _("An AMD GPU is there, but /dev/kfd is not: the amdgpu driver is not loaded or not passed in.")
        notes.finding("amdgpu-driver-not-loaded", Severity.WARNING, text)

"""Probes for AMD GPUs on Linux: the kernel's topology first, AMD's own tools only where that is silent."""

from __future__ import annotations

from assistant.detect.common import Notes
from assistant.detect.linux import CONTAINER_FILES
from assistant.host.base import Host
from assistant.i18n import _
from assistant.model.finding import Remedy, Severity
from assistant.model.machine import Gpu, Vendor
from assistant.parsers import amd, linux

NODES = "/sys/class/kfd/kfd/topology/nodes"


def _amd_on_bus(host: Host) -> list[linux.PciDevice]:
    devices = linux.pci_devices(host.ask("pci").text)
    return [device for device in devices if device.vendor is Vendor.AMD and device.driver != "radeon"]


def amd_gpus(host: Host, notes: Notes) -> None:
    """Note each AMD GPU's gfx target and memory."""
    for node in sorted(host.names(NODES).text.split(), key=lambda name: (len(name), name)):
        folder = f"{NODES}/{node}"
        agent = amd.kfd_node(host.read(f"{folder}/properties").text, host.read(f"{folder}/mem_banks/0/properties").text)
        if agent:
            notes.devices([agent], folder)
    for device in _amd_on_bus(host):
        path = f"/sys/bus/pci/devices/{device.bus}/mem_info_vram_total"
        size = host.read(path).text.strip()
        if size.isdigit():
            notes.gpu(Gpu(vendor=Vendor.AMD, vram_gb=round(int(size) / 2**30, 1)), path, bus=device.bus)


def rocm(host: Host, notes: Notes) -> None:
    """Note the installed ROCm; ask its tools where the kernel reports no gfx target: in WSL, in some containers."""
    wsl = bool(host.link("/dev/dxg"))
    if not _amd_on_bus(host) and not host.link("/dev/kfd") and not wsl:
        return
    version = "/opt/rocm/.info/version"
    notes.fact("rocm_version", amd.rocm_release(host.read(version).text), version)
    tool = bool(host.which("rocminfo") or host.link("/opt/rocm/bin/rocminfo"))
    notes.fact("rocm_tools", tool, "PATH")
    if not wsl and host.names(NODES):
        return
    report = None
    if tool:
        answer = host.run("rocminfo")
        report = amd.rocminfo(answer.text)
        notes.could_not_look("rocminfo", answer)
        notes.devices(report.devices if report else (), "rocminfo")
    if not (report and report.devices) and host.which("amd-smi"):
        answer = host.run("amd-smi", "static", "--asic", "--bus", "--vram", "--json")
        notes.could_not_look("amd-smi", answer)
        notes.devices(amd.amd_smi(answer.text) or (), "amd-smi")


def amd_access(host: Host, notes: Notes) -> None:
    """Note what keeps this user from computing on an AMD GPU: no /dev/kfd, or no right to open it or the GPU's node."""
    if not _amd_on_bus(host):
        return
    kfd = host.access("/dev/kfd")
    if kfd.status == "missing":
        _kfd_missing(host, notes)
        return
    nodes = [f"/dev/dri/{name}" for name in host.names("/dev/dri").text.split() if name.startswith("renderD")]
    denied = [path for path in ("/dev/kfd", *nodes) if host.access(path).status == "denied"]
    if denied:
        text = _("This user has no access to {paths}, which ROCm needs.", paths=", ".join(denied))
        remedy = Remedy(
            text=_("Join the groups render and video, then log in again."),
            commands=("sudo usermod -aG render,video $USER",),
        )
        evidence = (f"groups: {' '.join(host.ask('groups').text.split())}",)
        notes.finding("kfd-permission", Severity.WARNING, text, evidence=evidence, remedies=(remedy,))


def _kfd_missing(host: Host, notes: Notes) -> None:
    """Note why /dev/kfd is missing: this container was not given it, or the kernel's driver is not loaded."""
    if any(host.link(path) for path in CONTAINER_FILES):
        key = "container-gpu-device-missing"
        text = _("The computer has an AMD GPU, but this container was not given it.")
        remedy = Remedy(
            text=_("Start the container with the GPU's device nodes."),
            commands=("docker run --device /dev/kfd --device /dev/dri --group-add video --group-add render …",),
        )
    else:
        key = "amdgpu-driver-not-loaded"
        text = _("This machine has an AMD GPU but no /dev/kfd: the kernel's amdgpu driver is not loaded.")
        remedy = Remedy(text=_("Load amdgpu, or use a newer kernel."), commands=("sudo modprobe amdgpu",))
    notes.finding(key, Severity.WARNING, text, remedies=(remedy,))

"""Probes for AMD GPUs on Linux: the kernel's topology first, AMD's own tools only where that is silent."""

from __future__ import annotations

from assistant.detect.notes import Notes
from assistant.host.base import Host
from assistant.i18n import _
from assistant.model.finding import Remedy, Severity
from assistant.model.machine import Gpu, Vendor
from assistant.parsers import amd, smi, system

NODES = "/sys/class/kfd/kfd/topology/nodes"


def _amd_on_bus(host: Host) -> list[system.PciDevice]:
    devices = system.pci_devices(host.ask("pci").text)
    return [device for device in devices if device.vendor is Vendor.AMD and device.driver != "radeon"]


def amd_gpus(host: Host, notes: Notes) -> None:
    """Note each AMD GPU's gfx target and memory."""
    for node in sorted(host.names(NODES).text.split(), key=lambda name: (len(name), name)):
        folder = f"{NODES}/{node}"
        agent = amd.kfd_node(host.read(f"{folder}/properties").text, host.read(f"{folder}/mem_banks/0/properties").text)
        if agent:
            notes.gpu(agent.gpu, folder, bus=agent.bus)
    for device in _amd_on_bus(host):
        path = f"/sys/bus/pci/devices/{device.bus}/mem_info_vram_total"
        size = host.read(path).text.strip()
        if size.isdigit():
            notes.gpu(Gpu(vendor=Vendor.AMD, vram_gb=round(int(size) / 2**30, 1)), path, bus=device.bus)


def rocm(host: Host, notes: Notes) -> None:
    """Note the installed ROCm; ask its tools where the kernel tells no gfx target: in WSL, in some containers."""
    wsl = bool(host.link("/dev/dxg"))
    if not _amd_on_bus(host) and not host.link("/dev/kfd") and not wsl:
        return
    version = "/opt/rocm/.info/version"
    notes.fact("rocm_version", amd.rocm_release(host.read(version).text), version)
    tool = next((path for path in (host.which("rocminfo"), host.link("/opt/rocm/bin/rocminfo")) if path), None)
    notes.fact("rocm_tools", tool is not None, "PATH")
    if not wsl and host.names(NODES):
        return
    answer = host.run("rocminfo") if tool else None
    agents = amd.rocminfo(answer.text) if answer else None
    if answer:
        notes.could_not_look("rocminfo", answer)
    for agent in agents or ():
        notes.gpu(agent.gpu, "rocminfo", bus=agent.bus)
    if not agents and host.which("amd-smi"):
        _ask_amd_smi(host, notes)


def _ask_amd_smi(host: Host, notes: Notes) -> None:
    answer = host.run("amd-smi", "static", "--asic", "--bus", "--vram", "--json")
    notes.could_not_look("amd-smi", answer)
    for device in smi.amd_smi(answer.text) or ():
        notes.gpu(device.gpu, "amd-smi", bus=device.bus)


def amd_access(host: Host, notes: Notes) -> None:
    """Say what keeps this user from computing on an AMD GPU: no /dev/kfd, or no right to open it or the GPU's node."""
    if not _amd_on_bus(host):
        return
    kfd = host.access("/dev/kfd")
    if kfd.status == "missing":
        _kfd_missing(host, notes)
        return
    nodes = [f"/dev/dri/{name}" for name in host.names("/dev/dri").text.split() if name.startswith("renderD")]
    denied = [path for path in ("/dev/kfd", *nodes) if host.access(path).status == "denied"]
    if denied:
        text = _("This user may not open {paths}, which ROCm computes through.")
        remedy = Remedy(
            text=_("Join the groups render and video, then log in again."),
            commands=("sudo usermod -aG render,video $USER",),
        )
        evidence = (f"groups: {' '.join(host.ask('groups').text.split())}",)
        paths = ", ".join(denied)
        notes.finding(
            "kfd-permission", Severity.WARNING, text.format(paths=paths), evidence=evidence, remedies=(remedy,)
        )


def _kfd_missing(host: Host, notes: Notes) -> None:
    if any(host.link(path) for path in ("/.dockerenv", "/run/.containerenv", "/.singularity.d")):
        text = _("The computer has an AMD GPU, but this container was not given it.")
        remedy = Remedy(
            text=_("Start the container with the GPU's device nodes."),
            commands=("docker run --device /dev/kfd --device /dev/dri --group-add video --group-add render …",),
        )
        notes.finding("container-gpu-device-missing", Severity.WARNING, text, remedies=(remedy,))
        return
    text = _("An AMD GPU is there, but /dev/kfd is not: the kernel's amdgpu driver is not loaded.")
    remedy = Remedy(text=_("Load amdgpu, or use a newer kernel."), commands=("sudo modprobe amdgpu",))
    notes.finding("amdgpu-driver-not-loaded", Severity.WARNING, text, remedies=(remedy,))

"""Probes for NVIDIA GPUs on Linux and Windows: its own library first, then the driver's files, then nvidia-smi."""

from __future__ import annotations

from assistant.detect.common import Notes
from assistant.host.base import Host
from assistant.model.machine import Gpu, Vendor
from assistant.parsers import linux, nvidia
from assistant.parsers.cards import bus_address

PROC = "/proc/driver/nvidia/version"
MODULE = "/sys/module/nvidia/version"
_SIGNS = (PROC, "/dev/nvidiactl", "/dev/nvhost-gpu", "/usr/lib/wsl/lib/libcuda.so.1")


def nvidia_gpus(host: Host, notes: Notes) -> None:
    """Note the driver and each GPU; where the driver does not answer, note what state it is in."""
    drivers = {device.driver for device in linux.pci_devices(host.ask("pci").text) if device.vendor is Vendor.NVIDIA}
    if not drivers and not any(host.link(path) for path in _SIGNS):
        return
    if _library(host, notes):
        return
    notes.fact("nvidia_driver", nvidia.driver_version(host.read(PROC).text), PROC)
    notes.fact("nvidia_driver", host.read(MODULE).text.strip() or None, MODULE)
    if not _tool(host, notes):
        state = _state(host, drivers, loaded="nvidia_driver" in notes.facts)
        notes.fact("nvidia_driver_state", state, "/sys/bus/pci/devices")


def nvidia_gpus_on_windows(host: Host, notes: Notes) -> None:
    """Note the driver and each GPU where NVIDIA's library is there; it comes with the driver."""
    if host.link(r"C:\Windows\System32\nvml.dll").status != "missing" and not _library(host, notes):
        _tool(host, notes)


def _library(host: Host, notes: Notes) -> bool:
    """Ask NVML; return whether it knew a device."""
    answer = host.facts("nvml")
    devices = answer.get("devices")
    if not isinstance(devices, list):
        return False
    notes.fact("nvidia_driver", answer.get("driver"), "NVML")
    notes.fact("cuda_driver_api", answer.get("cuda"), "NVML")
    for device in devices:
        if "nvgpu" in str(device.get("name")):  # a Jetson's own GPU, which its board describes better
            continue
        memory = device.get("memory")
        texts = {name: str(device[name]) for name in ("name", "pci_id", "compute_capability") if device.get(name)}
        vram = round(memory / 2**30, 1) if isinstance(memory, int) and memory else None
        notes.gpu(
            Gpu(vendor=Vendor.NVIDIA, vram_gb=vram, **texts),  # type: ignore[arg-type]  # the three fields are texts
            "NVML",
            bus=bus_address(str(device.get("bus"))),
        )
    return bool(devices)


def _tool(host: Host, notes: Notes) -> bool:
    """Ask nvidia-smi, whose complaint is kept when it has one; return whether it said anything of use."""
    answer = host.run("nvidia-smi")
    if answer.status == "missing":
        answer = host.run("/usr/lib/wsl/lib/nvidia-smi")
    report = nvidia.smi_table(answer.text)
    if report:
        for name, value in report.facts.items():
            notes.fact(name, value, "nvidia-smi")
        notes.devices(report.devices, "nvidia-smi")
    complaint = nvidia.smi_complaint(answer.text)
    if complaint:
        notes.fact("nvidia_driver_state", complaint, "nvidia-smi")
        notes.fact("nvidia_smi_output", answer.text.strip(), "nvidia-smi")
    else:
        notes.text_of("nvidia-smi", answer)
    return report is not None or complaint is not None


def _state(host: Host, drivers: set[str | None], *, loaded: bool) -> str | None:
    """Name why NVIDIA's driver does not answer: another has the GPU, none has, or this container was not given it."""
    if drivers & {"nouveau", "nova_core"}:
        return "nouveau"
    if "vfio-pci" in drivers:
        return "vfio"
    if loaded or "nvidia" in drivers:
        return "not-passed-in" if host.link("/dev/nvidiactl").status == "missing" else "failed"
    return "missing" if drivers else None

"""Probes for NVIDIA GPUs on Linux and Windows: its own library first, then the driver's files, then nvidia-smi."""

from __future__ import annotations

from assistant.detect.notes import Notes
from assistant.detect.parsers import nvidia, system
from assistant.host.base import Answer, Host
from assistant.i18n import _
from assistant.model.finding import Remedy, Severity
from assistant.model.machine import Gpu, Vendor

__all__ = ["nvidia_gpus"]

VENDOR = "10de"
PROC = "/proc/driver/nvidia/version"


def nvidia_gpus(host: Host, notes: Notes) -> None:
    """Note the driver and each GPU; where the driver does not answer, note what state it is in."""
    on_bus = [device for device in system.pci_devices(host.ask("pci").text) if device.vendor_id == VENDOR]
    proc = host.read(PROC)
    if not on_bus and not proc and not _signs(host):
        return
    if _library(host, notes):
        return
    notes.fact("nvidia_driver", nvidia.driver_version(proc.text), PROC)
    module = host.read("/sys/module/nvidia/version")
    notes.fact("nvidia_driver", module.text.strip() or None, "/sys/module/nvidia/version")
    _tool(host, notes)
    _state(host, notes, {device.driver for device in on_bus})


def _signs(host: Host) -> bool:
    """Look for NVIDIA where no PCI bus shows: WSL's libraries, a container's device node."""
    return bool(host.link("/usr/lib/wsl/lib/libcuda.so.1") or host.link("/dev/nvidiactl"))


def _library(host: Host, notes: Notes) -> bool:
    answer = host.ask("nvml")
    told = host.facts("nvml")
    devices = told.get("devices")
    if not isinstance(devices, list):
        notes.could_not_look("NVML", answer)
        return False
    notes.fact("nvidia_driver", told.get("driver"), "NVML")
    notes.fact("cuda_driver_api", told.get("cuda"), "NVML")
    for device in devices:
        notes.gpu(_device(device), "NVML", bus=_bus(device.get("bus")))
    if not devices:
        notes.looked("gpus", "NVML", "no device")
    return bool(devices)


def _device(told: dict[str, object]) -> Gpu:
    memory, name = told.get("memory"), told.get("name")
    return Gpu(
        vendor=Vendor.NVIDIA,
        name=str(name) if name else None,
        pci_id=str(told["pci_id"]) if told.get("pci_id") else None,
        vram_gb=round(memory / 2**30, 1) if isinstance(memory, int) and memory else None,
        compute_capability=str(told["compute_capability"]) if told.get("compute_capability") else None,
    )


def _bus(text: object) -> str | None:
    domain, colon, rest = str(text or "").lower().partition(":")
    return f"{domain[-4:]}:{rest}" if colon else None


def _tool(host: Host, notes: Notes) -> None:
    """Ask nvidia-smi, whose complaint is worth keeping when it has one."""
    answer = _run_smi(host)
    report = nvidia.smi_table(answer.text)
    if report:
        notes.fact("nvidia_driver", report.driver, "nvidia-smi")
        notes.fact("cuda_driver_api", report.cuda, "nvidia-smi")
        for row in report.rows:
            notes.gpu(row.gpu, "nvidia-smi", bus=row.bus)
    complaint = nvidia.smi_complaint(answer.text)
    if complaint:
        notes.fact("nvidia_driver_state", complaint, "nvidia-smi")
        notes.fact("nvidia_smi_output", answer.text.strip(), "nvidia-smi")
    elif answer.status != "failed" or not answer.text:
        notes.could_not_look("nvidia-smi", answer)


def _run_smi(host: Host) -> Answer:
    answer = host.run("nvidia-smi")
    return host.run("/usr/lib/wsl/lib/nvidia-smi") if answer.status == "missing" else answer


def _state(host: Host, notes: Notes, drivers: set[str | None]) -> None:
    """Say why the driver does not answer."""
    del host
    if "nouveau" in drivers or "nova" in drivers:
        notes.fact("nvidia_driver_state", "nouveau", "/sys/bus/pci/devices")
        text = _("The open nouveau driver drives this NVIDIA GPU; CUDA needs NVIDIA's own driver.")
        remedy = Remedy(text=_("Install NVIDIA's driver from your distribution, then restart the computer."))
        notes.finding("nvidia-nouveau", Severity.WARNING, text, remedies=(remedy,))
    elif "nvidia_driver" not in notes.facts:
        notes.fact("nvidia_driver_state", "missing", "/sys/module/nvidia")
        text = _("An NVIDIA GPU is there, but no NVIDIA driver is loaded.")
        remedy = Remedy(text=_("Install NVIDIA's driver, then restart the computer."))
        notes.finding("nvidia-driver-missing", Severity.WARNING, text, remedies=(remedy,))

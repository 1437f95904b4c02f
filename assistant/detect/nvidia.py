"""Probes for NVIDIA GPUs on Linux and Windows: its own library first, then the driver's files, then nvidia-smi."""

from __future__ import annotations

from assistant.detect.common import Notes
from assistant.host.base import Host
from assistant.model.machine import Gpu, Vendor
from assistant.parsers import bus_address, linux, nvidia

PROC = "/proc/driver/nvidia/version"
MODULE = "/sys/module/nvidia/version"
_SIGNS = (PROC, "/dev/nvidiactl", "/dev/nvhost-gpu", "/usr/lib/wsl/lib/libcuda.so.1")


def nvidia_gpus(host: Host, notes: Notes) -> None:
    """Record the driver and each GPU by NVML, else by nvidia-smi; if neither answers, record the driver's state.

    If NVML does not answer, the driver's version is first read in its own files. Do nothing without a sign of NVIDIA's
    hardware or driver.
    """
    drivers = {
        device.driver for device in linux.read_pci_devices(host.ask("pci").text) if device.vendor is Vendor.NVIDIA
    }
    if not drivers and not any(host.link(path) for path in _SIGNS):
        return
    if _ask_nvml(host, notes):
        return
    notes.record_fact("nvidia_driver", nvidia.read_driver_version(host.read(PROC).text), PROC)
    notes.record_fact("nvidia_driver", host.read(MODULE).text.strip() or None, MODULE)
    if not _ask_nvidia_smi(host, notes):
        state = _driver_state(host, drivers, loaded="nvidia_driver" in notes.facts)
        notes.record_fact("nvidia_driver_state", state, "/sys/bus/pci/devices")


def nvidia_gpus_on_windows(host: Host, notes: Notes) -> None:
    """Record the driver and each GPU by NVML, else by nvidia-smi; do nothing without NVML, which the driver brings."""
    if host.link(r"C:\Windows\System32\nvml.dll").status != "missing" and not _ask_nvml(host, notes):
        _ask_nvidia_smi(host, notes)


def _ask_nvml(host: Host, notes: Notes) -> bool:
    """Record the driver and the GPUs that NVML reports; return whether it reported any, a Jetson's skipped one too."""
    answer = host.facts("nvml")
    devices = answer.get("devices")
    if not isinstance(devices, list):
        return False
    notes.record_fact("nvidia_driver", answer.get("driver"), "NVML")
    notes.record_fact("cuda_driver_api", answer.get("cuda"), "NVML")
    for device in devices:
        if "nvgpu" in str(device.get("name")):  # a Jetson's own GPU, which its board describes better
            continue
        memory = device.get("memory")
        texts = {name: str(device[name]) for name in ("name", "pci_id", "compute_capability") if device.get(name)}
        vram = round(memory / 2**30, 1) if isinstance(memory, int) and memory else None
        notes.record_gpu(
            Gpu(vendor=Vendor.NVIDIA, vram_gb=vram, **texts),  # type: ignore[arg-type]  # the three fields are texts
            "NVML",
            bus=bus_address(str(device.get("bus"))),
        )
    return bool(devices)


def _ask_nvidia_smi(host: Host, notes: Notes) -> bool:
    """Record what nvidia-smi reports, and its error message; return whether there was either.

    If it failed in another way, a finding says so.
    """
    answer = host.run("nvidia-smi")
    if answer.status == "missing":
        answer = host.run("/usr/lib/wsl/lib/nvidia-smi")
    report = nvidia.read_smi_table(answer.text)
    if report:
        for name, value in report.facts.items():
            notes.record_fact(name, value, "nvidia-smi")
        notes.record_devices(report.devices, "nvidia-smi")
    complaint = nvidia.find_smi_complaint(answer.text)
    if complaint:
        notes.record_fact("nvidia_driver_state", complaint, "nvidia-smi")
        notes.record_fact("nvidia_smi_output", answer.text.strip(), "nvidia-smi")
    else:
        notes.read_answer("nvidia-smi", answer)
    return report is not None or complaint is not None


def _driver_state(host: Host, drivers: set[str | None], *, loaded: bool) -> str | None:
    """Return why NVIDIA's driver does not answer, by the kernel drivers of its devices and whether it is `loaded`.

    "nouveau", "vfio": that driver has the GPU. "not-passed-in": the driver is loaded, but this container has no device
    node. "failed": it is loaded, with one. "missing": it is not loaded. None: no device is known, and it is not loaded.
    """
    if drivers & {"nouveau", "nova_core"}:
        return "nouveau"
    if "vfio-pci" in drivers:
        return "vfio"
    if loaded or "nvidia" in drivers:
        return "not-passed-in" if host.link("/dev/nvidiactl").status == "missing" else "failed"
    return "missing" if drivers else None

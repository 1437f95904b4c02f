"""Probes for Linux, on metal, in a container or in WSL; a tool is started only when its vendor's GPU is there."""

from __future__ import annotations

from assistant.detect.adapters import sort_out
from assistant.detect.notes import Notes
from assistant.detect.parsers import system
from assistant.host.base import Host
from assistant.i18n import _
from assistant.model.finding import Severity

__all__ = ["adapters", "container", "memory", "release"]

PCI = "/sys/bus/pci/devices"


def release(host: Host, notes: Notes) -> None:
    """Note the distribution, its C library and whether this is WSL."""
    facts = {name: str(value) for name, value in host.facts("platform").items()}
    answer = host.read("/etc/os-release")
    notes.fact("os_version", system.os_name(answer.text), "/etc/os-release")
    notes.could_not_look("/etc/os-release", answer)
    notes.fact("wsl", "microsoft" in facts.get("release", "").lower(), "kernel release")
    if facts.get("libc") == "glibc":
        notes.fact("glibc", facts["libc_version"], "Python")
        return
    loaders = [name for name in host.names("/lib").text.splitlines() if name.startswith("ld-musl-")]
    if loaders:
        notes.fact("libc", "musl", f"/lib/{loaders[0]}")
        notes.finding(
            "libc-musl", Severity.WARNING, _("This system uses musl as its C library; PyTorch has no wheels for it.")
        )


def memory(host: Host, notes: Notes) -> None:
    """Note the memory that this process may use: the machine's, or the container's limit when that is lower."""
    total = system.meminfo_total_kib(host.read("/proc/meminfo").text)
    limits = {"/sys/fs/cgroup/memory.max": "", "/sys/fs/cgroup/memory/memory.limit_in_bytes": ""}
    found = {path: host.read(path).text.strip() for path in limits}
    bounds = {path: int(text) // 1024 for path, text in found.items() if text.isdigit()}
    bounds |= {"/proc/meminfo": total} if total else {}
    if bounds:
        path = min(bounds, key=lambda name: bounds[name])
        notes.fact("memory_gb", round(bounds[path] / 2**20, 1), path)


_CONTAINER_FILES = {"/.dockerenv": "docker", "/run/.containerenv": "podman", "/.singularity.d": "apptainer"}


def container(host: Host, notes: Notes) -> None:
    """Note which container this process runs in, if any."""
    if host.variable("KUBERNETES_SERVICE_HOST"):
        return notes.fact("container", "kubernetes", "KUBERNETES_SERVICE_HOST")
    for path, name in _CONTAINER_FILES.items():
        if host.link(path):
            return notes.fact("container", name, path)
    told = host.variable("container")
    return notes.fact("container", told.text or None, "environment variable container")


def adapters(host: Host, notes: Notes) -> None:
    """Note every display and accelerator device on the PCI bus."""
    answer = host.ask("pci")
    notes.could_not_look(PCI, answer)
    if not answer:
        return
    devices = system.pci_devices(answer.text)
    if not devices:
        notes.looked("gpus", PCI, "no display or accelerator device")
    for device in devices:
        sort_out(device, f"{PCI}/{device.bus}", notes)

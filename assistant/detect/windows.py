"""Probes for Windows: its registry and DXGI; no PowerShell and no tool is started."""

from __future__ import annotations

from assistant.catalog.names import vendor_of
from assistant.detect.adapters import not_a_gpu
from assistant.detect.notes import Notes
from assistant.detect.wsl import DISPLAY, VERSION
from assistant.host.base import Host
from assistant.i18n import _
from assistant.model.finding import Remedy, Severity
from assistant.model.machine import Gpu, Vendor
from assistant.parsers import windows

REGISTRY = "Windows registry"
_NPUS = r"HKLM\SYSTEM\CurrentControlSet\Control\Class\{f01a9d53-3ff6-48d2-9f97-c8a7004be10c}"
_SESSION = r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment"
_RUNTIMES = r"HKLM\SOFTWARE\Microsoft\VisualStudio\14.0\VC\Runtimes"


def _values(host: Host, key: str) -> dict[str, object]:
    told = host.facts("registry", key).get("values")
    return told if isinstance(told, dict) else {}


def _entries(host: Host, key: str) -> list[dict[str, object]]:
    """Give the values of a class key's numbered entries (0000, 0001, …)."""
    told = host.facts("registry", key).get("keys")
    return [told[name] for name in sorted(told) if name.isdigit()] if isinstance(told, dict) else []


def release(host: Host, notes: Notes) -> None:
    """Note Windows' release and build, and a Python that Windows emulates on an Arm processor."""
    notes.fact("os_version", windows.windows_name(_values(host, VERSION)), REGISTRY)
    notes.could_not_look(REGISTRY, host.registry(VERSION))
    build = str(host.facts("platform").get("build", ""))
    native = str(_values(host, _SESSION).get("PROCESSOR_ARCHITECTURE", ""))
    if native == "ARM64" and "(AMD64)" in build:
        text = _("The processor is Arm, but this Python is built for x64 and runs emulated.")
        remedy = Remedy(text=_("Use a Python built for Arm64."))
        notes.finding("python-emulated", Severity.INFO, text, remedies=(remedy,))


def memory(host: Host, notes: Notes) -> None:
    """Note the memory of the computer."""
    total = host.facts("memory").get("total")
    notes.fact("memory_gb", round(total / 2**30, 1) if isinstance(total, int) else None, "system")


def _present(host: Host) -> list[dict[str, object]] | None:
    """Give DXGI's hardware adapters; None when DXGI could not be asked."""
    told = host.facts("dxgi").get("adapters")
    if not isinstance(told, list):
        return None
    return [one for one in told if not one.get("software") and not one.get("remote")]


def adapters(host: Host, notes: Notes) -> None:
    """Note each display adapter of the registry that is present; DXGI tells which entries are of cards long gone."""
    answer, present = host.registry(DISPLAY), _present(host)
    there = {told.get("pci_id") for told in present or ()}
    notes.could_not_look(REGISTRY, answer)
    entries = [found for found in map(windows.adapter, _entries(host, DISPLAY)) if found]
    if answer and not entries:
        notes.looked("gpus", REGISTRY, "no display adapter")
    for found in entries:
        name, pci_id = found.gpu.name or "", found.gpu.pci_id
        reason = not_a_gpu(pci_id or "", name=name)
        if not reason and pci_id and present is not None and pci_id not in there:
            reason = _("{name} is known to Windows but is not there now.", name=name)
        if reason:
            notes.finding("adapter-skipped", Severity.INFO, reason)
            continue
        notes.gpu(found.gpu, REGISTRY)
        _driver(found, notes)


def _driver(found: windows.Adapter, notes: Notes) -> None:
    if found.gpu.vendor is Vendor.NVIDIA and found.gpu.driver:
        notes.fact("nvidia_driver", windows.nvidia_version(found.gpu.driver), REGISTRY)
    year = (found.date or "").rpartition("-")[2]
    if year.isdigit() and int(year) < _OLD_DRIVER:
        text = _("The driver of {name} is from {year}; update it before you rely on DirectML.")
        notes.finding("gpu-driver-old", Severity.INFO, text.format(name=found.gpu.name, year=year))


_OLD_DRIVER = 2021  # the year of the oldest drivers that DirectML's samples name (WDDM 2.9 and Windows 11 era)


def direct3d(host: Host, notes: Notes) -> None:
    """Note memory and Direct3D 12 level of each adapter that is present, and DirectML's own version."""
    for told in _present(host) or ():
        pci_id = str(told.get("pci_id"))
        if not_a_gpu(pci_id, name=str(told.get("name", ""))):
            continue
        size = told.get("memory")
        vram = round(size / 2**30, 1) if isinstance(size, int) and size > 2**29 else None
        gpu = Gpu(vendor=vendor_of(pci_id), name=str(told["name"]), pci_id=pci_id, vram_gb=vram)
        notes.gpu(gpu, "DXGI")
        if told.get("d3d12") is None:
            text = _("{name} offers no Direct3D 12, which DirectML needs.", name=told["name"])
            notes.finding("no-direct3d-12", Severity.WARNING, text, remedies=(Remedy(text=_("Update its driver.")),))
    library = host.ask("file_version", r"%SystemRoot%\System32\DirectML.dll")
    if library:
        notes.looked("os_version", "DirectML.dll", library.text)
    elif library.status == "missing":
        text = _("Windows has no DirectML.dll of its own; packages that bring theirs still work.")
        notes.finding("directml-dll-missing", Severity.INFO, text)


def runtimes(host: Host, notes: Notes) -> None:
    """Say whether Microsoft's Visual C++ runtime, which PyTorch's libraries load, is missing."""
    told = host.facts("registry", _RUNTIMES).get("keys")
    installed = isinstance(told, dict) and any(
        isinstance(entry, dict) and entry.get("Installed") for entry in told.values()
    )
    if host.registry(_RUNTIMES).status in {"ok", "missing"} and not installed:
        text = _("Microsoft's Visual C++ runtime is not installed; PyTorch cannot load its libraries without it.")
        remedy = Remedy(text=_("Install it from Microsoft."), commands=("winget install Microsoft.VCRedist.2015+.x64",))
        notes.finding("vc-runtime-missing", Severity.WARNING, text, remedies=(remedy,))


def npus(host: Host, notes: Notes) -> None:
    """List neural processors (NPUs), which are no GPUs."""
    for entry in _entries(host, _NPUS):
        if entry.get("DriverDesc"):
            text = _("{name} is a neural processor; PyTorch's wheels do not drive it.")
            notes.finding("npu-present", Severity.INFO, text.format(name=entry["DriverDesc"]))

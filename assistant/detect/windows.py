"""Probes for Windows: its registry and DXGI; no PowerShell and no tool is started."""

from __future__ import annotations

from assistant.catalog.identity import vendor_of
from assistant.detect.common import Notes, note_adapter, reason_not_a_gpu
from assistant.host.base import Host
from assistant.i18n import _
from assistant.model.finding import Severity
from assistant.model.machine import Gpu
from assistant.parsers import windows

REGISTRY = "Windows registry"
# Device setup classes (Display, ComputeAccelerator) have fixed GUIDs:
# https://learn.microsoft.com/windows-hardware/drivers/install/system-defined-device-setup-classes-available-to-vendors
DISPLAY = r"HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"
VERSION = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion"
_NPUS = r"HKLM\SYSTEM\CurrentControlSet\Control\Class\{f01a9d53-3ff6-48d2-9f97-c8a7004be10c}"
_SESSION = r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment"
_RUNTIME = "msvcp140.dll"  # python.org's Pythons bring vcruntime140.dll, but not this one
_RUNTIMES = r"HKLM\SOFTWARE\Microsoft\VisualStudio\14.0\VC\Runtimes"


def _registry_values(host: Host, key: str) -> dict[str, object]:
    values = host.facts("registry", key).get("values")
    return values if isinstance(values, dict) else {}


def _registry_entries(host: Host, key: str) -> list[dict[str, object]]:
    """Return the values of a class key's numbered entries (0000, 0001, …), sorted."""
    keys = host.facts("registry", key).get("keys")
    return [keys[name] for name in sorted(keys) if name.isdigit()] if isinstance(keys, dict) else []


def release(host: Host, notes: Notes) -> None:
    """Record Windows' release and build; a finding if Windows emulates this Python on an Arm processor."""
    notes.record_fact("os_version", windows.windows_name(_registry_values(host, VERSION)), REGISTRY)
    notes.read_answer(REGISTRY, host.registry(VERSION))
    build = str(host.facts("platform").get("build", ""))
    native = str(_registry_values(host, _SESSION).get("PROCESSOR_ARCHITECTURE", ""))
    if native == "ARM64" and "(AMD64)" in build:
        text = _("The processor is Arm, but this Python is built for x64 and runs emulated.")
        notes.warn("python-emulated", text, _("Use a Python built for Arm64."), severity=Severity.INFO)


def memory(host: Host, notes: Notes) -> None:
    """Record the memory of the computer in GiB."""
    total = host.facts("memory").get("total")
    notes.record_fact("memory_gb", round(total / 2**30, 1) if isinstance(total, int) else None, "system")


def _hardware_adapters(host: Host) -> list[dict[str, object]] | None:
    """Return DXGI's adapters that are neither software nor remote; None if DXGI could not be asked."""
    adapters = host.facts("dxgi").get("adapters")
    if not isinstance(adapters, list):
        return None
    return [adapter for adapter in adapters if not adapter.get("software") and not adapter.get("remote")]


def adapters(host: Host, notes: Notes) -> None:
    """Record each display adapter of the registry that is present as a GPU; findings for others, and for old drivers.

    DXGI tells which entries are of cards no longer there.
    """
    answer, present = host.registry(DISPLAY), _hardware_adapters(host)
    there = {adapter.get("pci_id") for adapter in present or ()}
    notes.read_answer(REGISTRY, answer)
    entries = [found for found in map(windows.read_adapter, _registry_entries(host, DISPLAY)) if found]
    if answer and not entries:
        notes.record_absence("gpus", REGISTRY, "no display adapter")
    for found in entries:
        name, pci_id = found.gpu.name or "", found.gpu.pci_id
        gone = bool(pci_id) and present is not None and pci_id not in there
        reason = _("Windows knows {name}, but it is not connected now.", name=name) if gone else ""
        year = (found.date or "").rpartition("-")[2]
        if note_adapter(found.gpu, REGISTRY, notes, reason=reason) and year.isdigit() and int(year) < _OLD_DRIVER:
            text = _(
                "The driver of {name} is from {year}; update it before you rely on DirectML.", name=name, year=year
            )
            notes.inform("gpu-driver-old", text)


# The year of the oldest drivers that DirectML's samples name (WDDM 2.9 and Windows 11).
_OLD_DRIVER = 2021
# Bytes; what DXGI reports below is what a BIOS sets aside for an integrated GPU, not memory of its own (chosen).
_OWN_MEMORY = 2**29


def direct3d(host: Host, notes: Notes) -> None:
    """Record the GPUs that DXGI lists, with their own memory; findings if Direct3D 12 or DirectML.dll is missing."""
    for adapter in _hardware_adapters(host) or ():
        pci_id = str(adapter.get("pci_id"))
        if reason_not_a_gpu(pci_id, name=str(adapter.get("name", ""))):
            continue
        size = adapter.get("memory")
        vram = round(size / 2**30, 1) if isinstance(size, int) and size > _OWN_MEMORY else None
        gpu = Gpu(vendor=vendor_of(pci_id), name=str(adapter["name"]), pci_id=pci_id, vram_gb=vram)
        notes.record_gpu(gpu, "DXGI")
        if adapter.get("d3d12") is None:
            text = _("{name} does not support Direct3D 12, which DirectML needs.", name=adapter["name"])
            notes.warn("no-direct3d-12", text, _("Update its driver."))
    library = host.ask("file_version", r"%SystemRoot%\System32\DirectML.dll")
    if library:
        notes.record_evidence("os_version", "DirectML.dll", library.text)
    elif library.status == "missing":
        text = _("Windows has no DirectML.dll of its own; packages that bring theirs still work.")
        notes.inform("directml-dll-missing", text)


def runtimes(host: Host, notes: Notes) -> None:
    """Record a warning if Microsoft's Visual C++ runtime, which PyTorch's libraries load, is missing."""
    keys = host.facts("registry", _RUNTIMES).get("keys")
    installed = isinstance(keys, dict) and any(
        isinstance(entry, dict) and entry.get("Installed") for entry in keys.values()
    )
    # The library that torch loads may be there all the same: conda and Wine bring it.
    own = f"{host.facts('platform').get('base_prefix')}\\{_RUNTIME}"
    brought = any(host.ask("file_version", path) for path in (rf"%SystemRoot%\System32\{_RUNTIME}", own))
    if host.registry(_RUNTIMES).status in {"ok", "missing"} and not installed and not brought:
        text = _("Microsoft's Visual C++ runtime is not installed; PyTorch cannot load its libraries without it.")
        notes.warn(
            "vc-runtime-missing", text, _("Install it from Microsoft."), "winget install Microsoft.VCRedist.2015+.x64"
        )


def npus(host: Host, notes: Notes) -> None:
    """Record a finding for each neural processor (NPU), which is no GPU."""
    for entry in _registry_entries(host, _NPUS):
        if entry.get("DriverDesc"):
            name = entry["DriverDesc"]
            notes.inform("npu-present", _("{name} is a neural processor; PyTorch's wheels do not drive it.", name=name))

"""Probes for Linux inside Windows (WSL): the GPU belongs to Windows, so Windows is asked what it is."""

from __future__ import annotations

from collections.abc import Iterator

from assistant.detect.adapters import not_a_gpu
from assistant.detect.linux import kernel_release
from assistant.detect.notes import Notes
from assistant.host.base import Host
from assistant.i18n import _
from assistant.model.finding import Remedy, Severity
from assistant.model.machine import Vendor
from assistant.parsers import windows

DISPLAY = r"HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"
VERSION = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion"
FIRST_WITH_GPU = 19044  # Windows 10 21H2: https://learn.microsoft.com/windows/ai/directml/gpu-pytorch-wsl (2026-11)
_MOST_ADAPTERS = 8
DEVICE = "/dev/dxg"


def wsl(host: Host, notes: Notes) -> None:
    """Note the GPUs that Windows shares with WSL, and what keeps WSL from using them."""
    kernel = kernel_release(host)
    if "microsoft" not in kernel.lower():
        return
    shared = host.link(DEVICE).status != "missing"
    if not shared:
        notes.looked("gpus", DEVICE, "missing: Windows shares no GPU")
    asked = bool(host.which("reg.exe"))
    too_old = asked and _remark_on_windows(host, notes)
    if not too_old:  # else the cause is told already
        _remark_on_version(host, kernel, notes, shared=shared)
    if not asked:
        text = _("Windows programs cannot be started from this WSL, so Windows could not be asked for its GPUs.")
        notes.finding("could-not-look", Severity.INFO, text)
        return
    for found in _windows_adapters(host):
        _sort_out(found, notes, shared=shared)


def _windows_adapters(host: Host) -> Iterator[windows.Adapter]:
    """Ask Windows' registry for its display adapters, until one number is not taken."""
    for index in range(_MOST_ADAPTERS):
        found = windows.adapter(windows.reg_query(host.run("reg.exe", "query", rf"{DISPLAY}\{index:04}").text))
        if found is None:
            return
        yield found


def _sort_out(found: windows.Adapter, notes: Notes, *, shared: bool) -> None:
    reason = not_a_gpu(found.gpu.pci_id or "1414", name=found.gpu.name)
    if not reason and not shared:
        reason = _("Windows has {name}, but shares no GPU with this WSL.", name=found.gpu.name)
    if reason:
        notes.finding("adapter-skipped", Severity.INFO, reason)
        return
    notes.gpu(found.gpu, "Windows registry")
    if found.gpu.vendor is Vendor.NVIDIA and found.gpu.driver:
        notes.fact("nvidia_driver", windows.nvidia_version(found.gpu.driver), "Windows registry")


def _remark_on_version(host: Host, kernel: str, notes: Notes, *, shared: bool) -> None:
    if "Microsoft" in kernel and "WSL2" not in kernel:
        text = _("This is WSL 1, which has no access to GPUs.")
        remedy = Remedy(text=_("Convert the distribution to WSL 2."), commands=("wsl --set-version <name> 2",))
        notes.finding("wsl-host-too-old", Severity.WARNING, text, remedies=(remedy,))
    elif not shared:
        text = _("WSL offers no GPU here: /dev/dxg is missing.")
        remedy = Remedy(
            text=_("Update Windows, its GPU driver and WSL, then restart WSL."),
            commands=("wsl --update", "wsl --shutdown"),
        )
        notes.finding("wsl-host-too-old", Severity.WARNING, text, remedies=(remedy,))
    elif host.link("/usr/lib/wsl/lib/libd3d12.so").status == "missing":
        text = _("Windows' GPU libraries are missing from /usr/lib/wsl/lib, so programs here cannot use the GPU.")
        remedy = Remedy(text=_("Update WSL, then restart it."), commands=("wsl --update", "wsl --shutdown"))
        notes.finding("wsl-libraries-missing", Severity.WARNING, text, remedies=(remedy,))
    _remark_on_linux_driver(host, notes)


def _remark_on_linux_driver(host: Host, notes: Notes) -> None:
    if host.link("/sys/module/nvidia") or host.link("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"):
        text = _("A Linux NVIDIA driver is installed inside WSL; it hides the one that Windows provides.")
        remedy = Remedy(
            text=_("Remove it; WSL needs only the Windows driver."), commands=("sudo apt purge 'nvidia-*'",)
        )
        notes.finding("wsl-linux-driver-installed", Severity.WARNING, text, remedies=(remedy,))


def _remark_on_windows(host: Host, notes: Notes) -> bool:
    """Note the Windows around this WSL; tell whether it is too old to share its GPU."""
    values = windows.reg_query(host.run("reg.exe", "query", VERSION).text)
    name, build = windows.windows_name(values), str(values.get("CurrentBuild", ""))
    if name is None:
        return False
    notes.looked("wsl", "Windows registry", name)
    too_old = int(build) < FIRST_WITH_GPU
    if too_old:
        text = _("{windows} around this WSL is too old to share its GPU; version 21H2 (build 19044) is the first.")
        notes.finding("wsl-host-too-old", Severity.WARNING, text.format(windows=name))
    return too_old

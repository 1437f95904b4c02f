"""Probes for Linux inside Windows (WSL): the GPU belongs to Windows, so Windows is asked what it is."""

from __future__ import annotations

from assistant.detect.gpus import not_a_gpu, note_adapter
from assistant.detect.linux import kernel_release
from assistant.detect.observations import Notes
from assistant.detect.windows import DISPLAY, REGISTRY, VERSION
from assistant.host.base import Host
from assistant.i18n import _
from assistant.model.finding import Remedy, Severity
from assistant.parsers import windows

FIRST_WITH_GPU = 19044  # Windows 10 21H2: https://learn.microsoft.com/windows/ai/directml/gpu-pytorch-wsl (2026-11)
_MOST_ADAPTERS = 8  # more than any PC has; each costs one start of reg.exe
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
    too_old = asked and _windows_too_old(host, notes)
    if not too_old:  # else that is the cause of all the rest
        _check_version(host, kernel, notes, shared=shared)
        if host.link("/sys/module/nvidia") or host.link("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"):
            text = _("A Linux NVIDIA driver is installed inside WSL; it hides the one that Windows provides.")
            remedy = Remedy(
                text=_("Remove it; WSL needs only the Windows driver."), commands=("sudo apt purge 'nvidia-*'",)
            )
            notes.finding("wsl-linux-driver-installed", Severity.WARNING, text, remedies=(remedy,))
    if not asked:
        text = _("Windows programs cannot be started from this WSL, so Windows could not be asked for its GPUs.")
        notes.finding("could-not-look", Severity.INFO, text)
        return
    for index in range(_MOST_ADAPTERS):
        found = windows.adapter(windows.reg_query(host.run("reg.exe", "query", rf"{DISPLAY}\{index:04}").text))
        if found is None:  # the entries are numbered without gaps
            return
        reason = "" if found.gpu.pci_id else not_a_gpu("1414", name=found.gpu.name)  # Microsoft's own has no PCI id
        if not reason and not shared:
            reason = _("Windows has {name}, but shares no GPU with this WSL.", name=found.gpu.name)
        note_adapter(found.gpu, REGISTRY, notes, reason=reason)


def _windows_too_old(host: Host, notes: Notes) -> bool:
    """Note the Windows around this WSL; return whether it is too old to share its GPU."""
    values = windows.reg_query(host.run("reg.exe", "query", VERSION).text)
    name, build = windows.windows_name(values), str(values.get("CurrentBuild", ""))
    if name is None:
        return False
    notes.looked("wsl", REGISTRY, name)
    too_old = int(build) < FIRST_WITH_GPU
    if too_old:
        text = _("{windows} around this WSL is too old to share its GPU; version 21H2 (build 19044) is the first.")
        notes.finding("wsl-host-too-old", Severity.WARNING, text.format(windows=name))
    return too_old


def _check_version(host: Host, kernel: str, notes: Notes, *, shared: bool) -> None:
    """Note what this version of WSL lacks to use a GPU."""
    if "Microsoft" in kernel and "WSL2" not in kernel:  # WSL 1 names itself 4.4.0-19041-Microsoft
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

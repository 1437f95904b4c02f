"""Probes for Linux, on metal, in a container or in WSL; a tool is started only when its vendor's GPU is there."""

from __future__ import annotations

import re

from assistant.catalog.identity import find_idle_adapter, identify
from assistant.detect.common import Notes, note_adapter, reason_not_a_gpu
from assistant.detect.windows import DISPLAY, REGISTRY, VERSION
from assistant.host.base import Host
from assistant.i18n import _
from assistant.model.finding import Severity
from assistant.model.machine import Gpu, Vendor
from assistant.parsers import amd, linux, windows

PCI = "/sys/bus/pci/devices"


def _pci(host: Host, *vendors: Vendor) -> list[linux.PciDevice]:
    """Return the display and accelerator devices on the PCI bus that these vendors made."""
    return [device for device in linux.read_pci_devices(host.ask("pci").text) if device.vendor in vendors]


def kernel_release(host: Host) -> str:
    """Return the running kernel's release, `6.8.0-45-generic`."""
    return str(host.facts("platform").get("release", ""))


def release(host: Host, notes: Notes) -> None:
    """Record the distribution, whether this is WSL, and the C library: glibc's version, or musl."""
    about = "/etc/os-release"
    notes.record_fact("os_version", linux.read_os_name(notes.read_answer(about, host.read(about))), about)
    notes.record_fact("wsl", "microsoft" in kernel_release(host).lower(), "kernel release")
    facts = host.facts("platform")
    if facts.get("libc") == "glibc":
        notes.record_fact("glibc", facts.get("libc_version"), "Python")
        return
    loader = next((name for name in host.names("/lib").text.splitlines() if name.startswith("ld-musl-")), None)
    if loader:
        version = re.search(r"Version (\d[\d.]{1,12})", host.run(f"/lib/{loader}").text)
        notes.record_fact("libc", f"musl {version[1]}" if version else "musl", f"/lib/{loader}")


def memory(host: Host, notes: Notes) -> None:
    """Record in GiB the memory that this process may use: the machine's, or the container's limit if that is lower."""
    total = linux.read_total_memory_kib(host.read("/proc/meminfo").text)
    bounds = {"/proc/meminfo": total} if total else {}
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        limit = host.read(path).text.strip()
        if limit.isdigit():
            bounds[path] = int(limit) // 1024
    if bounds:
        path = min(bounds, key=lambda name: bounds[name])
        notes.record_fact("memory_gb", round(bounds[path] / 2**20, 1), path)


CONTAINER_FILES = {"/.dockerenv": "docker", "/run/.containerenv": "podman", "/.singularity.d": "apptainer"}


def container(host: Host, notes: Notes) -> None:
    """Record the name of the container in which this process runs, if any: "kubernetes", "docker", and so on.

    Of several signs Kubernetes' counts, then the files that the others leave.
    """
    if host.variable("KUBERNETES_SERVICE_HOST"):
        notes.record_fact("container", "kubernetes", "KUBERNETES_SERVICE_HOST")
    for path, name in CONTAINER_FILES.items():
        if host.link(path):
            notes.record_fact("container", name, path)
    named = host.variable("container").text  # which systemd-nspawn, LXC and podman set
    notes.record_fact("container", named or None, "environment variable container")


def adapters(host: Host, notes: Notes) -> None:
    """Record every display and accelerator device on the PCI bus as a GPU, or as a finding that says why it is none.

    In WSL, Microsoft's adapters are ignored.
    """
    answer = host.ask("pci")
    devices = linux.read_pci_devices(notes.read_answer(PCI, answer))
    if answer and not devices:
        notes.record_absence("gpus", PCI, "no display or accelerator device")
    in_wsl = "microsoft" in kernel_release(host).lower()  # where a GPU is passed through an adapter of Microsoft's
    for device in devices:
        idle = find_idle_adapter(device.pci_id)
        if not (in_wsl and idle and idle.maker == "Microsoft"):
            source = f"{PCI}/{device.bus}"
            gpu = Gpu(vendor=device.vendor, pci_id=device.pci_id, driver=device.driver)
            note_adapter(gpu, source, notes, kind=device.kind, bus=device.bus, revision=device.revision)


# NVIDIA Jetson AGX Orin Developer Kit
_BOARD = r"Jetson (?:AGX (?:Orin|Xavier|Thor)|Orin (?:Nano|NX)|Xavier NX|Nano|TX1|TX2|TK1|T4000)"
BOARD_FILE = "/proc/device-tree/model"


def jetson(host: Host, notes: Notes) -> None:
    """Record the GPU of a Jetson board, which is on no PCI bus, and a finding that it needs wheels of its own."""
    if host.facts("platform").get("machine") != "aarch64":
        return
    board = re.search(_BOARD, host.read(BOARD_FILE).text)
    if not board:
        return
    notes.record_gpu(Gpu(vendor=Vendor.NVIDIA, name=board[0], integrated=True), BOARD_FILE)
    # # R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64, DATE: Wed Jan  8 01:49:37 UTC 2025
    l4t = re.search(r"# (R\d{1,3}) \(release\), REVISION: ([\d.]{1,8})", host.read("/etc/nv_tegra_release").text)
    text = _("This is an NVIDIA {board} ({system}); its GPU needs PyTorch wheels made for its system release.")
    system_release = f"L4T {l4t[1]}.{l4t[2]}" if l4t else "L4T"
    notes.inform("jetson-board", text.format(board=board[0], system=system_release))


# Where Ubuntu, Fedora, Arch and a build of one's own put Intel's Level Zero driver.
_INTEL_DRIVERS = tuple(
    f"{folder}/libze_intel_gpu.so.1"
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
)


def intel_memory(host: Host, notes: Notes) -> None:
    """Record what xpu-smi reports of each Intel GPU, if it is installed: the kernel does not report a card's memory."""
    if not _pci(host, Vendor.INTEL) or not host.which("xpu-smi"):
        return
    for listed in amd.read_xpu_smi(notes.read_answer("xpu-smi", host.run("xpu-smi", "discovery", "-j"))) or ():
        detail = amd.read_xpu_smi(host.run("xpu-smi", "discovery", "-d", str(listed.index), "-j").text)
        notes.record_devices(detail[:1] if detail else [listed], "xpu-smi")


def intel_runtime(host: Host, notes: Notes) -> None:
    """Record a warning if an Intel GPU that PyTorch supports is there, but its compute driver (Level Zero) is not."""
    identities = (identify(device.pci_id) for device in _pci(host, Vendor.INTEL))
    cards = [identity for identity in identities if identity and identity.xpu == "supported"]
    if not cards or any(host.link(path).status != "missing" for path in _INTEL_DRIVERS):
        return
    text = _("Intel's compute driver (Level Zero) was not found; without it PyTorch does not see the {name}.")
    notes.warn(
        "intel-runtime-missing",
        text.format(name=cards[0].name),
        _("Install Intel's GPU compute packages from your distribution or from Intel."),
        "sudo apt install libze-intel-gpu1 libze1 intel-opencl-icd",
    )


# The variable's GUID is EFI_GLOBAL_VARIABLE of the UEFI specification; its last byte is 1 where Secure Boot is on.
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def secure_boot(host: Host, notes: Notes) -> None:
    """Record a finding if Secure Boot is on and an NVIDIA or AMD GPU has no driver, or another than nvidia and amdgpu.

    Secure Boot may be the reason.
    """
    drivers = {device.driver for device in _pci(host, Vendor.NVIDIA, Vendor.AMD)}
    if drivers - {"nvidia", "amdgpu"} and host.read(SECURE_BOOT).text.endswith("\x01"):
        text = _("Secure Boot is on: an unsigned driver module cannot load, which may be why the GPU has no driver.")
        notes.inform("secure-boot", text)


FIRST_WITH_GPU = 19044  # Windows 10 21H2: https://learn.microsoft.com/windows/ai/directml/gpu-pytorch-wsl (2026-11)
_MOST_ADAPTERS = 8  # more than any PC has; each costs one start of reg.exe
DEVICE = "/dev/dxg"


def wsl(host: Host, notes: Notes) -> None:
    """In WSL, record the GPUs that Windows shares with it, and warnings of what keeps WSL from using them.

    They are read from Windows' registry by reg.exe; if that cannot be started, or none is shared, a finding says so.
    """
    kernel = kernel_release(host)
    if "microsoft" not in kernel.lower():
        return
    shared = host.link(DEVICE).status != "missing"
    if not shared:
        notes.record_absence("gpus", DEVICE, "missing: Windows shares no GPU")
    asked = bool(host.which("reg.exe"))
    too_old = asked and _note_windows(host, notes)
    if not too_old:  # else that is the cause of all the rest
        _warn_of_wsl(host, kernel, notes, has_dxg=shared)
        if host.link("/sys/module/nvidia") or host.link("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"):
            text = _("A Linux NVIDIA driver is installed inside WSL; it hides the one that Windows provides.")
            fix = _("Remove it; WSL needs only the Windows driver.")
            notes.warn("wsl-linux-driver-installed", text, fix, "sudo apt purge 'nvidia-*'")
    if not asked:
        text = _("Windows programs cannot be started from this WSL, so Windows could not be asked for its GPUs.")
        notes.inform("could-not-look", text)
        return
    for index in range(_MOST_ADAPTERS):
        found = windows.read_adapter(
            windows.read_reg_query(host.run("reg.exe", "query", rf"{DISPLAY}\{index:04}").text)
        )
        if found is None:  # the entries are numbered without gaps
            return
        # Microsoft's own adapter has no PCI id.
        reason = "" if found.gpu.pci_id else reason_not_a_gpu("1414", name=found.gpu.name)
        if not reason and not shared:
            reason = _("Windows has {name}, but shares no GPU with this WSL.", name=found.gpu.name)
        note_adapter(found.gpu, REGISTRY, notes, reason=reason)


def _note_windows(host: Host, notes: Notes) -> bool:
    """Record the Windows around this WSL as evidence; return whether it is too old to share its GPU, and warn if so.

    Returns False if its release cannot be read.
    """
    values = windows.read_reg_query(host.run("reg.exe", "query", VERSION).text)
    name, build = windows.windows_name(values), str(values.get("CurrentBuild", ""))
    if name is None:
        return False
    notes.record_evidence("wsl", REGISTRY, name)
    too_old = int(build) < FIRST_WITH_GPU
    if too_old:
        text = _("{windows} around this WSL is too old to share its GPU; version 21H2 (build 19044) is the first.")
        notes.inform("wsl-host-too-old", text.format(windows=name), severity=Severity.WARNING)
    return too_old


def _warn_of_wsl(host: Host, kernel: str, notes: Notes, *, has_dxg: bool) -> None:
    """Record a warning within WSL: if it is WSL 1, else if /dev/dxg is missing, else if Windows' GPU libraries are."""
    if "Microsoft" in kernel and "WSL2" not in kernel:  # WSL 1 names itself 4.4.0-19041-Microsoft
        text = _("This is WSL 1, which has no access to GPUs.")
        notes.warn("wsl-host-too-old", text, _("Convert the distribution to WSL 2."), "wsl --set-version <name> 2")
    elif not has_dxg:
        text = _("WSL offers no GPU here: /dev/dxg is missing.")
        fix = _("Update Windows, its GPU driver and WSL, then restart WSL.")
        notes.warn("wsl-host-too-old", text, fix, "wsl --update", "wsl --shutdown")
    elif host.link("/usr/lib/wsl/lib/libd3d12.so").status == "missing":
        text = _("Windows' GPU libraries are missing from /usr/lib/wsl/lib, so programs here cannot use the GPU.")
        notes.warn("wsl-libraries-missing", text, _("Update WSL, then restart it."), "wsl --update", "wsl --shutdown")


NODES = "/sys/class/kfd/kfd/topology/nodes"


def _amd_on_bus(host: Host) -> list[linux.PciDevice]:
    """Return the AMD devices on the PCI bus, except those with the old driver `radeon`."""
    return [device for device in _pci(host, Vendor.AMD) if device.driver != "radeon"]


def amd_gpus(host: Host, notes: Notes) -> None:
    """Record each AMD GPU that the kernel lists in KFD, with its gfx target, and the memory of each on PCI."""
    for node in sorted(host.names(NODES).text.split(), key=lambda name: (len(name), name)):
        folder = f"{NODES}/{node}"
        agent = amd.read_kfd_node(
            host.read(f"{folder}/properties").text, host.read(f"{folder}/mem_banks/0/properties").text
        )
        if agent:
            notes.record_devices([agent], folder)
    for device in _amd_on_bus(host):
        path = f"/sys/bus/pci/devices/{device.bus}/mem_info_vram_total"
        size = host.read(path).text.strip()
        if size.isdigit():
            notes.record_gpu(Gpu(vendor=Vendor.AMD, vram_gb=round(int(size) / 2**30, 1)), path, bus=device.bus)


def rocm(host: Host, notes: Notes) -> None:
    """Record the version of the installed ROCm, and whether rocminfo is there.

    Do nothing without an AMD GPU, /dev/kfd or WSL. In WSL, and in containers without the kernel's list of compute
    nodes, rocminfo, or else amd-smi, is asked for GPUs.
    """
    wsl = bool(host.link("/dev/dxg"))
    if not _amd_on_bus(host) and not host.link("/dev/kfd") and not wsl:
        return
    version = "/opt/rocm/.info/version"
    notes.record_fact("rocm_version", amd.read_rocm_release(host.read(version).text), version)
    tool = bool(host.which("rocminfo") or host.link("/opt/rocm/bin/rocminfo"))
    notes.record_fact("rocm_tools", tool, "PATH")
    if not wsl and host.names(NODES):
        return
    report = None
    if tool:
        report = amd.read_rocminfo(notes.read_answer("rocminfo", host.run("rocminfo")))
        notes.record_devices(report.devices if report else (), "rocminfo")
    if not (report and report.devices) and host.which("amd-smi"):
        answer = host.run("amd-smi", "static", "--asic", "--bus", "--vram", "--json")
        notes.record_devices(amd.read_amd_smi(notes.read_answer("amd-smi", answer)) or (), "amd-smi")


def amd_access(host: Host, notes: Notes) -> None:
    """Record a warning of what prevents this user from using an AMD GPU, if anything.

    That is: /dev/kfd is missing, as it was not given to this container or the driver is not loaded; or it, or a render
    node, is denied.
    """
    if not _amd_on_bus(host):
        return
    kfd = host.access("/dev/kfd")
    if kfd.status == "missing":
        if any(host.link(path) for path in CONTAINER_FILES):
            notes.warn(
                "container-gpu-device-missing",
                _("The computer has an AMD GPU, but this container was not given it."),
                _("Start the container with the GPU's device nodes."),
                "docker run --device /dev/kfd --device /dev/dri --group-add video --group-add render …",
            )
        else:
            notes.warn(
                "amdgpu-driver-not-loaded",
                _("This machine has an AMD GPU but no /dev/kfd: the kernel's amdgpu driver is not loaded."),
                _("Load amdgpu, or use a newer kernel."),
                "sudo modprobe amdgpu",
            )
        return
    nodes = [f"/dev/dri/{name}" for name in host.names("/dev/dri").text.split() if name.startswith("renderD")]
    denied = [path for path in ("/dev/kfd", *nodes) if host.access(path).status == "denied"]
    if denied:
        text = _("This user has no access to {paths}, which ROCm needs.", paths=", ".join(denied))
        fix = _("Join the groups render and video, then log in again.")
        groups = f"groups: {' '.join(host.ask('groups').text.split())}"
        notes.warn("kfd-permission", text, fix, "sudo usermod -aG render,video $USER", evidence=groups)

"""What can be wrong on a machine before anything fails: checks of its facts, one finding each, good news too."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from packaging.version import InvalidVersion, Version

from assistant.i18n import Message, _
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Machine, Vendor

__all__ = ["PROXIES", "check_up", "passed"]

PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
LEAST_DISK_GB = 10  # PyTorch with CUDA: 3 GB to download, 7 GB unpacked
LEAST_DRIVERS = {"linux": "580", "windows": "580"}  # CUDA 13: docs.nvidia.com/cuda/cuda-toolkit-release-notes
LEAST_MEMORY_GB = 4  # learn.microsoft.com/windows/ai/directml

Check = Callable[[Machine, Mapping[str, str]], Finding | None]


def check_up(machine: Machine, proxies: Mapping[str, str] | None = None) -> tuple[Finding, ...]:
    """Check a machine's facts; a check whose facts are unknown is left out. `proxies` are the variables of that name.

    Keys are those of the rules where a rule exists, so that the same remedies apply.
    """
    found = (check(machine, proxies or {}) for check in CHECKS)
    return tuple(finding for finding in found if finding)


def _finding(key: str, severity: Severity, text: Message, *evidence: str) -> Finding:
    return Finding(key=key, severity=severity, text=text, evidence=evidence)


def _good(key: str, text: Message) -> Finding:
    return _finding(key, Severity.OK, text)


def _python(machine: Machine, _proxies: Mapping[str, str]) -> Finding | None:
    if machine.python is None or machine.python_bits is None:
        return None
    if machine.python_bits == 32:  # noqa: PLR2004
        return _finding("python-32bit", Severity.ERROR, _("This Python is a 32-bit build; PyTorch needs 64 bits."))
    return _good("python-32bit", _("Python {version} is a 64-bit build.", version=machine.python))


def _gpu(machine: Machine, _proxies: Mapping[str, str]) -> Finding | None:
    names = ", ".join(gpu.name or gpu.vendor.value for gpu in machine.gpus)
    if names:
        return _good("gpu-present", _("GPU: {names}.", names=names))
    return _finding("gpu-present", Severity.INFO, _("No GPU was found; PyTorch will use the CPU."))


def _build(machine: Machine, _proxies: Mapping[str, str]) -> Finding | None:
    torch, vendors = machine.packages.get("torch"), {gpu.vendor for gpu in machine.gpus}
    if torch is None or not vendors & {Vendor.NVIDIA, Vendor.AMD, Vendor.INTEL} or machine.os == "macos":
        return None
    cpu = torch.endswith("+cpu") or ("+" not in torch and machine.os == "windows")
    if "+" not in torch and machine.os == "linux":
        torch += "+cu"  # PyPI's wheel for Linux is the CUDA build
    foreign = {"+cu": Vendor.NVIDIA, "+rocm": Vendor.AMD, "+xpu": Vendor.INTEL}
    other = next((maker for tag, maker in foreign.items() if tag in torch and maker not in vendors), None)
    if other:
        text = _("PyTorch {torch} is built for GPUs of another maker than the one in this computer.")
        return _finding("wrong-backend-build-for-gpu", Severity.ERROR, text.format(torch=torch.removesuffix("+cu")))
    if cpu and not machine.packages.get("torch-directml"):
        text = _("PyTorch {torch} is the CPU build, though this computer has a GPU.")
        return _finding("torch-cpu-build-installed", Severity.WARNING, text.format(torch=torch))
    return _good(
        "torch-cpu-build-installed",
        _("PyTorch {torch} is a build for this GPU.", torch=torch.removesuffix("+cu")),
    )


def _driver(machine: Machine, _proxies: Mapping[str, str]) -> Finding | None:
    floor = LEAST_DRIVERS.get(machine.os or "")
    driver = _version(machine.nvidia_driver)
    if floor is None or driver is None:
        return None
    if driver < Version(floor):
        text = _("NVIDIA driver {driver} is older than {floor}, which current PyTorch builds (CUDA 13) want.")
        told = text.format(driver=machine.nvidia_driver, floor=floor)
        return _finding("nvidia-driver-too-old", Severity.WARNING, told)
    return _good("nvidia-driver-too-old", _("NVIDIA driver {driver} is new enough.", driver=machine.nvidia_driver))


def _numpy(machine: Machine, _proxies: Mapping[str, str]) -> Finding | None:
    torch, numpy = _version(machine.packages.get("torch")), _version(machine.packages.get("numpy"))
    if torch is None or numpy is None:
        return None
    if torch < Version("2.3") and numpy.major > 1:
        text = _("PyTorch {torch} was built for NumPy 1, and NumPy {numpy} is installed.")
        return _finding("numpy2-abi", Severity.ERROR, text.format(torch=torch, numpy=numpy))
    return _good("numpy2-abi", _("PyTorch {torch} and NumPy {numpy} fit.", torch=torch, numpy=numpy))


def _room(machine: Machine, _proxies: Mapping[str, str]) -> Finding | None:
    free = machine.disk_free_gb
    if free is None:
        return None
    if free < LEAST_DISK_GB:
        text = _("Only {free} GB of disk are free; PyTorch with GPU libraries needs about {need} GB.")
        return _finding("disk-full", Severity.WARNING, text.format(free=free, need=LEAST_DISK_GB))
    return _good("disk-full", _("{free} GB of disk are free.", free=free))


def _memory(machine: Machine, _proxies: Mapping[str, str]) -> Finding | None:
    if machine.memory_gb is None:
        return None
    if machine.memory_gb < LEAST_MEMORY_GB:
        text = _("{memory} GB of memory are little; installing may end for want of it.")
        return _finding("pip-out-of-ram", Severity.WARNING, text.format(memory=machine.memory_gb))
    return _good("pip-out-of-ram", _("{memory} GB of memory.", memory=machine.memory_gb))


def _fallback(machine: Machine, _proxies: Mapping[str, str]) -> Finding | None:
    value = machine.env.get("PYTORCH_ENABLE_MPS_FALLBACK")
    if value is None or machine.os not in {"macos", None}:
        return None
    if not value.lstrip("+-").isdigit():
        text = _("PYTORCH_ENABLE_MPS_FALLBACK is “{value}”; PyTorch ends at its import unless it is a number.")
        return _finding("mps-fallback-variable-invalid", Severity.ERROR, text.format(value=value))
    return _good("mps-fallback-variable-invalid", _("PYTORCH_ENABLE_MPS_FALLBACK is a number."))


def _proxy(_machine: Machine, proxies: Mapping[str, str]) -> Finding | None:
    wrong = [name for name in PROXIES if proxies.get(name, "").lower().startswith("https://")]
    if wrong:
        text = _("{names} begins with https://; most proxies speak plain HTTP and want http:// there.")
        return _finding("proxy-misconfigured", Severity.WARNING, text.format(names=", ".join(wrong)))
    named = [name for name in PROXIES if proxies.get(name)]
    return _good("proxy-misconfigured", _("A proxy is named in {names}.", names=", ".join(named))) if named else None


def passed(machine: Machine, told: Container[str], *, live: bool) -> tuple[Finding, ...]:
    """Tell the good news of what detection checks: what it would have raised and did not (`told` are its keys).

    What a recording or a description may not know is only told of a machine at hand (`live`).
    """
    gpus, amd = bool(machine.gpus), any(gpu.vendor is Vendor.AMD for gpu in machine.gpus)
    linux = machine.os == "linux" and not machine.wsl
    ort = any(name.startswith("onnxruntime") for name in machine.packages)
    news = (
        ("kernel-broken", live, _("Every Jupyter kernel leads to a Python that is there.")),
        ("onnxruntime-packages-conflict", ort, _("One flavour of ONNX Runtime is installed.")),
        ("directml-on-native-linux", live and linux, _("No DirectML package is installed, which Linux could not run.")),
        ("amdgpu-driver-not-loaded", live and linux and amd, _("AMD's kernel driver is loaded.")),
        ("kfd-permission", live and linux and amd, _("This user may open the AMD GPU.")),
        ("vc-runtime-missing", live and machine.os == "windows", _("The Visual C++ run-time is installed.")),
        ("devices-hidden", live and gpus, _("No variable hides a GPU.")),
        ("hsa-override-set", live and amd, _("No variable overrides the GPU's target.")),
    )
    return tuple(_good(key, text) for key, applies, text in news if applies and key not in told)


def _version(text: str | None) -> Version | None:
    try:
        return Version((text or "").partition("+")[0])
    except InvalidVersion:
        return None


CHECKS: tuple[Check, ...] = (_python, _gpu, _driver, _build, _numpy, _memory, _room, _fallback, _proxy)

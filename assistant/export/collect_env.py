"""The setup in the words of `python -m torch.utils.collect_env`, which every PyTorch issue asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from assistant.catalog import carried_by_torch_index
from assistant.export.setup import Setup
from assistant.model.machine import Machine, Vendor
from assistant.model.plan import Backend
from assistant.model.visible import printable

_NONE = "Could not collect"  # what the tool writes where it found nothing
_BESIDE = re.compile(r"numpy|onnx.*|torch.*|nvidia-.*|intel-.*|optree|mypy.*")  # what torch/utils/collect_env.py lists


def collect_env_text(setup: Setup) -> str:
    """Write the block for a verified environment."""
    report, plan, packages = setup.report, setup.plan, setup.environment.packages
    works = report.usable
    return _block(
        setup.machine,
        packages,
        torch=report.facts.get("torch") or packages.get("torch", plan.torch),
        variant=plan.variant,
        python=report.facts.get("python") or plan.python,
        available=(
            str(works and plan.backend in {Backend.CUDA, Backend.ROCM}),
            str(works and plan.backend is Backend.XPU),
        ),
        loading=plan.env.get("CUDA_MODULE_LOADING", "N/A"),
    )


def stated_env_text(machine: Machine) -> str:
    """Write the block for a machine of which only a log tells, so that nobody has looked what its torch can do."""
    torch = machine.packages.get("torch", _NONE)
    return _block(
        machine,
        machine.packages,
        torch=torch,
        variant=torch.partition("+")[2],
        python=machine.python or _NONE,
        available=(_NONE, _NONE),
        loading=machine.env.get("CUDA_MODULE_LOADING", "N/A"),
    )


def _block(
    machine: Machine,
    packages: Mapping[str, str],
    *,
    torch: str,
    variant: str,
    python: str,
    available: tuple[str, str],
    loading: str,
) -> str:
    """Write the block; what the assistant never looks at reads "Could not collect", as in the tool itself."""
    cuda, hip = re.fullmatch(r"cu(\d+)(\d)", variant), re.fullmatch(r"rocm([\d.]+)", variant)
    apple = (printable(gpu.name) for gpu in machine.gpus if gpu.vendor is Vendor.APPLE and gpu.name)
    libc = f"glibc-{machine.glibc}" if machine.glibc else machine.libc or "N/A"
    rows = (
        ("PyTorch version", printable(torch)),
        ("Is debug build", "False"),
        ("CUDA used to build PyTorch", f"{cuda[1]}.{cuda[2]}" if cuda else _NONE),
        ("ROCM used to build PyTorch", hip[1] if hip else "N/A"),
        ("OS", f"{printable(machine.os_version or machine.os or _NONE)} ({machine.arch or 'unknown'})"),
        ("GCC version", _NONE),
        ("Clang version", _NONE),
        ("CMake version", _NONE),
        ("Libc version", libc),
        ("Python version", f"{python} ({machine.python_bits or 64}-bit runtime)"),
        ("Python platform", _platform(machine, libc)),
        ("Is CUDA available", available[0]),
        ("CUDA runtime version", _NONE),
        ("CUDA_MODULE_LOADING set to", loading),
        ("GPU models and configuration", "\n".join(_gpus(machine)) or _NONE),
        ("Nvidia driver version", machine.nvidia_driver or _NONE),
        ("cuDNN version", _NONE),
        ("Is XPU available", available[1]),
        *(("Intel GPU models detected", f"\n{models}") for models in ["\n".join(_intel(machine))] if models),
        ("HIP runtime version", machine.rocm_version or "N/A"),
        ("MIOpen runtime version", "N/A"),
        ("Is XNNPACK available", _NONE),
        ("CPU", "\n" + next(apple, _NONE)),
        ("Versions of relevant libraries", "\n" + "\n".join(_libraries(packages))),
    )
    return "\n".join(f"{name}: {value}" if not value.startswith("\n") else f"{name}:{value}" for name, value in rows)


def _platform(machine: Machine, libc: str) -> str:
    """Spell the system as `platform.platform()` does, but for the build of the Linux kernel, which nobody looks at."""
    # Windows-11-10.0.26100-SP0, macOS-15.1-arm64-arm-64bit, Linux-6.8.0-45-generic-x86_64-with-glibc2.39
    version = machine.os_version or ""
    if machine.os == "windows":
        build = re.search(r"10\.0\.\d+", version)
        return f"Windows-{'11' if '11' in version.split() else '10'}-{build[0] if build else '10.0'}-SP0"
    if machine.os == "macos":
        number = re.search(r"[\d.]+", version)
        processor = {"arm64": "arm", "x86_64": "i386"}.get(machine.arch or "", machine.arch)
        return f"macOS-{number[0] if number else '0'}-{machine.arch}-{processor}-64bit"
    kernel = "Linux-microsoft-standard-WSL2" if machine.wsl else "Linux"
    return f"{kernel}-{machine.arch}-with-{libc.replace('-', '')}"


def _gpus(machine: Machine) -> Iterable[str]:
    listed = (gpu for gpu in machine.gpus if gpu.vendor in {Vendor.NVIDIA, Vendor.AMD})
    for number, gpu in enumerate(listed):
        name = printable(gpu.name or gpu.pci_id or gpu.vendor.value)
        yield f"GPU {number}: {name}" + (f" ({gpu.gfx})" if gpu.gfx else "")


def _intel(machine: Machine) -> Iterable[str]:
    for number, gpu in enumerate(gpu for gpu in machine.gpus if gpu.vendor is Vendor.INTEL):
        name = printable(gpu.name or "Intel GPU").replace("'", "")
        device = f", device_id=0x{gpu.pci_id[5:].upper()}" if gpu.pci_id else ""
        memory = f", total_memory={round(gpu.vram_gb * 1024)}MB" if gpu.vram_gb else ""
        yield f"* [{number}] _XpuDeviceProperties(name='{name}'{device}{memory})"


def _libraries(packages: Mapping[str, str]) -> Iterable[str]:
    for name, version in sorted(packages.items()):
        if carried_by_torch_index(name) or _BESIDE.fullmatch(name):
            yield f"[pip3] {name}=={printable(version)}"
    yield f"[conda] {_NONE}"

"""What is worth saying about a machine's facts, wherever they came from: a live look, a recording, a pasted report."""

from __future__ import annotations

import re

from assistant.detect.notes import Notes
from assistant.i18n import Message, _
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Machine, Vendor

__all__ = ["remarks"]

DIRECTML_BUILD = 18362  # Windows 10 1903: https://learn.microsoft.com/windows/ai/directml/dml (2026-11)


def remarks(machine: Machine) -> tuple[Finding, ...]:
    """Give the findings that follow from the facts alone, in a fixed order."""
    notes = Notes()
    for remark in (_system, _python, _apple, _onnxruntime, _family, _directml, _hidden, _override, _nvidia, _mixed_amd):
        remark(machine, notes)
    return tuple(notes.findings)


def _system(machine: Machine, notes: Notes) -> None:
    build = re.search(r"\b10\.0\.(\d{4,6})", machine.os_version or "")
    if machine.os == "windows" and build and int(build[1]) < DIRECTML_BUILD:
        text = _("Windows build {build} is older than 18362 (version 1903), the first with DirectML for PyTorch.")
        remedy = Remedy(text=_("Update Windows."))
        notes.finding("windows-too-old", Severity.WARNING, text.format(build=build[1]), remedies=(remedy,))
    if (machine.libc or "").startswith("musl"):
        text = _("This system uses musl as its C library; PyTorch has no wheels for it.")
        remedy = Remedy(text=_("Use a container with Debian or Ubuntu, or your distribution's own PyTorch."))
        notes.finding("libc-musl", Severity.WARNING, text, remedies=(remedy,))


def _python(machine: Machine, notes: Notes) -> None:
    if machine.python_bits == 32:  # noqa: PLR2004
        text = _("This Python is a 32-bit build; PyTorch has wheels for 64-bit Python only.")
        notes.finding("python-32-bit", Severity.WARNING, text)
    if machine.python_implementation not in {None, "CPython"}:
        text = _("This Python is {name}; PyTorch has wheels for CPython only.")
        notes.finding("python-not-cpython", Severity.WARNING, text.format(name=machine.python_implementation))
    if (machine.python or "").endswith("t"):
        text = _("This Python is a free-threaded build; few PyTorch releases have wheels for it.")
        notes.finding("python-free-threaded", Severity.INFO, text)


def _apple(machine: Machine, notes: Notes) -> None:
    if machine.rosetta:
        text = _("This Python is an Intel build that runs under Rosetta; it cannot use the Apple GPU.")
        remedy = Remedy(text=_("Use a Python built for arm64."))
        notes.finding("mps-x86-python-rosetta", Severity.WARNING, text, remedies=(remedy,))


_NOT_FLAVOURS = {"onnxruntime-extensions", "onnxruntime-genai", "onnxruntime-tools"}


def _onnxruntime(machine: Machine, notes: Notes) -> None:
    flavours = sorted(name for name in machine.packages if name.startswith("onnxruntime") and name not in _NOT_FLAVOURS)
    if len(flavours) > 1:
        text = _("{packages} share one folder and overwrite one another; keep only one of them.")
        remedy = Remedy(
            text=_("Remove them all, then install the one you need."),
            commands=("pip uninstall -y " + " ".join(flavours),),
        )
        evidence = tuple(f"{name}=={machine.packages[name]}" for name in flavours)
        notes.finding(
            "onnxruntime-packages-conflict",
            Severity.WARNING,
            text.format(packages=", ".join(flavours)),
            evidence=evidence,
            remedies=(remedy,),
        )


def _family(machine: Machine, notes: Notes) -> None:
    family = {
        name: machine.packages[name] for name in ("torch", "torchvision", "torchaudio") if name in machine.packages
    }
    tags = {re.split(r"\.git|\.lw", version.partition("+")[2])[0] for version in family.values() if "+" in version}
    if len(tags) > 1:
        text = _("These packages come from different PyTorch indexes and may not load together: {packages}.")
        listed = ", ".join(f"{name} {version}" for name, version in family.items())
        notes.finding("torch-torchvision-mismatch", Severity.WARNING, text.format(packages=listed))


def _directml(machine: Machine, notes: Notes) -> None:
    native = machine.os == "linux" and machine.wsl is False
    installed = [name for name in ("torch-directml", "onnxruntime-directml") if name in machine.packages]
    if native and installed:
        text = _("{package} is installed, but DirectML needs Windows or WSL 2; on native Linux it cannot load.")
        remedy = Remedy(text=_("Remove it."), commands=("pip uninstall -y " + " ".join(installed),))
        evidence = tuple(f"{name}=={machine.packages[name]}" for name in installed)
        notes.finding(
            "directml-on-native-linux",
            Severity.WARNING,
            text.format(package=", ".join(installed)),
            evidence=evidence,
            remedies=(remedy,),
        )


def _hidden(machine: Machine, notes: Notes) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        if machine.env.get(name, "0").strip().lower() in {"", "-1", "none", "nodevfiles"}:
            text = _("{name} hides every GPU from the programs that you start.", name=name)
            command = f"set {name}=" if machine.os == "windows" else f"unset {name}"
            remedy = Remedy(text=_("Remove that variable."), commands=(command,))
            evidence = (f"{name}={machine.env[name]}",)
            notes.finding("devices-hidden", Severity.WARNING, text, evidence=evidence, remedies=(remedy,))


def _override(machine: Machine, notes: Notes) -> None:
    value = machine.env.get("HSA_OVERRIDE_GFX_VERSION")
    if value:
        text = _("HSA_OVERRIDE_GFX_VERSION={value} is set and applies to every AMD GPU and program that you start.")
        notes.finding("hsa-override-set", Severity.INFO, text.format(value=value))


def _nvidia(machine: Machine, notes: Notes) -> None:
    state = machine.nvidia_driver_state
    if state and state in (told := _nvidia_states()):
        text, way_out = told[state]
        output = (machine.nvidia_smi_output,) if machine.nvidia_smi_output else ()
        remedies = (Remedy(text=way_out),) if way_out else ()
        notes.finding(f"nvidia-{state}", Severity.WARNING, text, evidence=output, remedies=remedies)


def _nvidia_states() -> dict[str, tuple[Message, Message]]:
    """Say what each state of NVIDIA's driver means, and the way out."""
    return {
        "nouveau": (
            _("The open nouveau driver drives this NVIDIA GPU; CUDA needs NVIDIA's own driver."),
            _("Install NVIDIA's driver from your distribution, then restart the computer."),
        ),
        "vfio": (
            _("The NVIDIA GPU is reserved for a virtual machine (vfio-pci)."),
            _("Use it inside that machine, or give it back to NVIDIA's driver."),
        ),
        "missing": (
            _("An NVIDIA GPU is there, but no NVIDIA driver is loaded."),
            _("Install NVIDIA's driver, then restart the computer; with Secure Boot on, its module must be signed."),
        ),
        "mismatch": (
            _("NVIDIA's libraries were updated, but the old kernel module is still loaded."),
            _("Restart the computer."),
        ),
        "not-communicating": (
            _("NVIDIA's tools are installed, but the driver does not answer: its kernel module is not loaded."),
            _("Reinstall the driver for the running kernel, then restart the computer."),
        ),
        "no-devices": (
            _("NVIDIA's driver is loaded but finds no device that it can use."),
            _("Check the kernel log for a GPU that the driver no longer supports or that failed to start."),
        ),
        "no-permission": (
            _("This user may not open NVIDIA's device nodes."),
            _("Give this user access to /dev/nvidia*."),
        ),
        "lost": (_("An NVIDIA GPU stopped answering."), _("Restart the computer; if it recurs, check power and heat.")),
        "blocked-by-os": (
            _("The system blocks access to the NVIDIA GPU; in WSL this means that the Windows driver is too old."),
            _("Update NVIDIA's driver in Windows and run wsl --update."),
        ),
        "not-passed-in": (
            _("The computer has an NVIDIA GPU, but this container was not given it."),
            _("Start the container with --gpus all, with the NVIDIA Container Toolkit installed on the computer."),
        ),
        "failed": (_("NVIDIA's driver is there but its tools fail."), _("Reinstall the driver.")),
    }


def _mixed_amd(machine: Machine, notes: Notes) -> None:
    targets = sorted({gpu.gfx for gpu in machine.gpus if gpu.vendor is Vendor.AMD and gpu.gfx})
    if len(targets) > 1:
        text = _("AMD GPUs of different kinds are there ({targets}); if HIP programs fail, hide all but one of them.")
        remedy = Remedy(
            text=_("Show programs only the GPU that you want, by its number."),
            commands=("export HIP_VISIBLE_DEVICES=0",),
        )
        notes.finding("rocm-mixed-gpus", Severity.INFO, text.format(targets=", ".join(targets)), remedies=(remedy,))

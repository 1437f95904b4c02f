"""Probes that every system shares: the interpreter, memory, disk, variables, packages, Jupyter's kernels."""

from __future__ import annotations

import re

from assistant.detect.observations import Notes
from assistant.host.base import Host
from assistant.host.folders import OWN_ENVIRONMENTS, is_from_store
from assistant.i18n import _
from assistant.model.finding import Finding, Severity
from assistant.privacy import redact

VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_HOME",
    "CUDA_PATH",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "HSA_OVERRIDE_GFX_VERSION",
    "HSA_ENABLE_DXG_DETECTION",
    "ONEAPI_DEVICE_SELECTOR",
    "ZE_AFFINITY_MASK",
    "DML_VISIBLE_DEVICES",
    "PYTORCH_ENABLE_MPS_FALLBACK",
    "PYTORCH_MPS_HIGH_WATERMARK_RATIO",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "NVIDIA_VISIBLE_DEVICES",
    "INFERENCE_DEVICE",
)

ARCHITECTURES = {"amd64": "x86_64", "x64": "x86_64", "i386": "x86", "i486": "x86", "i586": "x86", "i686": "x86"}
_OWN_KERNEL = r"torch-[a-z0-9.-]{1,60}-\d{1,4}\.\d{1,4}\.\d{1,4}(?:-\d{1,4})?"  # torch-cpu-2.13.0
SYSTEMS = {"Linux": "linux", "Windows": "windows", "Darwin": "macos"}


def interpreter(host: Host, notes: Notes) -> None:
    """Note the system's family and the Python that runs this."""
    facts = {name: str(value) for name, value in host.facts("platform").items()}
    if not facts:
        notes.could_not_look("Python", host.ask("platform"))
        return
    built = re.search(r"64 bit \((A[RM][MD]64)\)", facts["build"])  # on Windows: the machine may emulate it
    machine = (built[1] if built else facts["machine"]).lower()
    notes.fact("os", SYSTEMS.get(facts["system"]), "Python")
    notes.fact("arch", ARCHITECTURES.get(machine, machine) or None, "Python")
    notes.fact("python", facts["python"] + ("t" if facts["free_threaded"] == "True" else ""), "Python")
    notes.fact("python_implementation", facts["implementation"], "Python")
    notes.fact("python_bits", int(facts["bits"]), "Python")
    if is_from_store(facts["executable"], facts["base_prefix"]):
        notes.finding(
            "python-from-store",
            Severity.INFO,
            _("This Python comes from the Microsoft Store; its folders are redirected, so use a separate environment."),
        )
    if re.search(r"Anaconda|conda-forge", facts["build"]):
        text = _(
            "This Python comes from conda; packages of pip and of conda overwrite one another, so keep them apart."
        )
        notes.finding("python-from-conda", Severity.INFO, text)


def disk(host: Host, notes: Notes) -> None:
    """Note the space that is free where environments are made."""
    free = host.facts("disk", "~").get("free")
    notes.fact("disk_free_gb", round(free / 2**30, 1) if isinstance(free, int) else None, "home folder")


def environment(host: Host, notes: Notes) -> None:
    """Note the variables that steer which devices a program sees."""
    answers = {name: host.variable(name) for name in VARIABLES}
    values = {name: redact(answer.text)[:200] for name, answer in answers.items() if answer}
    notes.fact("env", values or None, "environment variables")


def packages(host: Host, notes: Notes) -> None:
    """Note which packages of PyTorch's family are installed for this Python already.

    What start.py put into the assistant's own environment is no answer, unless the user put torch there.
    """
    versions = {name: str(version) for name, version in sorted(host.facts("packages").items())}
    own = OWN_ENVIRONMENTS in re.split(r"[\\/]", str(host.facts("platform").get("executable")))
    if "torch" in versions or not own:
        notes.fact("packages", versions or None, "installed packages")


def broken_kernels(host: Host) -> tuple[Finding, ...]:
    """Return a finding for each Jupyter kernel that cannot start now."""
    notes = Notes()
    kernels(host, notes)
    return tuple(finding for finding in notes.findings if finding.key == "kernel-broken")


def kernels(host: Host, notes: Notes) -> None:
    """Note which Jupyter kernels start another Python than this one, and which start none at all.

    Those that the assistant made (`torch-cpu-2.13.0`) are no news.
    """
    here = str(host.facts("platform").get("executable", ""))
    elsewhere = []
    for name, answer in sorted(host.facts("kernels").items()):
        kernel = answer if isinstance(answer, dict) else {}
        program = str(kernel.get("program") or "")
        # A bare `python` means whichever comes first on PATH, which may be this one.
        other = any(slash in program for slash in "/\\") and program.lower() != here.lower()
        if not kernel.get("works"):
            text = _("The Jupyter kernel “{name}” cannot start: its program {program} is gone.")
            notes.finding("kernel-broken", Severity.WARNING, text.format(name=name, program=program))
        elif kernel.get("language") == "python" and other and not re.fullmatch(_OWN_KERNEL, name):
            elsewhere.append(f"{name} ({program})")
    if elsewhere:
        text = _("These Jupyter kernels run other Pythons, with packages of their own: {kernels}.")
        notes.finding("kernel-elsewhere", Severity.INFO, text.format(kernels=", ".join(elsewhere)))

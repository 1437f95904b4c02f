"""Probes that every system shares, and the notes in which all probes say what they saw."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec.structs

from assistant.host.base import Host
from assistant.host.files import OWN_ENVIRONMENTS, is_from_store
from assistant.i18n import Text, _
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Answer, Evidence, Gpu
from assistant.model.record import Record
from assistant.model.visible import one_line
from assistant.parsers.cards import Device
from assistant.privacy import redact

LIMIT = 1000  # characters kept of any text from outside (chosen: far above any device's name)
MOST_GPUS = 64  # more than any machine; a hostile report could list millions


def clean(text: str) -> str:
    """Make text from outside one line of bounded length without anything hidden."""
    return one_line(text[:LIMIT])


def private(text: str) -> str:
    """Clean a text that is kept as evidence, and take out what must not leave this machine."""
    return clean(redact(text[: 4 * LIMIT]))


def _cleaned(value: object) -> object:
    if isinstance(value, dict):
        return {clean(name): _cleaned(item) for name, item in value.items()}
    return clean(value) if isinstance(value, str) else value


class Sighting(Record, frozen=True):
    """One GPU as one source saw it; `bus` (`0000:01:00.0`) ties sightings of the same card together."""

    gpu: Gpu
    source: str
    bus: str | None = None
    revision: str | None = None


class Notes:
    """Facts are named as in `Machine`; the first probe in the list that reports a fact decides it."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}
        self.gpus: list[Sighting] = []
        self.evidence: list[Evidence] = []
        self.findings: list[Finding] = []

    def fact(self, name: str, value: object, source: str) -> None:
        """Note a fact; None means that the source did not tell, and of packages those are added that no other told."""
        before = self.facts.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            value = {**value, **before} if value.keys() - before.keys() else None
        elif name in self.facts:
            value = None
        if value is not None:
            self.facts[name] = _cleaned(value)
            self.evidence.append(Evidence(fact=name, source=source))

    def looked(self, fact: str, source: str, text: str) -> None:
        """Note that a source was read and what it said where that is not a value: "none there"."""
        self.evidence.append(Evidence(fact=fact, source=source, text=private(text)))

    def gpu(self, gpu: Gpu, source: str, *, bus: str | None = None, revision: str | None = None) -> None:
        """Note a GPU that a source saw."""
        if len(self.gpus) >= MOST_GPUS:
            return
        texts = {name: _cleaned(getattr(gpu, name)) for name in ("name", "driver")}
        gpu = msgspec.structs.replace(gpu, **texts)
        self.gpus.append(Sighting(gpu=gpu, source=source, bus=bus, revision=revision))

    def devices(self, devices: Iterable[Device], source: str) -> None:
        """Note the GPUs that a tool reports."""
        for device in devices:
            self.gpu(device.gpu, source, bus=device.bus)

    def finding(
        self,
        key: str,
        severity: Severity,
        text: Text,
        *,
        evidence: tuple[str, ...] = (),
        remedies: tuple[Remedy, ...] = (),
    ) -> None:
        """Note something worth reporting."""
        self.findings.append(
            Finding(key=key, severity=severity, text=text, evidence=tuple(map(private, evidence)), remedies=remedies)
        )

    def could_not_look(self, source: str, answer: Answer) -> None:
        """Note that a source exists but did not answer; "missing" and "unrecorded" are no such case."""
        reasons = {"denied": _("access denied"), "timeout": _("no answer in time"), "failed": _("it failed")}
        if answer.status in reasons:
            text = _("{source} could not be read ({reason}), so what it holds is unknown.")
            self.finding(
                "could-not-look",
                Severity.INFO,
                text.format(source=source, reason=reasons[answer.status]),
                evidence=(answer.text,) if answer.text else (),
            )


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

"""The notes that all probes fill, the list of GPUs that is made of them, and the probes that all systems share."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec.structs

from assistant.catalog.identity import find_idle_adapter, identify, identify_name, patterns, vendor_of
from assistant.host.base import Host
from assistant.host.files import OWN_ENVIRONMENTS, is_from_store
from assistant.i18n import Text, _
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Answer, Evidence, Gpu, Vendor
from assistant.model.record import Record
from assistant.model.visible import one_line
from assistant.parsers import Device
from assistant.parsers.windows import read_nvidia_version
from assistant.privacy import redact

LIMIT = 1000  # characters kept of any text from outside (chosen: far above any device's name)
MOST_GPUS = 64  # more than any machine; a hostile report could list millions


def clean(text: str) -> str:
    """Return external text as one line of at most 1000 characters without hidden ones."""
    return one_line(text[:LIMIT])


def _redact_evidence(text: str) -> str:
    """Return a text for evidence: redacted, on one line, of at most 1000 characters."""
    return clean(redact(text[: 4 * LIMIT]))


def _clean_texts(value: object) -> object:
    if isinstance(value, dict):
        return {clean(name): _clean_texts(item) for name, item in value.items()}
    return clean(value) if isinstance(value, str) else value


class Sighting(Record, frozen=True):
    """One GPU as one source reports it; sightings with the same `bus` (`0000:01:00.0`) are of one GPU."""

    gpu: Gpu
    source: str
    bus: str | None = None
    revision: str | None = None


class Notes:
    """What probes report: facts, named as in `Machine`, of which the first value stays; GPUs, evidence, findings."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}
        self.gpus: list[Sighting] = []
        self.evidence: list[Evidence] = []
        self.findings: list[Finding] = []

    def record_fact(self, name: str, value: object, source: str) -> None:
        """Record a fact with its source, unless it has a value already, or `value` is None.

        Of a dict, the keys that are missing are added. Texts are cleaned as `clean` does.
        """
        before = self.facts.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            value = {**value, **before} if value.keys() - before.keys() else None
        elif name in self.facts:
            value = None
        if value is not None:
            self.facts[name] = _clean_texts(value)
            self.evidence.append(Evidence(fact=name, source=source))

    def record_absence(self, fact: str, source: str, words: str) -> None:
        """Record, in words of our own, that a source has no value for a fact."""
        self.evidence.append(Evidence(fact=fact, source=source, text=words))

    def record_evidence(self, fact: str, source: str, text: str) -> None:
        """Record as evidence what a source says about a fact that is no value for it."""
        self.evidence.append(Evidence(fact=fact, source=source, text=_redact_evidence(text)))

    def record_gpu(self, gpu: Gpu, source: str, *, bus: str | None = None, revision: str | None = None) -> None:
        """Record a GPU as a source reports it; ignore those after the 64th.

        Its name and driver are cleaned as `clean` does. `bus` is its PCI address, such as "0000:01:00.0", `revision`
        that of its PCI id.
        """
        if len(self.gpus) >= MOST_GPUS:
            return
        texts = {name: _clean_texts(getattr(gpu, name)) for name in ("name", "driver")}
        gpu = msgspec.structs.replace(gpu, **texts)
        self.gpus.append(Sighting(gpu=gpu, source=source, bus=bus, revision=revision))

    def record_devices(self, devices: Iterable[Device], source: str) -> None:
        """Record the GPUs that a tool reports, as `record_gpu` does."""
        for device in devices:
            self.record_gpu(device.gpu, source, bus=device.bus)

    def inform(self, key: str, text: Text, *evidence: str, severity: Severity = Severity.INFO) -> None:
        """Record a finding without a remedy; its evidence is redacted."""
        self.findings.append(
            Finding(key=key, severity=severity, text=text, evidence=tuple(map(_redact_evidence, evidence)))
        )

    def warn(
        self, key: str, text: Text, fix: Text, *commands: str, evidence: str = "", severity: Severity = Severity.WARNING
    ) -> None:
        """Record a finding with a remedy: what to do (`fix`), with its commands; `evidence` is a tool's text on it."""
        remedies = (Remedy(text=fix, commands=commands),)
        said = tuple(map(_redact_evidence, filter(None, (evidence,))))
        self.findings.append(Finding(key=key, severity=severity, text=text, evidence=said, remedies=remedies))

    def read_answer(self, source: str, answer: Answer) -> str:
        """Return an answer's text, that of a failed one, too, "" if there is none.

        If it was denied, timed out or failed, a finding "could-not-look" is recorded; that a thing is missing, or not
        in a recording, is none.
        """
        reasons = {"denied": _("access denied"), "timeout": _("no answer in time"), "failed": _("it failed")}
        if reason := reasons.get(answer.status):
            text = _(
                "{source} could not be read ({reason}), so what it holds is unknown.", source=source, reason=reason
            )
            self.inform("could-not-look", text, *filter(None, (answer.text,)))
        return answer.text


FIELDS = tuple(name for name in Gpu.__struct_fields__ if name != "vendor")


def merge_sightings(sightings: Iterable[Sighting], notes: Notes) -> tuple[Gpu, ...]:
    """Return one GPU for all sightings of it: integrated ones last, else in the order in which they were first seen.

    The sources of each GPU's fields are added to the notes as evidence, named as `gpus[0].name`.
    """
    cards: list[list[Sighting]] = []
    for sighting in sightings:
        same = next((card for card in cards if _is_same_gpu(card, sighting)), None)
        if same is None:
            cards.append([sighting])
        else:
            same.append(sighting)
    united = sorted(map(_merge_gpu, cards), key=lambda pair: bool(pair[0].integrated))
    for index, (_gpu, sources) in enumerate(united):
        notes.evidence.extend(
            Evidence(fact=f"gpus[{index}].{field}", source=source) for field, source in sources.items()
        )
    return tuple(gpu for gpu, _sources in united)


def _is_same_gpu(card: list[Sighting], new: Sighting) -> bool:
    """Return whether a new sighting may be of the GPU that other sightings (`card`) are of.

    It is not if its source is among theirs: a source lists each GPU once. Bus addresses decide if both sides have one;
    else the vendor must be the same, and PCI id, gfx target and for NVIDIA the name must not differ where both have it.
    """
    if any(seen.source == new.source for seen in card):
        return False
    buses = {seen.bus for seen in card if seen.bus}
    if buses and new.bus:
        return new.bus in buses
    if new.gpu.vendor not in {seen.gpu.vendor for seen in card}:
        return False
    # Tools name AMD's and Intel's cards too differently for a name to tell two apart.
    identifying = ("pci_id", "gfx", "name") if new.gpu.vendor is Vendor.NVIDIA else ("pci_id", "gfx")
    for field in identifying:
        values = {getattr(seen.gpu, field) for seen in card} - {None}
        if values and getattr(new.gpu, field) not in {None, *values}:
            return False
    return True


def _merge_gpu(card: list[Sighting]) -> tuple[Gpu, dict[str, str]]:
    """Return the GPU that sightings describe, and the source of each field by its name.

    A field is that of the first sighting that has it, else the catalogue's, which is asked by PCI id, then by name.
    """
    revision = next((seen.revision for seen in card if seen.revision), None)
    by_id = (identify(seen.gpu.pci_id, revision) for seen in card if seen.gpu.pci_id)
    by_name = (identify_name(seen.gpu.vendor, seen.gpu.name) for seen in card if seen.gpu.name)
    identity = next((each for each in (*by_id, *by_name) if each), None)
    catalogued: list[tuple[object, str]] = [(identity, "catalogue")] if identity else []
    found: dict[str, object] = {}
    sources: dict[str, str] = {}
    for record, source in [*((seen.gpu, seen.source) for seen in card), *catalogued]:
        for field in FIELDS:
            value = getattr(record, field, None)
            if value is not None and field not in found:
                found[field], sources[field] = value, source
    vendor = next((seen.gpu.vendor for seen in card if seen.gpu.vendor is not Vendor.UNKNOWN), Vendor.UNKNOWN)
    return Gpu(vendor=vendor, **found), sources  # type: ignore[arg-type]  # each value came out of a Gpu


def reason_not_a_gpu(pci_id: str, kind: str = "0300", name: str | None = None) -> Text:
    """Return why an adapter does not count as a GPU, as one sentence; "" for one that does.

    Server consoles and virtual displays do not count, by their id or `name`, and by PCI class and subclass (`kind`)
    NPUs of Intel or others.
    """
    idle = find_idle_adapter(pci_id)
    if idle and idle.kind == "console":
        text = _("{name} ({pci_id}) is a server's console adapter and cannot compute.")
        return text.format(name=name or idle.maker, pci_id=pci_id)
    if idle:
        return _("{name} is a virtual display adapter and cannot compute.", name=name or f"{idle.maker} ({pci_id})")
    if name and patterns("idle_names")["idle_names"].search(name):
        return _("{name} is a virtual display adapter and cannot compute.", name=name)
    if kind.startswith("12") and vendor_of(pci_id) in {Vendor.INTEL, Vendor.OTHER}:
        text = _("{pci_id} is an accelerator (an NPU or the like) that PyTorch's wheels do not drive.")
        return text.format(pci_id=pci_id)
    return ""


def note_adapter(
    gpu: Gpu,
    source: str,
    notes: Notes,
    *,
    kind: str = "0300",
    bus: str | None = None,
    revision: str | None = None,
    reason: Text = "",
) -> bool:
    """Record an adapter as a GPU, or a finding that says why it is none; return whether it is one.

    `kind` is its PCI class and subclass. A `reason` makes it none; that of `reason_not_a_gpu` precedes it. NVIDIA's
    driver is recorded as the fact `nvidia_driver`, too: that of Windows (32.0.15.6094) by NVIDIA's number (560.94).
    """
    reason = reason_not_a_gpu(gpu.pci_id or "", kind, gpu.name) or reason
    if reason:
        notes.inform("adapter-skipped", reason, *((source,) if bus else ()))
        return False
    notes.record_gpu(gpu, source, bus=bus, revision=revision)
    if gpu.vendor is Vendor.NVIDIA and gpu.driver:
        own = (
            gpu.driver if re.fullmatch(r"\d{3}\.\d{2,3}(?:\.\d{1,2})?", gpu.driver) else read_nvidia_version(gpu.driver)
        )
        notes.record_fact("nvidia_driver", own, source)
    return True


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
    """Record the system's family, the architecture and this Python; findings if it is from the Store or from conda.

    A free-threaded Python's version ends in "t".
    """
    facts = {name: str(value) for name, value in host.facts("platform").items()}
    if not facts:
        notes.read_answer("Python", host.ask("platform"))
        return
    built = re.search(r"64 bit \((A[RM][MD]64)\)", facts["build"])  # on Windows: the machine may emulate it
    machine = (built[1] if built else facts["machine"]).lower()
    notes.record_fact("os", SYSTEMS.get(facts["system"]), "Python")
    notes.record_fact("arch", ARCHITECTURES.get(machine, machine) or None, "Python")
    notes.record_fact("python", facts["python"] + ("t" if facts["free_threaded"] == "True" else ""), "Python")
    notes.record_fact("python_implementation", facts["implementation"], "Python")
    notes.record_fact("python_bits", int(facts["bits"]), "Python")
    if is_from_store(facts["executable"], facts["base_prefix"]):
        text = _(
            "This Python comes from the Microsoft Store; its folders are redirected, so use a separate environment."
        )
        notes.inform("python-from-store", text)
    if re.search(r"Anaconda|conda-forge", facts["build"]):
        text = _(
            "This Python comes from conda; packages of pip and of conda overwrite one another, so keep them apart."
        )
        notes.inform("python-from-conda", text)


def disk(host: Host, notes: Notes) -> None:
    """Record the space in GiB that is free in the home folder, where environments are made."""
    free = host.facts("disk", "~").get("free")
    notes.record_fact("disk_free_gb", round(free / 2**30, 1) if isinstance(free, int) else None, "home folder")


def environment(host: Host, notes: Notes) -> None:
    """Record the variables of `VARIABLES`, which steer what devices a program sees; values are redacted."""
    answers = {name: host.variable(name) for name in VARIABLES}
    values = {name: redact(answer.text)[:200] for name, answer in answers.items() if answer}
    notes.record_fact("env", values or None, "environment variables")


def packages(host: Host, notes: Notes) -> None:
    """Record the packages installed for this Python that have to do with PyTorch, by name and version.

    Those of the assistant's own environment are ignored, unless the user installed torch there.
    """
    versions = {name: str(version) for name, version in sorted(host.facts("packages").items())}
    own = OWN_ENVIRONMENTS in re.split(r"[\\/]", str(host.facts("platform").get("executable")))
    if "torch" in versions or not own:
        notes.record_fact("packages", versions or None, "installed packages")


def find_broken_kernels(host: Host) -> tuple[Finding, ...]:
    """Return a finding for each Jupyter kernel that cannot start now."""
    notes = Notes()
    kernels(host, notes)
    return tuple(finding for finding in notes.findings if finding.key == "kernel-broken")


def kernels(host: Host, notes: Notes) -> None:
    """Record findings: one on all Jupyter kernels of other Pythons, and one for each kernel whose program is gone.

    A kernel whose file cannot be read counts as such. Working kernels called as the assistant calls its own
    (`torch-cpu-2.13.0`) are left out.
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
            notes.inform("kernel-broken", text.format(name=name, program=program), severity=Severity.WARNING)
        elif kernel.get("language") == "python" and other and not re.fullmatch(_OWN_KERNEL, name):
            elsewhere.append(f"{name} ({program})")
    if elsewhere:
        text = _("These Jupyter kernels run other Pythons, with packages of their own: {kernels}.")
        notes.inform("kernel-elsewhere", text.format(kernels=", ".join(elsewhere)))

"""Runs the probes of a system side by side, each within its time limit, and makes one machine of their notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from assistant.detect import common, linux, macos, nvidia, windows
from assistant.detect.common import Notes, Sighting, merge_sightings
from assistant.detect.overrides import override_facts
from assistant.host.base import Host, RecordingHost
from assistant.host.process import run_within
from assistant.i18n import _
from assistant.model.machine import Detection, Machine

Probe = Callable[[Host, Notes], None]
LIMIT_SECONDS = 10.0  # chosen: nvidia-smi takes seconds where persistence mode is off and GPUs wake up

COMMON: tuple[Probe, ...] = (
    common.interpreter,
    common.disk,
    common.environment,
    common.packages,
    common.kernels,
)
PROBES: dict[str, tuple[Probe, ...]] = {
    "Linux": (
        linux.release,
        linux.memory,
        linux.container,
        linux.jetson,
        nvidia.nvidia_gpus,
        linux.adapters,
        linux.amd_gpus,
        linux.rocm,
        linux.amd_access,
        linux.intel_memory,
        linux.intel_runtime,
        linux.secure_boot,
        linux.wsl,
    ),
    "Windows": (
        windows.release,
        windows.memory,
        nvidia.nvidia_gpus_on_windows,
        windows.adapters,
        windows.direct3d,
        windows.npus,
        windows.runtimes,
    ),
    "Darwin": (macos.release, macos.gpus),
}
# These bring findings alone, and no fact.
JUDGING = {
    common.kernels,
    linux.amd_access,
    linux.intel_runtime,
    linux.secure_boot,
    windows.npus,
    windows.runtimes,
}


def detect(
    host: Host, *, overrides: Mapping[str, str] | None = None, limit: float = LIMIT_SECONDS, judging: bool = True
) -> Detection:
    """Look at a machine and return its facts and findings; a probe that fails, or takes `limit` seconds, is a finding.

    `overrides` sets facts by name (`nvidia_driver`, `gpus[0].gfx`, `env.NAME`); raises `BadInput` for an unknown one or
    a value that does not fit. Without `judging`, probes that bring findings alone are not run.
    """
    asked = host if host.replayed or isinstance(host, RecordingHost) else RecordingHost(host)
    try:
        system = str(host.facts("platform").get("system", ""))
    except Exception:  # noqa: BLE001 - an answer in no known form names no system; the probe that reads it says so
        system = ""
    probes = tuple(probe for probe in (*COMMON, *PROBES.get(system, ())) if judging or probe not in JUDGING)
    return override_facts(unite_notes(_run_probes(asked, probes, limit)), overrides or {})


def _run_probes(host: Host, probes: tuple[Probe, ...], limit: float) -> Iterator[Notes]:
    """Yield the notes of each probe, in their order, after all have run; a finding for one that fails or is too late.

    They run side by side on threads, but for a recording, which is asked in this one without a limit.
    """

    def work(probe: Probe) -> Notes:
        """Return what a probe notes; if it fails, only a finding that says so is added."""
        notes = Notes()
        try:
            probe(host, notes)
        except Exception as error:  # noqa: BLE001 - one probe's fault must not cost the others' facts
            text = _("The probe “{name}” failed; its facts are unknown.", name=probe.__name__)
            notes.inform("probe-failed", text, f"{type(error).__name__}: {error}")
        return notes

    found = {probe: work(probe) for probe in probes} if host.replayed else run_within(work, probes, limit)
    for probe in probes:
        if probe not in found:
            text = _("The probe “{name}” did not answer in time; its facts are unknown.", name=probe.__name__)
            found[probe] = Notes()
            found[probe].inform("probe-timeout", text)
        yield found[probe]


def unite_notes(all_notes: Iterable[Notes]) -> Detection:
    """Return the machine and the findings that notes of several probes make; of a fact, the first value counts.

    GPUs are merged. The order of the notes decides, so that the answer does not depend on which probe ends first.
    """
    together, seen = Notes(), list[Sighting]()
    for notes in all_notes:
        seen += notes.gpus
        before = set(together.facts)
        together.facts = notes.facts | together.facts
        together.evidence += (item for item in notes.evidence if item.fact not in before)
        together.findings += notes.findings
    gpus = merge_sightings(seen, together)
    machine = Machine(**together.facts, gpus=gpus, evidence=tuple(together.evidence))  # type: ignore[arg-type]
    return Detection(machine=machine, findings=tuple(together.findings))

"""Runs the probes of a system side by side, each within its time limit, and makes one machine of their notes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from assistant.detect import amd, common, linux, macos, nvidia, windows, wsl
from assistant.detect.gpus import merge
from assistant.detect.notes import Notes
from assistant.detect.overrides import overridden
from assistant.detect.remarks import remarks
from assistant.host.base import Host
from assistant.host.recording import RecordingHost
from assistant.i18n import _
from assistant.model.finding import Severity
from assistant.model.machine import Detection, Machine

__all__ = ["detect", "united"]

Probe = Callable[[Host, Notes], None]
LIMIT_SECONDS = 10.0

COMMON: tuple[Probe, ...] = (common.interpreter, common.disk, common.environment, common.packages, common.kernels)
PROBES: dict[str, tuple[Probe, ...]] = {
    "Linux": (
        linux.release,
        linux.memory,
        linux.container,
        linux.jetson,
        nvidia.nvidia_gpus,
        linux.adapters,
        amd.amd_gpus,
        amd.rocm,
        amd.amd_access,
        linux.intel_runtime,
        linux.secure_boot,
        wsl.wsl,
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


def detect(host: Host, *, overrides: Mapping[str, str] | None = None) -> Detection:
    """Look at a machine and tell its facts and findings; a probe that fails or hangs becomes a finding.

    `overrides` sets facts by name (`nvidia_driver`, `gpus[0].gfx`, `env.NAME`); raises `BadInput` for an unknown one.
    """
    asked = host if host.replayed or isinstance(host, RecordingHost) else RecordingHost(host)
    system = str(asked.facts("platform").get("system", ""))
    probes = (*COMMON, *PROBES.get(system, ()))
    return overridden(united(_all_notes(asked, probes)), overrides or {})


def _all_notes(host: Host, probes: tuple[Probe, ...]) -> list[Notes]:
    """Run every probe in a thread of its own; one that is late is left behind with a finding in its place."""
    if host.replayed:
        return [_noted(probe, host) for probe in probes]
    results: dict[int, Notes] = {}
    threads = [
        threading.Thread(target=lambda i=i, p=p: results.setdefault(i, _noted(p, host)), daemon=True)
        for i, p in enumerate(probes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_SECONDS)
    return [results.get(i) or _late(probe) for i, probe in enumerate(probes)]


def _noted(probe: Probe, host: Host) -> Notes:
    notes = Notes()
    try:
        probe(host, notes)
    except Exception as error:  # noqa: BLE001 - one probe's fault must not cost the others' facts
        text = _("The probe “{name}” failed; what it would tell is unknown.").format(name=probe.__name__)
        notes.finding("probe-failed", Severity.INFO, text, evidence=(f"{type(error).__name__}: {error}",))
    return notes


def _late(probe: Probe) -> Notes:
    notes = Notes()
    text = _("The probe “{name}” did not answer in time; what it would tell is unknown.").format(name=probe.__name__)
    notes.finding("probe-timeout", Severity.INFO, text)
    return notes


def united(all_notes: list[Notes]) -> Detection:
    """Join the notes in the order of the probes, so that the answer does not depend on which came first."""
    together = Notes()
    for notes in all_notes:
        told = set(together.facts)
        together.facts = notes.facts | together.facts
        together.evidence += (item for item in notes.evidence if item.fact not in told)
        together.findings += notes.findings
    gpus = merge([sighting for notes in all_notes for sighting in notes.gpus], together)
    machine = Machine(**together.facts, gpus=gpus, evidence=tuple(together.evidence))  # type: ignore[arg-type]
    return Detection(machine=machine, findings=(*remarks(machine), *together.findings))

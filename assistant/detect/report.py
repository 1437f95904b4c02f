"""Reads what users paste: reports of tools, alone, together or inside other text."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from assistant.detect.adapters import not_a_gpu
from assistant.detect.notes import Notes
from assistant.detect.parsers import nvidia
from assistant.detect.parsers.amd import rocminfo
from assistant.detect.parsers.apple import overview, profiler_json, profiler_text
from assistant.detect.parsers.collect_env import collect_env
from assistant.detect.parsers.dxdiag import dxdiag
from assistant.detect.parsers.windows import nvidia_version
from assistant.detect.run import united
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.finding import Severity
from assistant.model.machine import Detection, Vendor

__all__ = ["read_report"]


def read_report(text: str) -> Detection:
    """Read every report that the text holds into one machine; findings say what was read and what stays unknown.

    Raises `BadInput` when the text holds no report that is known.
    """
    notes = Notes()
    plain = text.replace("\r", "\n") if "\n" not in text else text.replace("\r", "")
    read = [name for name, reader in READERS.items() if reader(plain, notes)]
    if not read:
        raise BadInput(
            _("No report that can be read was found in the text."),
            hint=_("Paste the output of: {tools}.").format(tools=", ".join(READERS)),
        )
    return _with_summary(united([notes]), read)


def _with_summary(detection: Detection, read: list[str]) -> Detection:
    notes = Notes()
    notes.finding("report-read", Severity.OK, _("Read: {tools}.").format(tools=", ".join(read)))
    unknown = [name for name in _WISHED if getattr(detection.machine, name) is None]
    if unknown:
        text = _("The text does not tell: {facts}. What rests on them is decided without.")
        notes.finding("report-silent", Severity.INFO, text.format(facts=", ".join(unknown)))
    return msgspec.structs.replace(detection, findings=(*notes.findings, *detection.findings))


_WISHED = ("os", "os_version", "arch", "python", "memory_gb", "disk_free_gb")


def _collect_env(text: str, notes: Notes) -> bool:
    told = collect_env(text)
    if told is None:
        return False
    for name, value in told.facts.items():
        notes.fact(name, value, "collect_env")
    for gpu in told.gpus:
        notes.gpu(gpu, "collect_env")
    if not told.gpus and told.gpus_told:
        notes.looked("gpus", "collect_env", "this PyTorch saw no GPU; the machine may have one")
    return True


def _nvidia(report: nvidia.NvidiaReport | None, source: str, notes: Notes) -> bool:
    if report is None:
        return False
    notes.fact("nvidia_driver", report.driver, source)
    notes.fact("cuda_driver_api", report.cuda, source)
    for row in report.rows:
        notes.gpu(row.gpu, source, bus=row.bus)
    return True


def _rocminfo(text: str, notes: Notes) -> bool:
    agents = rocminfo(text)
    for agent in agents or ():
        notes.gpu(agent.gpu, "rocminfo", bus=agent.bus)
    return agents is not None


def _dxdiag(text: str, notes: Notes) -> bool:
    told = dxdiag(text)
    if told is None:
        return False
    notes.fact("os", "windows", "dxdiag")
    notes.fact("os_version", told.os_version, "dxdiag")
    notes.fact("arch", told.arch, "dxdiag")
    notes.fact("memory_gb", told.memory_gb, "dxdiag")
    for found in told.adapters:
        reason = not_a_gpu(found.gpu.pci_id or "", name=found.gpu.name)
        if reason:
            notes.finding("adapter-skipped", Severity.INFO, reason)
            continue
        notes.gpu(found.gpu, "dxdiag")
        if found.gpu.vendor is Vendor.NVIDIA and found.gpu.driver:
            notes.fact("nvidia_driver", nvidia_version(found.gpu.driver), "dxdiag")
    return True


def _system_profiler(text: str, notes: Notes) -> bool:
    gpus = profiler_json(text) if '"SPDisplaysDataType"' in text else profiler_text(text)
    facts = overview(text) if gpus is not None or "Hardware Overview:" in text else {}
    if gpus is None and not facts:
        return False
    for name, value in {"os": "macos", **facts}.items():
        notes.fact(name, value, "system_profiler")
    for gpu in gpus or ():
        notes.gpu(gpu, "system_profiler")
    return True


READERS: dict[str, Callable[[str, Notes], bool]] = {
    "python -m torch.utils.collect_env": _collect_env,
    "nvidia-smi": lambda text, notes: _nvidia(nvidia.smi_table(text), "nvidia-smi", notes),
    "nvidia-smi -q": lambda text, notes: _nvidia(nvidia.smi_query(text), "nvidia-smi -q", notes),
    "rocminfo": _rocminfo,
    "dxdiag": _dxdiag,
    "system_profiler": _system_profiler,
}

"""Reads what users paste: reports of tools, alone, together or inside other text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from assistant.detect.adapters import not_a_gpu
from assistant.detect.notes import Notes
from assistant.detect.run import united
from assistant.i18n import Text, _
from assistant.model.errors import BadInput
from assistant.model.finding import Severity
from assistant.model.machine import Detection, Gpu, Vendor
from assistant.model.pasted import without_entities
from assistant.parsers import nvidia
from assistant.parsers.amd import rocminfo
from assistant.parsers.apple import overview, profiler_json, profiler_text
from assistant.parsers.collect_env import collect_env
from assistant.parsers.dxdiag import dxdiag
from assistant.parsers.listed import LAYOUTS, device_blocks, lspci, smi_lines
from assistant.parsers.programs import program_report
from assistant.parsers.windows import nvidia_version


def read_report(text: str) -> Detection:
    """Read every report that the text holds into one machine; findings say what was read and what stays unknown.

    Raises `BadInput` when the text holds no report that is known.
    """
    notes = Notes()
    plain = _as_printed(text)
    read = [name for name, reader in READERS.items() if reader(plain, notes)]
    read += [name for name, reader in BRIEF_READERS.items() if reader(plain[:_BRIEF], notes)]
    if not read:
        raise BadInput(
            _("No report that can be read was found in the text."),
            hint=_("Paste the output of: {tools}.", tools=_names((*READERS, *BRIEF_READERS))),
        )
    return _with_summary(united([notes]), read)


_DEEPEST_QUOTE = 3


def _as_printed(text: str) -> str:
    """Undo what a page, a mail or an old system made of line ends, marks and quoted lines."""
    text = text.replace("\r", "\n") if "\n" not in text else text.replace("\r", "")
    text = without_entities(text)
    text = text if text.isascii() else text.replace("\xa0", " ").replace("\uff1a", ":")
    text = "\n" + (re.sub("<br ?/?>", "\n", text) if "<br" in text else text)
    for _quoted in range(_DEEPEST_QUOTE if "\n>" in text else 0):
        text = text.replace("\n> ", "\n").replace("\n>", "\n")
    return text[1:]


def _with_summary(detection: Detection, read: list[str]) -> Detection:
    notes = Notes()
    notes.finding("report-read", Severity.OK, _("Read: {tools}.", tools=_names(read)))
    unknown = [name for name in _WISHED if getattr(detection.machine, name) is None]
    if unknown:
        text = _("The text does not tell: {facts}. What rests on them is decided without.")
        notes.finding("report-silent", Severity.INFO, text.format(facts=", ".join(unknown)))
    return msgspec.structs.replace(detection, findings=(*notes.findings, *detection.findings))


def _names(readers: Iterable[str]) -> tuple[Text, ...]:
    return tuple(_("a program's own report, such as ComfyUI's") if name == _PROGRAM else name for name in readers)


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


def _smi_table(text: str, notes: Notes) -> bool:
    """Read the table, or else what nvidia-smi complains of in its place."""
    if _nvidia(nvidia.smi_table(text), "nvidia-smi", notes):
        return True
    at = max(text.find("NVIDIA-SMI"), text.find("NVML"))
    state = nvidia.smi_complaint(text[max(at - 200, 0) : at + 300]) if at >= 0 else None
    notes.fact("nvidia_driver_state", state if "nvidia_driver" not in notes.facts else None, "nvidia-smi")
    return state is not None


def _smi_lines(text: str, notes: Notes) -> bool:
    """Read such lines where no other report named every NVIDIA GPU: tables cut names short."""
    named = [seen.gpu.name for seen in notes.gpus if seen.gpu.vendor is Vendor.NVIDIA]
    reports = None if named and all(named) else smi_lines(text)
    return reports is not None and all(_nvidia(report, "nvidia-smi -L", notes) for report in reports)


def _rocminfo(text: str, notes: Notes) -> bool:
    agents = rocminfo(text)
    if agents is not None:
        notes.fact("os", "linux", "rocminfo")
        notes.fact("wsl", True if "WSL environment detected" in text else None, "rocminfo")
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
    for gpu in _cards((found.gpu for found in told.adapters), "dxdiag", notes):
        if gpu.vendor is Vendor.NVIDIA and gpu.driver:
            notes.fact("nvidia_driver", nvidia_version(gpu.driver), "dxdiag")
    return True


def _cards(gpus: Iterable[Gpu], source: str, notes: Notes) -> list[Gpu]:
    """Note each adapter as a GPU, or as a finding that says why it is none; give the GPUs."""
    kept = []
    for gpu in gpus:
        reason = not_a_gpu(gpu.pci_id or "", name=gpu.name)
        if reason:
            notes.finding("adapter-skipped", Severity.INFO, reason)
        else:
            notes.gpu(gpu, source)
            kept.append(gpu)
    return kept


def _lspci(text: str, notes: Notes) -> bool:
    gpus = lspci(text)
    notes.fact("os", "linux" if gpus else None, "lspci")
    _cards(gpus or (), "lspci", notes)
    return gpus is not None


def _devices(tool: str, text: str, notes: Notes) -> bool:
    gpus = device_blocks(text, LAYOUTS[tool])
    _cards(gpus or (), tool, notes)
    return gpus is not None


def _program(text: str, notes: Notes) -> bool:
    """Read what a program says of its environment; beside a dump or a list of GPUs it only fills gaps, if any."""
    told, before = program_report(text), (len(notes.evidence), len(notes.gpus))
    if told is None:
        return False
    dumped = notes.facts.keys() & {"python", "packages"}
    for name, value in told.facts.items():
        notes.fact(name, value if not dumped or name == "os" else None, "report")
    if not notes.gpus:
        _cards(told.gpus, "report", notes)
    return (len(notes.evidence), len(notes.gpus)) != before


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
    "nvidia-smi": _smi_table,
    "nvidia-smi -q": lambda text, notes: _nvidia(nvidia.smi_query(text), "nvidia-smi -q", notes),
    "rocminfo": _rocminfo,
    "dxdiag": _dxdiag,
    "system_profiler": _system_profiler,
}
_PROGRAM = "program"
_BRIEF = 2 * 10**5  # such reports are short: what stands behind so many characters is none
BRIEF_READERS: dict[str, Callable[[str, Notes], bool]] = {
    "nvidia-smi -L": _smi_lines,
    "lspci -nn": _lspci,
    **{tool: partial(_devices, tool) for tool in LAYOUTS},
    _PROGRAM: _program,
}

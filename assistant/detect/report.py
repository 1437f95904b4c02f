"""Reads what users paste: reports of tools, alone, together or inside other text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from textwrap import dedent

import msgspec

from assistant.catalog.vocabulary import tool_names
from assistant.detect.adapters import note_adapter
from assistant.detect.beside import note_drivers, note_memory, note_pci_ids
from assistant.detect.listed import note_complaints, note_listed, note_lspci, note_mentioned, note_program, note_said
from assistant.detect.nvidia import note_smi_query, note_smi_table
from assistant.detect.observations import Notes
from assistant.detect.run import united
from assistant.i18n import Text, _
from assistant.model.errors import BadInput
from assistant.model.finding import Severity
from assistant.model.machine import Detection, Vendor
from assistant.model.pasted import without_entities
from assistant.parsers.amd import rocminfo
from assistant.parsers.apple import overview, profiler_json, profiler_text
from assistant.parsers.collect_env import collect_env
from assistant.parsers.dxdiag import dxdiag


def read_report(text: str) -> Detection:
    """Read every report that the text holds into one machine; findings say what was read and what stays unknown.

    Raises `BadInput` when the text holds no report that is known.
    """
    notes = Notes()
    plain = _as_printed(text)
    read = [name for name, reader in READERS.items() if reader(plain, notes)]
    read += ["lspci -nn"] if note_lspci(plain[:_BRIEF], notes) else []
    dumped = bool(notes.facts.keys() & {"python", "packages"})
    claimed = [_CLAIMS[name] for name in read if name in _CLAIMS]
    known = len(notes.evidence), list(notes.gpus)
    tools = [tool for tool in note_listed(plain[:_LISTED], notes, claimed) if tool not in read]
    told = known != (len(notes.evidence), list(notes.gpus))
    read += (tools or [PROGRAM]) if told else tools if not read else []
    read += [PROGRAM] if note_program(plain[:_BRIEF], notes, dumped=dumped) else []
    read += note_complaints(plain[:_BRIEF], notes)
    said = note_said(plain[:_BRIEF], notes)
    mentioned = not any(seen.gpu.name or seen.gpu.pci_id for seen in notes.gpus) and note_mentioned(
        plain[:_LISTED], notes
    )
    note_pci_ids(plain[:_LISTED], notes)
    if not read and (mentioned or notes.gpus or said & {"wsl"} or said >= {"os", "python"} or _has_builds(notes)):
        read.append(PROGRAM)
    if not read:
        raise BadInput(
            _("No known report was found in the text."),
            hint=_("Paste the output of: {tools}.", tools=_names((*READERS, *tool_names(), PROGRAM))),
        )
    _conclude(notes, plain[:_LISTED])
    return _summed_up(united([notes]), read)


def _summed_up(found: Detection, read: Iterable[str]) -> Detection:
    """Put before the findings what was read and what stays unknown."""
    summary = Notes()
    summary.finding("report-read", Severity.OK, _("Read: {tools}.", tools=_names(read)))
    unknown = ", ".join(name for name in _WANTED if getattr(found.machine, name) is None)
    if unknown:
        text_ = _("The text does not say: {facts}. Decisions that depend on them are made without.", facts=unknown)
        summary.finding("report-silent", Severity.INFO, text_)
    return msgspec.structs.replace(found, findings=(*summary.findings, *found.findings))


def _has_builds(notes: Notes) -> bool:
    """Return whether two packages are told, or PyTorch by its tag, which nobody writes of a build that is not there."""
    packages = notes.facts.get("packages")
    return isinstance(packages, dict) and ("+" in packages.get("torch", "") or len(packages) > 1)


def _conclude(notes: Notes, text: str) -> None:
    """Note what facts imply: PyTorch's version names its ROCm, and what stands beside a card's name its memory."""
    parts = str(notes.facts.get("nvidia_driver", "")).count(".")
    notes.fact("os", "linux" if parts == 2 else None, "nvidia_driver")  # noqa: PLR2004 - 560.94 is one of Windows' drivers
    apple = any(seen.gpu.vendor is Vendor.APPLE for seen in notes.gpus)
    notes.fact("os", "macos" if apple else None, "gpus")
    notes.fact("wsl", False if notes.facts.get("os") in {"windows", "macos"} else None, "os")
    through_windows = notes.facts.get("os") == "linux" and _DIRECT3D.search(text)
    notes.fact("wsl", True if through_windows else None, "gpus")
    packages = notes.facts.get("packages")
    local = re.search(
        r"\+rocm(\d{1,2}\.\d{1,2}(?:\.\d)?)", packages.get("torch", "") if isinstance(packages, dict) else ""
    )
    notes.fact("rocm_version", local[1] if local else None, "torch")
    note_memory(text, notes)
    note_drivers(text, notes)


# OpenGL renderer string: D3D12 (NVIDIA GeForce RTX 3060)    deviceName = Microsoft Direct3D12 (AMD Radeon RX 6800)
_DIRECT3D = re.compile(r"\b(?:D3D12|Direct3D12) \([A-Z]")
# numpy               ✅ 1.26.2>=1.22.2    (what YOLO has, and what it needs)
_CHECKED = re.compile(r"✅ ?(\d[\w.+]{1,40})(?:[<>=!~,]{1,3}\d[\d.]{0,12}){1,4}")
# PyTorch 2.6.0+cu124 with CUDA 1204 (you have 2.5.1+cu124)
# A NumPy version >=1.22.4 and <2.3.0 is required for this version of SciPy (detected version 2.3.5)
_HAD = re.compile(
    r"\b(\w{3,20}(?: version)?) {1,3}[<>=]{0,2}\d[\w.+]{1,40}[^\n()]{0,90}"
    r"\((?:you have|detected version) (\d[\w.+]{1,40})\)"
)
_COLOURS = re.compile(r"\x1b\[[\d;]{0,20}[A-Za-z]")  # of a terminal
_DEEPEST_QUOTE = 3  # `> > > ` of a mail answered three times (chosen)


def _as_printed(text: str) -> str:
    """Undo what a page, a mail or an old system made of line ends, marks and quoted lines."""
    text = text.replace("\r", "\n") if "\n" not in text else text.replace("\r", "")
    text = _at_the_left(without_entities(text))
    text = text if text.isascii() else text.replace("\xa0", " ").replace("\uff1a", ":")
    if "<nvidia_smi_log" in text:
        text = re.sub(r"<(\w{2,60})>(?:([^<>\n]{1,200})</\w{2,60}>)?", r"\1 : \2", text)  # nvidia-smi -q -x
    text = _CHECKED.sub(r"\1", text) if "✅" in text else text
    text = _HAD.sub(r"you have \1 \2", _COLOURS.sub("", text).replace("%2B", "+"))
    text = "\n" + (re.sub("<br ?/?>", "\n", text) if "<br" in text else text)
    for _quoted in range(_DEEPEST_QUOTE if "\n>" in text else 0):
        text = re.sub(r"\n>(?!>> ) ?", "\n", text)  # not Python's prompt
    return _at_the_left(text[1:])


def _at_the_left(text: str) -> str:
    return dedent(text) if text[:1] in {" ", "\t"} else text


def _names(readers: Iterable[str]) -> tuple[Text, ...]:
    return tuple(
        _("a program's own report, such as ComfyUI's") if name == PROGRAM else name for name in dict.fromkeys(readers)
    )


_WANTED = ("os", "os_version", "arch", "python", "memory_gb", "disk_free_gb")


def _collect_env(text: str, notes: Notes) -> bool:
    dump = collect_env(text)
    if dump is None:
        return False
    for name, value in dump.facts.items():
        notes.fact(name, value, "collect_env")
    for gpu in dump.gpus:
        notes.gpu(gpu, "collect_env")
    if not dump.gpus and dump.lists_gpus:
        notes.looked("gpus", "collect_env", "this PyTorch saw no GPU; the machine may have one")
    return True


def _rocminfo(text: str, notes: Notes) -> bool:
    agents = rocminfo(text)
    if agents is None:
        return False
    notes.fact("os", "linux", "rocminfo")
    notes.fact("wsl", True if "WSL environment detected" in text else None, "rocminfo")
    notes.devices(agents, "rocminfo")
    return True


def _dxdiag(text: str, notes: Notes) -> bool:
    report = dxdiag(text)
    if report is None:
        return False
    notes.fact("os", "windows", "dxdiag")
    notes.fact("os_version", report.os_version, "dxdiag")
    notes.fact("arch", report.arch, "dxdiag")
    notes.fact("memory_gb", report.memory_gb, "dxdiag")
    for found in report.adapters:
        note_adapter(found.gpu, "dxdiag", notes)
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


# Lists, by their labels, that these readers have read.
_CLAIMS = {
    "python -m torch.utils.collect_env": r"//GPU #:|line",
    "nvidia-smi": r"(?!)",
    "nvidia-smi -q": r"productname|.{0,40}GPU",
    "rocminfo": r"name|marketingname|line",
    "dxdiag": r"cardname|name|description",
    "system_profiler": r"chipsetmodel|json|chip",
    "lspci -nn": r"line",
}
READERS: dict[str, Callable[[str, Notes], bool]] = {
    "python -m torch.utils.collect_env": _collect_env,
    "nvidia-smi": note_smi_table,
    "nvidia-smi -q": note_smi_query,
    "rocminfo": _rocminfo,
    "dxdiag": _dxdiag,
    "system_profiler": _system_profiler,
}
PROGRAM = "program"  # a report that no tool signs
_LISTED = 5 * 10**5  # characters (chosen): vulkaninfo's longest reports have as many
_BRIEF = 2 * 10**5  # characters (chosen): such reports are short, what stands further down is none

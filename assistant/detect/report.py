"""Reads what users paste: reports of tools, alone, together or inside other text, and what is said in passing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from textwrap import dedent

import msgspec
from msgspec.structs import replace

from assistant.detect.common import Notes
from assistant.detect.gpus import note_adapter
from assistant.detect.nvidia import note_smi_query, note_smi_table
from assistant.detect.run import united
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.finding import Severity
from assistant.model.machine import Detection, Machine, Vendor
from assistant.model.record import from_json
from assistant.parsers.amd import rocm_smi, rocminfo
from assistant.parsers.apple import overview, profiler_json, profiler_text
from assistant.parsers.collect_env import collect_env
from assistant.parsers.decode import without_entities
from assistant.parsers.linux import lspci
from assistant.parsers.mentioned import mentioned, rocm_said
from assistant.parsers.windows import dxdiag

OWN = "assistant detect --json"
_WANTED = ("os", "os_version", "arch", "python", "memory_gb", "disk_free_gb")
_BRIEF = 2 * 10**5  # characters (chosen): what is said in passing further down is none of the machine's facts


def read_report(text: str) -> Detection:
    """Read every report that the text holds into one machine; findings say what was read and what stays unknown.

    What is said in passing fills what no report tells. Raises `BadInput` where nothing of a machine can be read.
    """
    if own := _own(text):
        return _summed_up(Detection(machine=own), [OWN])
    notes = Notes()
    plain = _as_printed(text)
    read = [name for name, reader in READERS.items() if reader(plain, notes)]
    said = note_said(plain[:_BRIEF], notes)
    _conclude(notes)
    if not read and not said & {"gpus", "wsl"} and not said >= {"os", "python"} and not _has_builds(notes):
        raise BadInput(
            _("No known report was found in the text."),
            hint=_("Paste the output of: {tools}.", tools=(*READERS, OWN)),
        )
    return _summed_up(united([notes]), read or said)


def _own(text: str) -> Machine | None:
    """Read what `assistant detect --json` printed, whatever stands around it."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or not re.match(r'\{\s*"(?:schema|os|machine|gpus)"', text[start : start + 200]):
        return None
    try:
        found = from_json(text[start : end + 1], Machine, OWN)
    except BadInput:
        return None
    return found if found != Machine() else None


def _summed_up(found: Detection, read: Iterable[str]) -> Detection:
    """Put before the findings what was read and what stays unknown."""
    summary, tools = Notes(), tuple(name for name in read if name in READERS or name == OWN)
    if tools:
        summary.finding("report-read", Severity.OK, _("Read: {tools}.", tools=tools))
    else:
        text = _("Only what this text says in passing was read ({facts}); `{command}` on that machine says the rest.")
        summary.finding("report-read", Severity.INFO, text.format(facts=", ".join(sorted(read)), command=OWN))
    unknown = ", ".join(name for name in _WANTED if getattr(found.machine, name) is None)
    if unknown:
        text = _("The text does not say: {facts}. Decisions that depend on them are made without.", facts=unknown)
        summary.finding("report-silent", Severity.INFO, text)
    return msgspec.structs.replace(found, findings=(*summary.findings, *found.findings))


def _has_builds(notes: Notes) -> bool:
    """Return whether two packages are named, or PyTorch by its tag, which nobody writes of an absent build."""
    packages = notes.facts.get("packages")
    return isinstance(packages, dict) and ("+" in packages.get("torch", "") or len(packages) > 1)


def _conclude(notes: Notes) -> None:
    """Note what facts imply: a driver's number and a GPU their system, PyTorch's version its ROCm."""
    parts = str(notes.facts.get("nvidia_driver", "")).count(".")
    notes.fact("os", "linux" if parts == 2 else None, "nvidia_driver")  # noqa: PLR2004 - 560.94 is one of Windows' drivers
    apple = any(seen.gpu.vendor is Vendor.APPLE for seen in notes.gpus)
    notes.fact("os", "macos" if apple else None, "gpus")
    notes.fact("wsl", False if notes.facts.get("os") in {"windows", "macos"} else None, "os")
    packages = notes.facts.get("packages")
    torch = packages.get("torch", "") if isinstance(packages, dict) else ""
    local = re.search(r"\+rocm(\d{1,2}\.\d{1,2}(?:\.\d)?)", torch)
    notes.fact("rocm_version", local[1] if local else None, "torch")


_MARKS = {0xA0: " ", 0xFF1A: ":", 0xFF08: "(", 0xFF09: ")", 0xFF0C: ","}  # of web pages and Chinese keyboards
_COLOURS = re.compile(r"\x1b\[[\d;]{0,20}[A-Za-z]")  # of a terminal
_DEEPEST_QUOTE = 3  # `> > > ` of a mail answered three times (chosen)


def _as_printed(text: str) -> str:
    """Undo what a page, a mail or an old system made of line ends, marks and quoted lines."""
    text = text.replace("\r", "\n") if "\n" not in text else text.replace("\r", "")
    text = _at_the_left(without_entities(text))
    text = text if text.isascii() else text.translate(_MARKS)
    text = _COLOURS.sub("", text).replace("%2B", "+")
    text = "\n" + (re.sub("<br ?/?>", "\n", text) if "<br" in text else text)
    for _quoted in range(_DEEPEST_QUOTE if "\n>" in text else 0):
        text = re.sub(r"\n>(?!>> ) ?", "\n", text)  # not Python's prompt
    return _at_the_left(text[1:])


def _at_the_left(text: str) -> str:
    return dedent(text) if text[:1] in {" ", "\t"} else text


def _collect_env(text: str, notes: Notes) -> bool:
    dump = collect_env(text)
    if dump is None:
        return False
    for name, value in dump.facts.items():
        notes.fact(name, value, "collect_env")
    for gpu in dump.gpus:
        notes.gpu(gpu, "collect_env")
    rocm = re.search(r"^ROCM used to build PyTorch *: (\d{1,2}\.\d{1,2})", text, re.MULTILINE)
    notes.fact("rocm_version", rocm[1] if rocm else None, "collect_env")
    if not dump.gpus and dump.lists_gpus:
        notes.looked("gpus", "collect_env", "this PyTorch saw no GPU; the machine may have one")
    return True


def _rocminfo(text: str, notes: Notes) -> bool:
    agents = rocminfo(text)
    if agents is None and "ROCk module is NOT loaded" in text:
        notes.looked("gpus", "rocminfo", "ROCk module is NOT loaded")
        agents = ()
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


# What system_profiler calls things in Chinese.
_CHINESE = {
    "图形卡/显示器": "Graphics/Displays",
    "图形/显示器": "Graphics/Displays",
    "芯片组型号": "Chipset Model",
    "硬件概览": "Hardware Overview",
    "系统软件概览": "System Software Overview",
    "系统版本": "System Version",
    "芯片": "Chip",
    "内存": "Memory",
    "供应商": "Vendor",
    "设备ID": "Device ID",
}


def _system_profiler(text: str, notes: Notes) -> bool:
    if re.search("图形卡?/显示器|硬件概览", text):
        text = re.sub(r"(VRAM[^:\n]{0,20}):(?=\d)", r"\1: ", text)
        text = re.sub("(" + "|".join(_CHINESE) + ") ?: ?", lambda found: f"{_CHINESE[found[1]]}: ", text)
    gpus = profiler_json(text) if '"SPDisplaysDataType"' in text else profiler_text(text)
    facts = overview(text) if gpus is not None or "Hardware Overview:" in text else {}
    if gpus is None and not facts:
        return False
    for name, value in {"os": "macos", **facts}.items():
        notes.fact(name, value, "system_profiler")
    for gpu in gpus or ():
        notes.gpu(gpu, "system_profiler")
    return True


def _rocm_smi(text: str, notes: Notes) -> bool:
    cards = rocm_smi(text)
    if cards is None:
        return False
    notes.fact("os", "linux", "rocm-smi")
    if "rocminfo" not in {seen.source for seen in notes.gpus}:  # of the same GPUs it says more
        notes.devices(cards, "rocm-smi")
    return True


def _lspci(text: str, notes: Notes) -> bool:
    # `lspci` and `lspci -nn` may stand one after the other: of two lines for one address, that with ids counts.
    listed = {device.bus: device for device in sorted(lspci(text[:_BRIEF]) or (), key=lambda one: bool(one.gpu.pci_id))}
    notes.fact("os", "linux" if listed else None, "lspci")
    for device in listed.values():
        note_adapter(device.gpu, "lspci", notes, bus=device.bus)
    return bool(listed)


READERS: dict[str, Callable[[str, Notes], bool]] = {
    "python -m torch.utils.collect_env": _collect_env,
    "nvidia-smi": note_smi_table,
    "nvidia-smi -q": note_smi_query,
    "rocminfo": _rocminfo,
    "rocm-smi": _rocm_smi,
    "dxdiag": _dxdiag,
    "system_profiler": _system_profiler,
    "lspci -nn": _lspci,
}


_SAID = ("os", "wsl", "python", "nvidia_driver", "packages")


def note_said(text: str, notes: Notes) -> set[str]:
    """Note what a text says by a prompt, a path or in words; return the names of these facts.

    GPUs count only where no report names any.
    """
    said = mentioned(text.lower())
    found = {name: getattr(said, name) for name in _SAID if getattr(said, name) not in (None, {})}
    if rocm := rocm_said(text.lower()):
        found["rocm_version"] = rocm
    for name, value in found.items():
        notes.fact(name, value, "text")
    if any(seen.gpu.name or seen.gpu.pci_id for seen in notes.gpus):
        return set(found)
    for gpu in said.gpus:
        at = text.lower().find(gpu.name or "")
        notes.gpu(replace(gpu, name=text[at : at + len(gpu.name or "")]), "text")
    return {*found, "gpus"} if said.gpus else set(found)

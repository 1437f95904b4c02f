"""Reads what users paste: reports of tools, one or several or inside other text, and what prose mentions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from textwrap import dedent

import msgspec
from msgspec.structs import replace

from assistant.detect.common import Notes, note_adapter
from assistant.detect.run import unite_notes
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.finding import Severity
from assistant.model.machine import Detection, Machine, Vendor
from assistant.model.record import from_json
from assistant.model.visible import remove_colours
from assistant.parsers import Reading, decode_entities
from assistant.parsers.amd import read_rocm_smi, read_rocminfo
from assistant.parsers.apple import read_system_profiler
from assistant.parsers.collect_env import read_collect_env
from assistant.parsers.linux import read_lspci
from assistant.parsers.mentioned import read_mentioned, read_mentioned_rocm
from assistant.parsers.nvidia import read_nvidia_smi, read_smi_list, read_smi_query
from assistant.parsers.windows import read_dxdiag

OWN = "assistant detect --json"
_WANTED = ("os", "os_version", "arch", "python", "memory_gb", "disk_free_gb")
_BRIEF = 2 * 10**5  # characters (chosen): what is said in passing further down is none of the machine's facts


def read_report(text: str) -> Detection:
    """Return one machine from all reports in a text; findings say what was read and what stays unknown.

    If the text has the output of `assistant detect --json`, nothing else is read; else what prose mentions fills what
    no report has. Raises `BadInput` without any report if prose says too little, such as a driver alone.
    """
    if own := _read_own_json(text):
        return _add_summary(Detection(machine=own), [OWN])
    notes = Notes()
    plain = _undo_pasting(text)
    read = _note_reports(plain, notes)
    said = note_mentioned(plain[:_BRIEF], notes)
    _infer_facts(notes)
    packages = notes.facts.get("packages")
    # Two packages, or PyTorch by its tag: nobody writes that of a build that is not there.
    builds = isinstance(packages, dict) and ("+" in packages.get("torch", "") or len(packages) > 1)
    if not (read or builds or said & {"gpus", "wsl"} or said >= {"os", "python"}):
        raise BadInput(
            _("No known report was found in the text."),
            hint=_("Paste the output of: {tools}.", tools=(*READERS, OWN)),
        )
    return _add_summary(unite_notes([notes]), read or said)


def _read_own_json(text: str) -> Machine | None:
    """Return the machine in a text with the output of `assistant detect --json`; None for other texts, or no facts."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or not re.match(r'\{\s*"(?:schema|os|machine|gpus)"', text[start : start + 200]):
        return None
    try:
        found = from_json(text[start : end + 1], Machine, OWN)
    except BadInput:
        return None
    return found if found != Machine() else None


def _add_summary(found: Detection, read: Iterable[str]) -> Detection:
    """Return a detection with findings put first on which facts stay unknown and what was read: tools, or facts."""
    summary, tools = Notes(), tuple(name for name in read if name in READERS or name == OWN)
    if tools:
        summary.inform("report-read", _("Read: {tools}.", tools=tools), severity=Severity.OK)
    else:
        text = _("Only what this text says in passing was read ({facts}); `{command}` on that machine says the rest.")
        summary.inform("report-read", text.format(facts=", ".join(sorted(read)), command=OWN))
    unknown = ", ".join(name for name in _WANTED if getattr(found.machine, name) is None)
    if unknown:
        text = _("The text does not say: {facts}. Decisions that depend on them are made without.", facts=unknown)
        summary.inform("report-silent", text)
    return msgspec.structs.replace(found, findings=(*summary.findings, *found.findings))


def _infer_facts(notes: Notes) -> None:
    """Record, unless known, what other facts imply: the system, that this is not WSL, and the version of ROCm.

    The system is Linux by an NVIDIA driver with three numbers, macOS by an Apple GPU. Windows and macOS are not WSL.
    torch's tag names the ROCm.
    """
    parts = str(notes.facts.get("nvidia_driver", "")).count(".")
    notes.record_fact("os", "linux" if parts == 2 else None, "nvidia_driver")  # noqa: PLR2004 - 560.94 is one of Windows' drivers
    apple = any(seen.gpu.vendor is Vendor.APPLE for seen in notes.gpus)
    notes.record_fact("os", "macos" if apple else None, "gpus")
    notes.record_fact("wsl", False if notes.facts.get("os") in {"windows", "macos"} else None, "os")
    packages = notes.facts.get("packages")
    torch = packages.get("torch", "") if isinstance(packages, dict) else ""
    local = re.search(r"\+rocm(\d{1,2}\.\d{1,2}(?:\.\d)?)", torch)
    notes.record_fact("rocm_version", local[1] if local else None, "torch")


_MARKS = {0xA0: " ", 0xFF1A: ":", 0xFF08: "(", 0xFF09: ")", 0xFF0C: ","}  # of web pages and Chinese keyboards
_DEEPEST_QUOTE = 3  # `> > > ` of a mail answered three times (chosen)


def _undo_pasting(text: str) -> str:
    """Return a pasted text as it was printed: without HTML's entities and `<br>`, colours, quote marks, indentation.

    Lines end with line feeds, and full-width punctuation is ASCII in it.
    """
    text = text.replace("\r", "\n") if "\n" not in text else text.replace("\r", "")
    text = _dedent(decode_entities(text))
    text = text if text.isascii() else text.translate(_MARKS)
    text = remove_colours(text).replace("%2B", "+")
    text = "\n" + (re.sub("<br ?/?>", "\n", text) if "<br" in text else text)
    for _quoted in range(_DEEPEST_QUOTE if "\n>" in text else 0):
        text = re.sub(r"\n>(?!>> ) ?", "\n", text)  # not Python's prompt
    return _dedent(text[1:])


def _dedent(text: str) -> str:
    return dedent(text) if text[:1] in {" ", "\t"} else text


READERS: dict[str, Callable[[str], Reading | None]] = {
    "python -m torch.utils.collect_env": read_collect_env,
    "nvidia-smi": read_nvidia_smi,
    "nvidia-smi -q": read_smi_query,
    "nvidia-smi -L": read_smi_list,
    "rocminfo": read_rocminfo,
    "rocm-smi": read_rocm_smi,
    "dxdiag": read_dxdiag,
    "system_profiler": read_system_profiler,
    "lspci -nn": read_lspci,
}
# Of one GPU these say less than the reports behind them, and may be a part of those.
_REPEATED = {
    "nvidia-smi -L": ("python -m torch.utils.collect_env", "nvidia-smi", "nvidia-smi -q"),
    "rocm-smi": ("rocminfo",),
}


def _note_reports(text: str, notes: Notes) -> list[str]:
    """Record the facts and GPUs of the reports in a text; return the names of the tools whose reports were read.

    A report that says less of the same GPUs than one read before is skipped. nvidia-smi's error is not recorded if a
    driver is known, unless the tool was missing or saw no device.
    """
    read = []
    for name, reader in READERS.items():
        reading = reader(text)
        if reading is None or any(seen.source in _REPEATED.get(name, ()) for seen in notes.gpus):
            continue
        read.append(name)
        works = name == "nvidia-smi" and "nvidia_driver" in notes.facts and not reading.absence
        for fact, value in reading.facts.items():
            if not (works and fact == "nvidia_driver_state"):  # what some line of a log complains of
                notes.record_fact(fact, value, name)
        for device in reading.devices:
            note_adapter(device.gpu, name, notes, bus=device.bus)
        if reading.absence:
            notes.record_evidence("gpus", name, reading.absence)
    return read


_SAID = ("os", "wsl", "python", "nvidia_driver", "packages")


def note_mentioned(text: str, notes: Notes) -> set[str]:
    """Record what a text mentions in a prompt, a path or prose; return the names of these facts, new or not.

    GPUs are recorded, and named, only if no report gave any with a name or a PCI id.
    """
    said = read_mentioned(text.lower())
    found = {name: getattr(said, name) for name in _SAID if getattr(said, name) not in (None, {})}
    if rocm := read_mentioned_rocm(text.lower()):
        found["rocm_version"] = rocm
    for name, value in found.items():
        notes.record_fact(name, value, "text")
    if any(seen.gpu.name or seen.gpu.pci_id for seen in notes.gpus):
        return set(found)
    for gpu in said.gpus:
        at = text.lower().find(gpu.name or "")
        notes.record_gpu(replace(gpu, name=text[at : at + len(gpu.name or "")]), "text")
    return {*found, "gpus"} if said.gpus else set(found)

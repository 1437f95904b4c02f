"""The report to paste into an issue: causes, log and versions, in the form that the project concerned asks for.

The forms are data, as read from the projects' own templates. They ask for English, and so the words are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from assistant.catalog.tables import Table, read_tables
from assistant.diagnose import Log
from assistant.export import stated_env_text
from assistant.host.identity import known_here
from assistant.i18n import in_language
from assistant.model.finding import Diagnosis, Issue
from assistant.model.machine import Machine
from assistant.model.record import Record, replace
from assistant.privacy import redact
from assistant.session.diagnosis import without_secrets

REPORTED = 80  # last lines of a log that go into a report
TO_WRITE = "<!-- Please write this part yourself. -->"
_ARCHITECTURES = {"x86_64": "X64", "amd64": "X64", "arm64": "ARM64", "aarch64": "ARM64", "x86": "X86", "i686": "X86"}
_PLATFORMS = {"windows": "Windows", "linux": "Linux", "macos": "Mac"}
_OTHER = "Other / Unknown"
# As ONNX Runtime's form names them, by what its flavours and its messages call them.
_PROVIDERS = {
    "cuda": "CUDA",
    "dml": "DirectML",
    "directml": "DirectML",
    "coreml": "CoreML",
    "openvino": "OpenVINO",
    "tensorrt": "TensorRT",
    "migraphx": "MIGraphX",
    "dnnl": "oneDNN",
}
_PROVIDER = re.compile(
    r"(\w{2,20})executionprovider|onnxruntime_providers_(\w{2,20})\.|onnxruntime-(\w{2,20})", re.ASCII
)


class Field(Record, frozen=True):
    """One field of a form: its label, and what fills it; "" where only a person can."""

    label: str
    holds: str = ""


class Form(Record, frozen=True):
    """A project's form for bug reports, where it is filed, and words of its logs by which one knows the project."""

    key: str
    project: str
    marks: tuple[str, ...]
    address: str
    source: str
    fields: tuple[Field, ...]


class IssueTables(Record, frozen=True):
    """The table of catalog/data/issues.json."""

    issues: Table[Form]


def issues(log: Log, machine: Machine, found: Iterable[Diagnosis]) -> tuple[Issue, ...]:
    """Return a log's report in the form of each project, the one that it concerns first, without private things."""
    rows = read_tables("issues", IssueTables).issues.rows
    concerned = next((row for row in rows if any(mark in log.text for mark in row.marks)), rows[-1])
    filled = _fillings(log, machine, tuple(found))
    return tuple(
        Issue(row.project, row.address, _filled(row, filled))
        for row in sorted(rows, key=lambda row: row is not concerned)
    )


def _filled(form: Form, filled: dict[str, Callable[[], str]]) -> str:
    """Write a report as the project's form itself shows one: a heading for each field."""
    parts = (f"### {one.label}\n\n{filled[one.holds]() if one.holds else TO_WRITE}\n" for one in form.fields)
    return "\n".join(parts)


def _fillings(log: Log, machine: Machine, found: tuple[Diagnosis, ...]) -> dict[str, Callable[[], str]]:
    """Return what fills the fields, by the names that the table has for it."""
    known = known_here()
    here: Machine = redact(replace(machine, evidence=()), known=known)
    last = without_secrets(log, len(log.lines) - REPORTED, len(log.lines))
    text = "\n".join(line for _number, line in last).strip("\n").replace("```", "'''")
    packages = {name: version for name, version in here.packages.items() if name.startswith("onnxruntime")}
    log_block = _fenced(redact(text, known=known))
    causes = _causes(redact(found, known=known))
    return {
        "causes": lambda: causes,
        "log": lambda: log_block,
        "description": lambda: f"{TO_WRITE}\n\n{causes}\n\n{log_block}",
        "versions": lambda: _fenced(stated_env_text(here)),
        "platform": lambda: _PLATFORMS.get(here.os or "", _OTHER),
        "system": lambda: here.os_version or here.os or "unknown",
        "installation": lambda: "Released Package" if packages else _OTHER,
        "onnxruntime": lambda: ", ".join(f"{name} {version}" for name, version in packages.items()) or "unknown",
        "api": lambda: "Python",
        "architecture": lambda: _ARCHITECTURES.get((here.arch or "").lower(), _OTHER),
        "provider": lambda: _provider(log, packages),
        "library": lambda: _library(here),
    }


def _causes(found: tuple[Diagnosis, ...]) -> str:
    """Say in English what the assistant takes for the cause, with its key."""
    if not found:
        return "torch-setup-assistant knows no cause for this log."
    with in_language("en"):
        told = (f"- {one.title} (`{one.key}`, {one.confidence:.0%})" for one in found)
        return "\n".join(("What torch-setup-assistant takes for the cause:", "", *told))


def _provider(log: Log, packages: Iterable[str]) -> str:
    said = _PROVIDER.findall("\n".join((log.text, *packages)))
    named = dict.fromkeys(_PROVIDERS.get(word.lower()) for words in said for word in words if word)
    return ", ".join(filter(None, named)) or ("Default CPU" if "cpuexecutionprovider" in log.text else _OTHER)


def _library(machine: Machine) -> str:
    """Name what a provider rests on, as far as it is known: "CUDA 13.0, driver 580.95.05"."""
    driver = f"driver {machine.nvidia_driver}" if machine.nvidia_driver else ""
    cuda = f"CUDA {machine.cuda_driver_api}" if machine.cuda_driver_api else ""
    rocm = f"ROCm {machine.rocm_version}" if machine.rocm_version else ""
    return ", ".join(filter(None, (cuda, driver, rocm))) or "unknown"


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```"

"""What every exported file is made from, with nothing secret left in it."""

from __future__ import annotations

import re
from typing import TypeVar

from assistant import __version__
from assistant.host.redact import redact_text
from assistant.model.finding import Finding
from assistant.model.machine import Machine
from assistant.model.plan import Plan
from assistant.model.record import Record, from_plain, replace, to_plain
from assistant.model.report import Environment, Report

__all__ = ["MARKER", "Bundle", "clean"]

# The first line of every file that we write holds this; a file without it is somebody else's.
MARKER = "Written by torch-setup-assistant"


class Bundle(Record, frozen=True):
    """One setup: the machine and its findings, the plan, the environment made from it and its verification.

    `figures` names the pictures that are written beside the files.
    """

    machine: Machine
    plan: Plan
    environment: Environment
    report: Report
    findings: tuple[Finding, ...] = ()
    figures: tuple[str, ...] = ()
    version: str = __version__


def clean(bundle: Bundle) -> Bundle:
    """Take credentials out of every address, and names and secrets out of what tools have said."""
    bundle = _without_credentials(bundle)
    checks = tuple(replace(check, detail=redact_text(check.detail)) for check in bundle.report.checks)
    said = tuple(replace(item, text=redact_text(item.text)) for item in bundle.machine.evidence)
    output = bundle.machine.nvidia_smi_output
    machine = replace(bundle.machine, evidence=said, nvidia_smi_output=output and redact_text(output))
    return replace(bundle, report=replace(bundle.report, checks=checks), machine=machine)


_CREDENTIALS = re.compile(r"(\b[\w+.-]{2,20}://)[^\s/@\"'<>]+@")
_QUERY_SECRET = re.compile(
    r"([?&](?:[\w-]*(?:token|key|secret|sig|signature|password|auth))=)[^\s&#\"']+", re.IGNORECASE
)

R = TypeVar("R", bound=Record)


def _without_credentials(record: R) -> R:
    return from_plain(_mapped(to_plain(record)), type(record), "export")


def _mapped(value: object) -> object:
    if isinstance(value, str):
        return _QUERY_SECRET.sub(r"\1", _CREDENTIALS.sub(r"\1", value))
    if isinstance(value, dict):
        return {key: _mapped(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(part) for part in value]
    return value

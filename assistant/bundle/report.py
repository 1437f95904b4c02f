"""The report that a machine leaves when it was set up from a bundle: what it is, what was installed, what is wrong."""

from __future__ import annotations

import itertools
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from assistant import __version__
from assistant.detect import detect
from assistant.export import same_hardware
from assistant.host.base import Host
from assistant.host.files import read_plain, write_named
from assistant.host.live import known_here
from assistant.install import find_target
from assistant.model.errors import BadInput
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Machine
from assistant.model.plan import Plan
from assistant.model.record import Record, from_json, replace, to_json
from assistant.model.report import Environment, Report
from assistant.privacy import redact
from assistant.session.doctor import examined
from assistant.session.state import State

LONGEST_NAME = 253  # characters of a host's name (RFC 1035 with its dots)


class MachineReport(Record, frozen=True, omit_defaults=False):
    """One machine at one time (`when`, UTC); nothing but `name` says which machine it is.

    `findings` are the doctor's, but for what is well.
    """

    schema: Literal[1]
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]
    when: Annotated[datetime, msgspec.Meta(tz=True)]
    assistant: str
    machine: Machine
    plan: Plan | None = None
    environment: Environment | None = None
    report: Report | None = None
    findings: tuple[Finding, ...] = ()


def report_on(state: State, host: Host) -> MachineReport:
    """Describe the machine at hand and what a setup has made of it; all that is private but its name is removed."""
    found, environment, site = detect(host), state.environment, None
    if environment:
        with suppress(BadInput):  # an environment that does not answer is what the report's checks are about
            _folder, site = find_target(environment.path, host)
    findings = (finding for finding in examined(found, host, site) if finding.severity is not Severity.OK)
    report = MachineReport(
        schema=1,
        name=str(host.facts("identity").get("name", ""))[:LONGEST_NAME] or "machine",
        when=datetime.now(UTC).replace(microsecond=0),
        assistant=__version__,
        machine=replace(found.machine, evidence=()),
        plan=state.plan,
        environment=environment,
        report=state.report,
        findings=tuple(findings),
    )
    return cleaned(report)


def cleaned(report: MachineReport) -> MachineReport:
    """Remove what must not leave this machine; its name tells whoever reads many reports which one this is."""
    return replace(redact(report, known=known_here()), name=report.name)


def write_report(report: MachineReport, folder: Path) -> Path:
    """Write a report into a folder and return the file, which is called as the machine.

    A file of that name which is not of the same machine stays, and the new one gets a number. Raises `OSError`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"[^\w.-]+", "-", report.name).strip(".-") or "machine"
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    to = next(path for name in names if _is_free(path := folder / f"{name}.json", report))
    write_named(to, to_json(report, indent=1) + "\n")
    return to


def _is_free(path: Path, report: MachineReport) -> bool:
    """Return whether nothing is lost by writing there: no file, or an earlier report of the same machine."""
    try:
        there = from_json(read_plain(path), MachineReport, path.name)
    except FileNotFoundError:
        return True
    except (OSError, BadInput):
        return False
    return there.name == report.name and same_hardware(there.machine, report.machine)

"""What one machine says of itself in a report on many: its facts, its plan, its environment, and what is wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from assistant import __version__
from assistant.detect import detect
from assistant.export import Config, Drift
from assistant.host.base import Host
from assistant.host.identity import known_here
from assistant.i18n import _
from assistant.install import Site, Tools
from assistant.model.errors import BadInput
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Machine
from assistant.model.plan import Plan, Rejection
from assistant.model.record import Record, replace
from assistant.model.report import Report
from assistant.privacy import redact
from assistant.session.apply import drifts, environment_of
from assistant.session.doctor import examined, planned
from assistant.session.environments import looked_into, verified_site

LONGEST_NAME = 253  # characters of a host's name (RFC 1035 with its dots)


class Installed(Record, frozen=True, omit_defaults=False):
    """An environment: its folder, and the versions of its Python and of its torch ("" for none)."""

    path: str
    python: str
    torch: str


class FleetRecord(Record, frozen=True, omit_defaults=False):
    """One machine at one time (`when`, UTC).

    `name` is all in it that tells which machine it is. `report` is None where nothing was verified, `drift` where no
    configuration was given; `findings` are the doctor's, but for what is well.
    """

    schema: Literal[1]
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]
    when: Annotated[datetime, msgspec.Meta(tz=True)]
    assistant: str
    machine: Machine
    plan: Plan | None = None
    rejected: tuple[Rejection, ...] = ()
    environment: Installed | None = None
    report: Report | None = None
    drift: tuple[Finding, ...] | None = None
    findings: tuple[Finding, ...] = ()


def own_name(host: Host) -> str:
    """Return what a machine calls itself; "" where it does not say."""
    return str(host.facts("identity").get("name", ""))[:LONGEST_NAME]


def take_record(
    host: Host, name: str, tools: Tools, *, target: str = "", config: Config | None = None, verify: bool = True
) -> FleetRecord:
    """Detect the machine of `host`, plan for it without asking an index, and verify an environment on this machine.

    `target` is that environment, "" for none; with `config` it is compared with that, which also tells the environment
    where `target` does not. Private data are removed, all but `name`. Raises `BadInput` where several environments fit
    the configuration.
    """
    found = detect(host)
    machine = replace(found.machine, evidence=())
    last = config and not target and environment_of(config, "", "")
    place = _look(target or str(last or ""), machine, tools, verify=verify)
    prefix = Path(place.site.prefix) if place.site else None
    changed = drifts(config, machine, prefix, place.report, tools.host) if config else None
    planning, judged = planned(machine), (*place.findings, *examined(found, host, place.site))
    taken = FleetRecord(
        schema=1,
        name=name,
        when=datetime.now(UTC).replace(microsecond=0),
        assistant=__version__,
        machine=machine,
        plan=planning.choice,
        rejected=planning.rejected,
        environment=place.installed,
        report=place.report,
        drift=None if changed is None else tuple(map(_finding, changed)),
        findings=tuple(finding for finding in judged if finding.severity is not Severity.OK),
    )
    return cleaned(taken)


def cleaned(record: FleetRecord) -> FleetRecord:
    """Remove what must not leave this machine; the name is what its user gave it for others to see."""
    return replace(redact(record, known=known_here()), name=record.name)


class _Place(NamedTuple):
    """What was found of an environment."""

    installed: Installed | None = None
    site: Site | None = None
    report: Report | None = None
    findings: tuple[Finding, ...] = ()


def _look(target: str, machine: Machine, tools: Tools, *, verify: bool) -> _Place:
    """Look into an environment and verify it; that it is not there or does not answer is a finding."""
    if not target:
        return _Place()
    try:
        known, site = looked_into(target, tools.host, machine)
    except BadInput as error:
        remedy = Remedy(text=_("Set it up there."), commands=(f"assistant install --target {target}",))
        gone = Finding(key="no-environment", severity=Severity.ERROR, text=error.message, remedies=(remedy,))
        return _Place(findings=(gone,))
    return _Place(
        installed=Installed(path=known.path, python=known.python, torch=known.torch),
        site=site,
        report=verified_site(known, site, tools) if verify else None,
        findings=() if site else known.findings,
    )


def _finding(drift: Drift) -> Finding:
    return Finding(key=f"drift-{drift.kind}", severity=Severity.WARNING, text=drift.message)

"""The record of one machine among many: its facts, its plan, its environment, and what is wrong."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from assistant.host.identity import known_here
from assistant.model.finding import Finding
from assistant.model.machine import Machine
from assistant.model.plan import Plan, Rejection
from assistant.model.record import Record, replace
from assistant.model.report import Report
from assistant.privacy import redact

LONGEST_NAME = 253  # characters of a host's name (RFC 1035 with its dots)


class Installed(Record, frozen=True, omit_defaults=False):
    """An environment: its folder, and the versions of its Python and of its torch ("" for none)."""

    path: str
    python: str
    torch: str


class FleetRecord(Record, frozen=True, omit_defaults=False):
    """One machine at one time (`when`, UTC).

    `name` is all in it that tells which machine it is. `report` is None where nothing was verified, `drift` where no
    configuration was given; `findings` are those of the verification and the doctor's, but for what is well.
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


def cleaned(record: FleetRecord) -> FleetRecord:
    """Remove what must not leave this machine; the name is what its user gave it for others to see."""
    return replace(redact(record, known=known_here()), name=record.name)

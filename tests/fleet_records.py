"""Records of a fleet for tests: a recorded machine, with what a test says of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from assistant.detect import detect
from assistant.fleet import FleetRecord
from assistant.host.recording import ReplayHost
from assistant.machines import load
from assistant.model.record import replace

WHEN = datetime(2026, 11, 27, 12, tzinfo=UTC)


def record(name: str, machine: str = "linux-ubuntu2404-rtx4090", **more: Any) -> FleetRecord:
    """Return the record of a recorded machine that is called `name`; `nvidia_driver` is the machine's."""
    facts = replace(detect(ReplayHost(load(machine))).machine, evidence=())
    if driver := more.pop("nvidia_driver", None):
        facts = replace(facts, nvidia_driver=driver)
    return FleetRecord(schema=1, name=name, when=more.pop("when", WHEN), assistant="1", machine=facts, **more)

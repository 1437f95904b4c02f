"""The recorded machines, each detected, planned for and judged once for all tests of a process."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.host.base import ReplayHost
from assistant.machines import load
from assistant.model.finding import Finding
from assistant.model.machine import Detection, Machine
from assistant.model.plan import Planning
from assistant.plan import make_plans
from assistant.session.environments import examine


class Recorded(NamedTuple):
    """What the assistant finds, plans and says of a recorded machine."""

    name: str
    detection: Detection
    planning: Planning
    findings: tuple[Finding, ...]

    @property
    def machine(self) -> Machine:
        """The machine itself."""
        return self.detection.machine


@cache
def recorded(name: str) -> Recorded:
    """Return a shipped machine as the assistant sees it."""
    detection = detect(ReplayHost(load(name)))
    planning = make_plans(detection.machine, load_catalog())
    return Recorded(name, detection, planning, tuple(examine(ReplayHost(load(name)))))

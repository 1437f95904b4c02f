"""Whether a saved setup can be gone on with: made for this very machine, its environment still there."""

from __future__ import annotations

from pathlib import Path

from assistant.model.event import Step
from assistant.model.machine import Machine
from assistant.session.state import Phase, State

__all__ = ["furthest", "resumable"]

STEPS = tuple(Step)


def resumable(saved: State | None, machine: Machine) -> bool:
    """Tell whether a saved state goes beyond detection, speaks of this machine, and rests on what still exists."""
    if saved is None or saved.machine or saved.plan is None or saved.detection is None:
        return False
    there = saved.environment is None or Path(saved.environment.python).exists()
    return there and _identity(saved.detection.machine) == _identity(machine)


def furthest(state: State) -> Step:
    """Name the step to go on with: the first that is not done."""
    return next((step for step in STEPS if state.status(step).phase is not Phase.DONE), STEPS[-1])


def _identity(machine: Machine) -> tuple[object, ...]:
    return machine.os, machine.os_version, machine.arch, machine.python, machine.nvidia_driver, machine.gpus

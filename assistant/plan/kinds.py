"""Which machines are of one kind: those that get the same plans."""

from __future__ import annotations

from assistant.model.machine import Machine
from assistant.model.record import replace


def kind_of(machine: Machine) -> Machine:
    """Return a machine without the facts that no plan rests on; a test holds that to the planner.

    Of a hundred PCs that were bought together one has to be planned.
    """
    return replace(
        machine,
        memory_gb=None,
        disk_free_gb=None,
        compilers=None,
        nvcc=None,
        cuda_home_state=None,
        packages={},
        evidence=(),
    )

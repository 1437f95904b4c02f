"""A driver that is older than the wheel's CUDA needs."""

import sys

from assistant.labs.plans import plan_fault
from assistant.labs.scene import Outcome, Scene


def breaks(scene: Scene) -> None:
    """Break nothing here: the machine is a recorded one."""


def symptom(scene: Scene) -> Outcome:
    """Print what torch prints there."""
    return scene.program("old_driver.py", python=sys.executable)


def fault(scene: Scene) -> str:
    """Want a plan that the recorded machine's driver can run."""
    return plan_fault(scene, "linux-ubuntu2404-rtx5070ti-driver570")

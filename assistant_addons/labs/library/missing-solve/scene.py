"""A model calls an operator that the pretended device lacks, as MPS did."""

from assistant_addons.labs import stand_ins
from assistant_addons.labs.scene import Outcome, Scene


def breaks(scene: Scene) -> None:
    """Offer the device, and write a model that solves on it."""
    stand_ins.offer_device(scene, "mps")
    scene.write("model.py", stand_ins.MODEL.format(solved="torch.linalg.solve(systems, sides)"))


def symptom(scene: Scene) -> Outcome:
    """Solve on the device."""
    return stand_ins.solve(scene, "mps")


def fault(scene: Scene) -> str:
    """Want the right solution, on the device and as accurate as a solver's."""
    return stand_ins.solve_fault(scene, "mps")

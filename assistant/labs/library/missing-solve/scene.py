"""A model calls an operator that the pretended device lacks, as MPS did."""

from assistant.labs import pretended
from assistant.labs.scene import Outcome, Scene


def breaks(scene: Scene) -> None:
    """Offer the device, and write a model that solves on it."""
    pretended.offer_device(scene, "mps")
    scene.write("model.py", pretended.MODEL.format(solved="torch.linalg.solve(systems, sides)"))


def symptom(scene: Scene) -> Outcome:
    """Solve on the device."""
    return pretended.solve(scene, "mps")


def fault(scene: Scene) -> str:
    """Want the right solution, on the device and as accurate as a solver's."""
    return pretended.solve_fault(scene, "mps")

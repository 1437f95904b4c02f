"""A model calls in a loop what the pretended device takes to the CPU each time, as DirectML does."""

from assistant_addons.labs import stand_ins
from assistant_addons.labs.scene import Outcome, Scene

MOST = "10"  # copies that are allowed; one call makes six


def breaks(scene: Scene) -> None:
    """Offer the device, and write a model that calls the operator once for each system."""
    stand_ins.offer_device(scene, "directml")
    loop = "torch.stack([torch.linalg.solve(system, side) for system, side in zip(systems, sides)])"
    scene.write("model.py", stand_ins.MODEL.format(solved=loop))


def symptom(scene: Scene) -> Outcome:
    """Solve on the device, and count and time the copies."""
    return stand_ins.solve(scene, "directml", MOST)


def fault(scene: Scene) -> str:
    """Want the right solution with few copies."""
    return stand_ins.solve_fault(scene, "directml", MOST)

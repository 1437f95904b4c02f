"""A device that silently sends one operator to the CPU."""

from assistant.labs.scene import Outcome, Scene


def breaks(scene: Scene) -> None:
    """Write a model that calls the operator once for each system."""
    loop = "torch.stack([torch.linalg.solve(system, side) for system, side in zip(systems, sides)])"
    scene.write("model.py", f"import torch\n\n\ndef solve(systems, sides):\n    return {loop}\n")


def symptom(scene: Scene) -> Outcome:
    """Solve on the device."""
    return scene.program("emulated_device.py", "silent", str(scene.folder / "model.py"), python=scene.torch)

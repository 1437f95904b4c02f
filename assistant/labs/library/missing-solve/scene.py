"""A device that lacks an operator."""

from assistant.labs.scene import Outcome, Scene


def breaks(scene: Scene) -> None:
    """Write a model that needs the operator."""
    scene.write(
        "model.py", "import torch\n\n\ndef solve(systems, sides):\n    return torch.linalg.solve(systems, sides)\n"
    )


def symptom(scene: Scene) -> Outcome:
    """Solve on the device."""
    return scene.program("emulated_device.py", "lacking", str(scene.folder / "model.py"), python=scene.torch)

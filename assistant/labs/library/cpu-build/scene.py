"""A CPU build of torch on a machine with a GPU."""

from assistant.labs.plans import plan_fault
from assistant.labs.scene import Outcome, Scene


def breaks(scene: Scene) -> None:
    """Let the environment see a CPU build."""
    scene.venv(beside_torch=True)


def symptom(scene: Scene) -> Outcome:
    """Use the GPU."""
    return scene.call(scene.python(), "-c", "import torch; torch.ones(2, device='cuda')")


def fault(scene: Scene) -> str:
    """Want a plan that uses the GPU of the recorded machine."""
    return plan_fault(scene, "linux-ubuntu2404-rtx2080ti")

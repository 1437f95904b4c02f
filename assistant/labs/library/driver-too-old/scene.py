"""The newest torch on a recorded machine whose driver is older than it needs."""

from collections.abc import Mapping

from assistant.labs import builds
from assistant.labs.scene import Outcome, Scene


def breaks(scene: Scene) -> None:
    """Install the newest torch from what stands for PyPI."""
    builds.install_torch(scene, scene.values["machine"])


def symptom(scene: Scene) -> Outcome:
    """Compute on the GPU."""
    return builds.compute_on_gpu(scene, scene.values["machine"])


def fault(scene: Scene) -> str:
    """Want a torch as its index offers it, which computes on the machine as it was recorded."""
    return builds.build_fault(scene, scene.values["machine"])


def variables(scene: Scene) -> Mapping[str, str]:
    """Keep the user's own indexes out."""
    return builds.variables(scene)


def names(scene: Scene) -> Mapping[str, str]:
    """Let a learner type the address of PyTorch's indexes."""
    return builds.names(scene)

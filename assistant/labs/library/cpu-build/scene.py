"""An extra index lets pip install a CPU build of torch on a recorded machine with a GPU."""

from collections.abc import Mapping

from assistant.labs import builds
from assistant.labs.scene import Outcome, Scene


def breaks(scene: Scene) -> None:
    """Install torch with pip, which is configured to ask the index of CPU builds, too."""
    builds.install_torch(scene, scene.values["machine"], extra="cpu")


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

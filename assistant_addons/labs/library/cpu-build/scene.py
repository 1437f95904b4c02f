"""An extra index lets pip install a CPU build of torch on a recorded machine with a GPU."""

from assistant_addons.labs.scene import Scene
from assistant_addons.labs.stand_ins import build_fault as fault
from assistant_addons.labs.stand_ins import compute_on_gpu as symptom
from assistant_addons.labs.stand_ins import install_torch, names, variables

__all__ = ["breaks", "fault", "names", "symptom", "variables"]


def breaks(scene: Scene) -> None:
    """Install torch with pip, which is configured to ask the index of CPU builds, too."""
    install_torch(scene, extra="cpu")

"""The newest torch on a recorded machine whose driver is older than it needs."""

from assistant_addons.labs.scene import Scene
from assistant_addons.labs.stand_ins import build_fault as fault
from assistant_addons.labs.stand_ins import compute_on_gpu as symptom
from assistant_addons.labs.stand_ins import install_torch, names, variables

__all__ = ["breaks", "fault", "names", "symptom", "variables"]


def breaks(scene: Scene) -> None:
    """Install the newest torch from what stands for PyPI."""
    install_torch(scene)

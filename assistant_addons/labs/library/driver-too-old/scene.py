"""The newest torch on a recorded machine whose driver is older than it needs."""

from assistant_addons.labs.stand_ins import machine_file as files
from assistant_addons.labs.stand_ins import offer_torch
from assistant_addons.labs.stand_ins import original_torch as original
from assistant_addons.labs.stand_ins import own_index as variables
from assistant_addons.labs.workspace import Workspace

__all__ = ["breaks", "files", "original", "variables"]


def breaks(space: Workspace) -> None:
    """Install the newest torch from what stands for PyPI."""
    offer_torch(space)
    space.install("torch")

"""A model calls in a loop what the pretended device takes to the CPU each time, as DirectML does."""

from collections.abc import Mapping

from assistant_addons.labs import stand_ins
from assistant_addons.labs.stand_ins import check_torch as breaks
from assistant_addons.labs.workspace import Workspace

__all__ = ["breaks", "files", "variables"]


def files(_space: Workspace) -> Mapping[str, str | bytes]:
    """Return a model that calls the operator once for each system."""
    return stand_ins.device_files(
        "torch.stack([torch.linalg.solve(system, side) for system, side in zip(systems, sides)])"
    )


def variables(_space: Workspace) -> Mapping[str, str]:
    """Offer the device."""
    return stand_ins.device_variables("directml")

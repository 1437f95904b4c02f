"""A model calls an operator that the pretended device lacks, as MPS did."""

from collections.abc import Mapping

from assistant_addons.labs import stand_ins
from assistant_addons.labs.stand_ins import check_torch as breaks
from assistant_addons.labs.workspace import Workspace

__all__ = ["breaks", "files", "variables"]


def files(_space: Workspace) -> Mapping[str, str | bytes]:
    """Return a model that solves on the device, which refuses."""
    return stand_ins.device_files("torch.linalg.solve(systems, sides)")


def variables(_space: Workspace) -> Mapping[str, str]:
    """Offer the device."""
    return stand_ins.device_variables("mps")

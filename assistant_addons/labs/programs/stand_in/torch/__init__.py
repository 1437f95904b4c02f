"""A stand-in for torch in a lab: it looks for driver and card as torch does, and computes next to nothing.

`build.py` beside it tells what the build holds, as the assistant's catalogue describes it.
"""

from . import cuda, version
from .version import __version__

__all__ = ["Tensor", "__version__", "cuda", "ones", "version"]


class Tensor:
    """A row of numbers on a device."""

    def __init__(self, values, device="cpu"):
        self.values, self.device = list(values), str(device)
        if self.device.startswith("cuda"):
            cuda.launch()

    def __add__(self, other):
        return Tensor(map(float.__add__, self.values, other.values), self.device)

    def __repr__(self):
        return f"tensor({self.values}, device='{self.device}')"

    def sum(self):
        """Return the sum, on the same device."""
        return Tensor([sum(self.values)], self.device)

    def item(self):
        """Return the only number."""
        return self.values[0]

    def to(self, device):
        """Return the same numbers on another device."""
        return Tensor(self.values, device)


def ones(size, device="cpu"):
    """Return that many ones."""
    return Tensor([1.0] * size, device)

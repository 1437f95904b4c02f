"""What every exported network is: a module, inputs drawn anew each time, and which sizes stay open."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

Network = tuple[nn.Module, Callable[[], dict[str, Tensor]]]
Open = dict[str, dict[int, str]]


class Entry(NamedTuple):
    """How to make a network, and its open sizes by input."""

    make: Callable[[], Network]
    open: Open


NETWORKS: dict[str, Entry] = {}


def network(*, open: Open | None = None) -> Callable[[Callable[[], Network]], Callable[[], Network]]:  # noqa: A002 - as it reads
    """Enter a function that makes a network under its name."""

    def entered(make: Callable[[], Network]) -> Callable[[], Network]:
        NETWORKS[make.__name__] = Entry(make, open or {})
        return make

    return entered


def whole(below: int, *shape: int) -> Tensor:
    """Draw whole numbers."""
    return torch.randint(0, below, shape)


class Picked(nn.Module):
    """Calls a model by the names of its inputs and picks some of its outputs."""

    def __init__(self, model: nn.Module, names: tuple[str, ...], outputs: tuple[str, ...], **fixed: object) -> None:
        super().__init__()
        self.model, self.names, self.outputs, self.fixed = model, names, outputs, fixed

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        """Take the inputs in order."""
        made = self.model(**dict(zip(self.names, given, strict=True)), **self.fixed)
        return tuple(made[name] for name in self.outputs)

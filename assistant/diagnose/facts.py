"""Facts of a machine put together: what is known, and what a log adds."""

from __future__ import annotations

from typing import Any

from assistant.model.machine import Machine
from assistant.model.record import replace


def merged(first: Machine, second: Machine) -> Machine:
    """Give the first machine's facts, and the second's where the first is silent."""
    changes: dict[str, Any] = {
        name: getattr(second, name)
        for name in (
            "os",
            "os_version",
            "arch",
            "wsl",
            "container",
            "python",
            "python_bits",
            "rosetta",
            "gpus",
            "nvidia_driver",
        )
        if getattr(first, name) in {None, ()}
    }
    if first.os and second.wsl and first.os != "linux":
        changes.pop("wsl", None)
    return replace(first, **changes, packages={**second.packages, **first.packages}, env={**second.env, **first.env})

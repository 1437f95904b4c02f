"""The variables of the programs that we start: no telemetry (the catalogue's table), and plain UTF-8 where we read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_FORCED_COLOURS = {"FORCE_COLOR", "CLICOLOR_FORCE"}  # ipykernel sets the first one for all that a notebook starts


@cache
def _switches() -> Mapping[str, str]:
    """Return the values of the variables that turn telemetry off, by name, from the catalogue's file.

    It is read directly: start.py needs it before any package is installed.
    """
    path = Path(__file__).parents[1] / "catalog" / "data" / "telemetry.json"
    table = json.loads(path.read_bytes())["switches"]
    return {row["name"]: row["value"] for row in table["rows"]}


def quiet() -> dict[str, str]:
    """Return the variables that turn telemetry off, sorted by name, for files and kernels that we make."""
    return dict(sorted(_switches().items()))


def for_program(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a program that the user sees: with telemetry off, unless the user set it otherwise."""
    return {**_switches(), **os.environ, **(more or {})}


def for_child(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a program whose output we read: as `for_program`, without colours, Python in UTF-8.

    Not PYTHONUTF8: pip reads pip.ini in the locale's encoding, in which `pip config set` writes it, and on a Chinese
    Windows would refuse its own file ("contains invalid utf-8 characters", pip 24.0;
    https://github.com/pypa/pip/blob/24.0/src/pip/_internal/configuration.py).
    """
    readable = {"NO_COLOR": "1", "PYTHONIOENCODING": "utf-8:backslashreplace"}
    environment = for_program({**readable, **(more or {})})
    return {name: value for name, value in environment.items() if name not in _FORCED_COLOURS}

"""The variables that turn off telemetry in the programs that we start; the table is the catalogue's."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path


@cache
def _switches() -> Mapping[str, str]:
    """Read the catalogue's file directly: start.py needs it before any package is installed."""
    path = Path(__file__).parents[1] / "catalog" / "data" / "telemetry.json"
    table = json.loads(path.read_bytes())["switches"]
    return {row["name"]: row["value"] for row in table["rows"]}


def quiet() -> dict[str, str]:
    """Return the variables, sorted by name, for files and kernels that we make."""
    return dict(sorted(_switches().items()))


def for_child(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a program that we start; what the user has set of the variables stays as it is."""
    return {**_switches(), **os.environ, **(more or {})}

"""Which variables keep the programs that are started from reporting on their user; the catalogue holds the table."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path


@cache
def _switches() -> Mapping[str, str]:
    """Read the table as it lies there: start.py needs it before any package is installed."""
    path = Path(__file__).parents[1] / "catalog" / "data" / "telemetry.json"
    table = json.loads(path.read_bytes())["switches"]
    return {row["name"]: row["value"] for row in table["rows"]}


def quiet() -> dict[str, str]:
    """Give the variables, for files and kernels that are made; sorted by name."""
    return dict(sorted(_switches().items()))


def for_child(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Give the environment of a program to be started; what the user has set of the switches stays as it is."""
    return {**_switches(), **os.environ, **(more or {})}

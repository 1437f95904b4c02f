"""The file that marks an environment as the assistant's: the plan that it was made for, and what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from assistant.host.files import read_plain, write_whole
from assistant.install.inspect_env import interpreter
from assistant.model.errors import BadInput
from assistant.model.plan import Plan
from assistant.model.record import Record, from_json, to_json
from assistant.model.report import Environment
from assistant.privacy import Policy, redact

MARKER = "assistant-environment.json"  # stands in every environment that was made here and finished


class Marker(Record, frozen=True, kw_only=True):
    """The content of an environment's marker file: the plan that it was made for, and what it holds."""

    schema: Literal[1] = 1
    plan: Plan
    environment: Environment


def write_marker(folder: Path, plan: Plan, environment: Environment) -> None:
    """Write the marker of an environment into a folder, without secrets; raises `OSError`."""
    write_whole(folder / MARKER, to_json(redact(Marker(plan=plan, environment=environment), Policy.USABLE), indent=1))


def read_marker(target: Path) -> Marker | None:
    """Return the marker of an environment of ours; None for any other folder, and if its Python is gone."""
    return marker_in(target, target)


def marker_in(folder: Path, target: Path) -> Marker | None:
    """Return the marker in a folder if it is of the environment at `target`; None otherwise, as in `read_marker`."""
    try:
        marker = from_json(read_plain(folder / MARKER), Marker, MARKER)
    except (OSError, BadInput):
        return None
    return marker if interpreter(folder).exists() and marker.environment.path == str(target) else None


def is_ours(target: Path) -> bool:
    """Return whether a folder holds a marker, as environments do that the assistant made and finished."""
    return (target / MARKER).is_file()

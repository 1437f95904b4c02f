"""Add-ons: what this distribution and others add to the core by entry points, which names none of them.

    [project.entry-points."assistant.commands"]
    onnx = "assistant_addons.onnx.command:onnx"

A command is a click command. A page is a `Part` of the wizard that stands on one of its pages. A task is a function of
`session/`, which says what it calls by which name. A reader reads what a project needs.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from assistant.host.extras import NAME, lacking
from assistant.i18n import _
from assistant.model.errors import WorkFailed

COMMANDS = "assistant.commands"
PAGES = "assistant.pages"
TASKS = "assistant.tasks"
READERS = "assistant.readers"


@cache
def names(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by their names, in alphabetical order; nothing of them is imported."""
    return {entry.name: entry for entry in sorted(entry_points(group=group))}


def load(group: str, name: str) -> Any:  # noqa: ANN401 - what it is, the group says
    """Import what an add-on brings by a name of a group.

    Raises `KeyError` where no add-on has the name, and `WorkFailed` with the command to type where one lacks something.
    """
    entry = names(group)[name]
    try:
        return entry.load()
    except ImportError as error:
        raise _lacking(entry, error) from error


def ours(group: str, name: str, *, extra: str) -> Any:  # noqa: ANN401 - what it is, the group says
    """Import what one of our own add-ons brings; raise `WorkFailed` with the extra where it is not there."""
    if name not in names(group):
        raise lacking(f"assistant_addons.{extra}", extra)
    return load(group, name)


def _lacking(entry: EntryPoint, error: ImportError) -> WorkFailed:
    """Return the failure for an add-on that cannot be imported: the extra of ours that it needs, or whose it is."""
    distribution = entry.dist.name if entry.dist else ""
    if distribution == NAME:
        extra = entry.module.split(".")[1]  # each of our add-ons has an extra of its own name
        return lacking(error.name or entry.module, extra)
    return WorkFailed(
        _("{name} cannot be loaded: {reason}.", name=entry.value, reason=error),
        hint=_("It comes with {distribution}: install that anew, or remove it.", distribution=distribution),
    )

"""Add-ons: what this distribution and others add to the core by entry points, which names none of them.

    [project.entry-points."assistant.commands"]
    onnx = "assistant_addons.onnx.command:onnx"

A command is a click command. A page is an `AddonPart`, which stands on a page of the wizard. A task is a function that
a session runs on the add-on's own record; `decide` searches for a whole set of packages (`session/planning.py`). A
reader is a module that reads what a project needs, or the recipes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from assistant.i18n import _
from assistant.model.errors import WorkFailed

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = "assistant.commands"
PAGES = "assistant.pages"
TASKS = "assistant.tasks"
READERS = "assistant.readers"


@cache
def names(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, in alphabetical order, importing none; they are read only once."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - 25 ms that a command of the core need not pay

    return {entry.name: entry for entry in sorted(entry_points(group=group))}


def load(group: str, name: str, kind: type = object) -> Any:  # noqa: ANN401 - what it is, the group says
    """Import and return what an add-on brings under a name of a group, such as a command.

    Raises `KeyError` if no add-on has the name, and `WorkFailed`, with what to do, if the import fails or brings
    something that is not of `kind`.
    """
    entry = names(group)[name]
    try:
        loaded = entry.load()
    except Exception as error:
        raise _failure(entry, error) from error
    if not isinstance(loaded, kind):
        raise _failure(entry, TypeError(f"{type(loaded).__name__} is no {kind.__name__}"))
    return loaded


def load_from_extra(group: str, name: str, *, extra: str) -> Any:  # noqa: ANN401 - what it is, the group says
    """Import and return what one of our own add-ons brings under a name of a group.

    Raises `WorkFailed`, with how to install `extra`, if no add-on has the name, and as `load` does.
    """
    if name not in names(group):
        from assistant.host.extras import missing_extra_error  # noqa: PLC0415 - reads what is installed

        raise missing_extra_error(f"assistant_addons.{extra}", extra)
    return load(group, name)


def _failure(entry: EntryPoint, error: Exception) -> WorkFailed:
    """Return the error for an add-on that cannot be loaded, with what to do.

    If one of our own lacks a module, that is the command that installs its extra; else, after the first line of the
    reason, the advice to install its distribution anew or to remove it.
    """
    from assistant.host.extras import NAME, find_extra, missing_extra_error  # noqa: PLC0415 - reads what is installed

    distribution = entry.dist.name if entry.dist else ""
    if distribution == NAME and isinstance(error, ImportError):
        module = error.name or entry.module
        package, _smallest = find_extra(module) or (module.partition(".")[0], "")
        extra = entry.module.split(".")[1]  # each of our add-ons has an extra of its own name
        return missing_extra_error(package, extra)
    reason = str(error).partition("\n")[0] or type(error).__name__
    return WorkFailed(
        _("{name} cannot be loaded: {reason}.", name=entry.value, reason=reason),
        hint=_("It comes with {distribution}: install that anew, or remove it.", distribution=distribution),
    )

"""Recorded machines, as data: the wizard, the notebooks and the tests choose from them."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from assistant.i18n import Text, _
from assistant.model.errors import BadInput
from assistant.model.machine import Recording
from assistant.model.record import from_json

__all__ = ["label", "load", "shipped"]


@cache
def shipped() -> tuple[str, ...]:
    """Name the shipped machines, sorted: `linux-arch-rx6700xt-directml`."""
    names = (entry.name for entry in files("assistant.machines").iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


@cache
def load(name: str) -> Recording:
    """Read a shipped machine by its name; raise `BadInput` for a name that is not there."""
    if name not in shipped():
        near = get_close_matches(name, shipped()) or shipped()
        raise BadInput(
            _("There is no shipped machine named {name}.", name=name),
            hint=_("Choose one of: {names}.", names=", ".join(near)),
        )
    return from_json((files("assistant.machines") / f"{name}.json").read_bytes(), Recording, name)


def label(name: str) -> Text:
    """Give the words that a person chooses a machine by."""
    return _(load(name).label) if load(name).label else name

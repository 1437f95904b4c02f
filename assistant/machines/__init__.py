"""Recorded machines, as data: the wizard, the notebooks and the tests choose from them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from assistant.i18n import Text, _
from assistant.model.errors import BadInput
from assistant.model.machine import Recording
from assistant.model.record import from_json

__all__ = ["label", "load", "shipped"]

_FOLDER = Path(__file__).parent


@cache
def shipped() -> tuple[str, ...]:
    """Name the shipped machines, sorted: `linux-arch-rx6700xt-directml`."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.json")))


@cache
def load(name: str) -> Recording:
    """Read a shipped machine by its name; raise `BadInput` for a name that is not there."""
    if name not in shipped():
        from difflib import get_close_matches  # noqa: PLC0415 - every command would pay for it

        near = get_close_matches(name, shipped()) or shipped()
        raise BadInput(
            _("There is no shipped machine named {name}.", name=name),
            hint=_("Choose one of: {names}.", names=", ".join(near)),
        )
    return from_json((_FOLDER / f"{name}.json").read_bytes(), Recording, name)


def label(name: str) -> Text:
    """Give the words that a person chooses a machine by."""
    return _(load(name).label) if load(name).label else name

"""The base of every record, and the one way in and out of JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec
import msgspec.structs

from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.visible import spelled

__all__ = ["Record", "from_json", "from_plain", "reason_of", "replace", "to_json", "to_plain"]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A frozen value; keys that are missing in JSON keep their default, unknown keys are refused."""


replace = msgspec.structs.replace  # a copy of a record with some fields changed

R = TypeVar("R")


def from_json(text: str | bytes, kind: type[R], what: str) -> R:
    """Decode strictly into `kind`; raise `BadInput` naming `what` and the key or position at fault."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _refusal(what, error) from error


def from_plain(value: object, kind: type[R], what: str) -> R:
    """Convert plain dicts and lists strictly into `kind`; raise `BadInput` as `from_json` does."""
    try:
        return msgspec.convert(value, type=kind)
    except msgspec.ValidationError as error:
        raise _refusal(what, error) from error


def to_json(value: object, *, indent: int = 0) -> str:
    """Encode a record, with its defaults left out, as JSON text; `indent=0` gives one line.

    What a terminal would obey, or nobody could see, stands in it as an escape of JSON.
    """
    encoded = msgspec.json.encode(value)
    return spelled((msgspec.json.format(encoded, indent=indent) if indent else encoded).decode())


def to_plain(value: object) -> object:
    """Turn a record into dicts, lists and scalars."""
    return msgspec.to_builtins(value)


def reason_of(error: Exception) -> str:
    """Say in the user's language why msgspec refused something; what it says beyond these few stays as it is."""
    text, _sign, place = str(error).rstrip(".").partition(" - at ")
    for pattern, words in _REASONS.items():
        if found := re.fullmatch(pattern, text):
            text = words().format(**found.groupdict())
    return _("{reason} (at {place})").format(reason=text, place=place.strip("`").removeprefix("$.")) if place else text


_REASONS: dict[str, Callable[[], str]] = {
    r"Object contains unknown field `(?P<name>.+)`": lambda: _("unknown field `{name}`"),
    r"Expected `(?P<wanted>.+)`, got `(?P<given>.+)`": lambda: _("Expected `{wanted}`, got `{given}`"),
    r"Invalid enum value '?(?P<value>.+?)'?": lambda: _("'{value}' is none of the possible values"),
    r"Input data was truncated": lambda: _("it is empty or truncated"),
    r"JSON is malformed: .*\(byte (?P<byte>\d+)\)": lambda: _("no JSON, or malformed from byte {byte} on"),
}


def _refusal(what: str, error: Exception) -> BadInput:
    if str(error).endswith("`$.schema`"):
        return BadInput(
            _("{what} was written for another version of the assistant.").format(what=what),
            hint=_("Update the assistant, or make the file anew with this one."),
        )
    return BadInput(
        _("{what} cannot be read: {reason}.").format(what=what, reason=reason_of(error)),
        hint=_("Correct that place, or make the file anew with the command that wrote it."),
    )

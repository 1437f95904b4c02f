"""The base of every record, and the only functions that read and write JSON."""

from __future__ import annotations

import re
import threading
from typing import Any, ClassVar, TypeVar

import msgspec
import msgspec.structs

from assistant.i18n import Message, Text, _, render
from assistant.model.errors import BadInput
from assistant.model.visible import escape_hidden


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A frozen value; keys that are missing in JSON keep their default, unknown keys are refused.

    `in_answers` are the properties, and fields with their defaults, that an answer for `--json` holds, too.
    """

    in_answers: ClassVar[tuple[str, ...]] = ()


replace = msgspec.structs.replace  # a copy of a record with some fields changed

R = TypeVar("R")
_HALF = r"[\ud800-\udfff]"

_first_use = threading.Lock()
_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


def decoder(kind: type[R]) -> msgspec.json.Decoder[R]:
    """Return the decoder of a type that all threads share, made at its first use; no other may decode records."""
    # msgspec 0.22 shows a type to other threads before it has read the types of its fields, and a thread that decodes
    # into it then ends the process: `StructInfo_Convert` in src/msgspec/_core.c.
    with _first_use:
        if kind not in _decoders:
            _decoders[kind] = msgspec.json.Decoder(kind)
        return _decoders[kind]


def from_json(text: str | bytes, kind: type[R], what: str) -> R:
    """Decode strictly into `kind`; raise `BadInput`, with the name `what` and the key or position of the error."""
    try:
        return decoder(kind).decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _decode_failure(what, error) from error


def from_plain(value: object, kind: type[R], what: str, *, strict: bool = True) -> R:
    """Convert plain dicts and lists into `kind`; raise `BadInput` as `from_json` does.

    Unless `strict`, texts that hold numbers are taken for such.
    """
    decoder(kind)
    try:
        return msgspec.convert(value, type=kind, strict=strict)
    except msgspec.ValidationError as error:
        raise _decode_failure(what, error) from error


def to_json(value: object, *, indent: int = 0) -> str:
    """Encode a record as JSON, on one line for `indent=0`; defaults are left out where its class omits them.

    Characters that steer a terminal or cannot be seen are escaped.
    """
    encoded = msgspec.json.encode(value)
    return escape_hidden((msgspec.json.format(encoded, indent=indent) if indent else encoded).decode())


def render_messages(value: object) -> object:
    """Return a record as plain values for `--json`, with its messages rendered in the current language.

    A field that is a message becomes its text, and its record also gets the `key` of the first such field and the
    `params` of all, the same in any language. Any other message becomes an object of `key`, `params` and `text`. What
    `in_answers` names is added.
    """
    if isinstance(value, Message):
        return {"key": value.key or value.id, "params": render_messages(value.params), "text": render(value)}
    if isinstance(value, str):
        return re.sub(_HALF, "\ufffd", value)  # of the name of a file that is no UTF-8: JSON cannot hold it
    if isinstance(value, dict):
        return {getattr(key, "value", key): render_messages(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [render_messages(item) for item in value]
    if not isinstance(value, msgspec.Struct):
        return to_plain(value)
    more = {name: getattr(value, name) for name in getattr(value, "in_answers", ())}
    plain = msgspec.to_builtins(value)  # has the tag, and no defaults where the record omits them
    fields = {name: item for name, item in more.items() if item is not None}
    fields |= {name: getattr(value, name, item) for name, item in plain.items()}
    messages = [item for item in fields.values() if isinstance(item, Message)]
    words = {
        name: render(item) if isinstance(item, Message) else render_messages(item) for name, item in fields.items()
    }
    params = {name: render_messages(param) for message in reversed(messages) for name, param in message.params.items()}
    return {"key": messages[0].key or messages[0].id, **words, "params": params} if messages else words


def to_plain(value: object) -> object:
    """Return a record as dicts, lists and scalars; messages are not rendered."""
    return msgspec.to_builtins(value)


def decode_error_reason(error: Exception) -> Text:
    """Return why msgspec could not decode something; reasons other than those in `_REASONS` stay in English."""
    # Expected `int`, got `str` - at `$.gpus[0].vram_gb`
    reason, _separator, place = str(error).rstrip(".").partition(" - at ")
    text: Text = reason
    for pattern, message in _REASONS.items():
        if found := re.fullmatch(pattern, reason):
            text = message.format(**found.groupdict())
    return _("{reason} (at {place})", reason=text, place=place.strip("`").removeprefix("$.")) if place else text


# As msgspec words them (src/msgspec/_core.c); anything else is shown in its own English.
_REASONS: dict[str, Message] = {
    r"Object contains unknown field `(?P<name>.+)`": _("unknown field `{name}`"),
    r"Expected `(?P<wanted>.+)`, got `(?P<given>.+)`": _("Expected `{wanted}`, got `{given}`"),
    r"Invalid enum value '?(?P<value>.+?)'?": _("'{value}' is not one of the possible values"),
    r"Input data was truncated": _("it is empty or truncated"),
    r"JSON is malformed: .*\(byte (?P<byte>\d+)\)": _("not JSON, or malformed from byte {byte} on"),
}


def _decode_failure(what: str, error: Exception) -> BadInput:
    """Return the error to raise for `what`, a file or text that could not be decoded for the reason `error`."""
    if str(error).endswith("`$.schema`"):
        return BadInput(
            _("{what} was written for another version of the assistant.", what=what),
            hint=_("Update the assistant, or write the file again with this version."),
        )
    return BadInput(
        _("{what} cannot be read: {reason}.", what=what, reason=decode_error_reason(error)),
        hint=_("Correct it there, or write the file again with the command that made it."),
    )

"""The base of every record, and the one way in and out of JSON."""

from __future__ import annotations

import re
import threading
from typing import Any, ClassVar, TypeVar

import msgspec
import msgspec.structs

from assistant.i18n import Message, Text, _, render
from assistant.model.errors import BadInput
from assistant.model.visible import spelled


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A frozen value; keys that are missing in JSON keep their default, unknown keys are refused.

    `in_answers` names what an answer for `--json` holds of it besides: properties, and fields that keep their default.
    """

    in_answers: ClassVar[tuple[str, ...]] = ()


replace = msgspec.structs.replace  # a copy of a record with some fields changed

R = TypeVar("R")
_HALF = re.compile(r"[\ud800-\udfff]")

_first_use = threading.Lock()
_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


def decoder(kind: type[R]) -> msgspec.json.Decoder[R]:
    """Return the decoder of a type; every record is read by one, as only one thread may be the first to meet a type.

    msgspec 0.22 shows a type to other threads before it has read the types of its fields, and a thread that decodes
    into it then ends the process: `StructInfo_Convert` in src/msgspec/_core.c.
    """
    with _first_use:
        if kind not in _decoders:
            _decoders[kind] = msgspec.json.Decoder(kind)
        return _decoders[kind]


def from_json(text: str | bytes, kind: type[R], what: str) -> R:
    """Decode strictly into `kind`; raise `BadInput` that names `what` and the key or position at fault."""
    try:
        return decoder(kind).decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _refusal(what, error) from error


def from_plain(value: object, kind: type[R], what: str, *, strict: bool = True) -> R:
    """Convert plain dicts and lists into `kind`; raise `BadInput` as `from_json` does.

    Unless `strict`, texts that hold numbers are taken for such.
    """
    decoder(kind)
    try:
        return msgspec.convert(value, type=kind, strict=strict)
    except msgspec.ValidationError as error:
        raise _refusal(what, error) from error


def to_json(value: object, *, indent: int = 0) -> str:
    """Encode a record as JSON without its defaults, on one line for `indent=0`.

    Characters that steer a terminal or cannot be seen are escaped.
    """
    encoded = msgspec.json.encode(value)
    return spelled((msgspec.json.format(encoded, indent=indent) if indent else encoded).decode())


def with_words(value: object) -> object:
    """Turn a record into plain values for `--json`, with its messages rendered in the current language.

    Beside each stand its `key` and `params`, which do not depend on the language.
    """
    if isinstance(value, Message):
        return {"key": value.key or value.id, "params": with_words(value.params), "text": render(value)}
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)  # of the name of a file that is no UTF-8: JSON cannot hold it
    if isinstance(value, dict):
        return {getattr(key, "value", key): with_words(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_words(item) for item in value]
    if not isinstance(value, msgspec.Struct):
        return to_plain(value)
    more = {name: getattr(value, name) for name in getattr(value, "in_answers", ())}
    fields = {**{name: item for name, item in more.items() if item is not None}, **_fields(value)}
    messages = [item for item in fields.values() if isinstance(item, Message)]
    plain = {name: render(item) if isinstance(item, Message) else with_words(item) for name, item in fields.items()}
    params = {name: with_words(param) for message in reversed(messages) for name, param in message.params.items()}
    return {"key": messages[0].key or messages[0].id, **plain, "params": params} if messages else plain


def _fields(value: msgspec.Struct) -> dict[str, object]:
    """Return the fields that a record's JSON has: with its tag, and without defaults if the record omits them."""
    config = value.__struct_config__
    every = msgspec.structs.asdict(value)
    if config.omit_defaults:
        defaults = dict(zip(reversed(every), reversed(value.__struct_defaults__), strict=False))
        every = {name: item for name, item in every.items() if name not in defaults or item != _made(defaults[name])}
    return {str(config.tag_field): config.tag, **every} if config.tag else every


def _made(default: object) -> object:
    """Return a field's default; that of a list or a mapping is made anew each time."""
    factory = getattr(default, "factory", None)
    return factory() if factory else default


def to_plain(value: object) -> object:
    """Turn a record into dicts, lists and scalars."""
    return msgspec.to_builtins(value)


def reason_of(error: Exception) -> Text:
    """Return why msgspec refused something; reasons other than those in `_REASONS` stay in msgspec's English."""
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


def _refusal(what: str, error: Exception) -> BadInput:
    if str(error).endswith("`$.schema`"):
        return BadInput(
            _("{what} was written for another version of the assistant.", what=what),
            hint=_("Update the assistant, or write the file again with this version."),
        )
    return BadInput(
        _("{what} cannot be read: {reason}.", what=what, reason=reason_of(error)),
        hint=_("Correct it there, or write the file again with the command that made it."),
    )

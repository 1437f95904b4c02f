"""What the labs tell: stories, hints and answers, from one data file."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.record import Record, from_plain


class Text(Record, frozen=True):
    """One lab's words; `files` are those that the learner changes, `answer` the lines that mend it.

    `python` is the only version that it can be played with ("" for any from 3.11 on), `systems` where it can be played.
    """

    key: str
    title: str
    story: str
    hints: tuple[str, ...]
    answer: tuple[str, ...]
    explanation: str
    files: tuple[str, ...] = ()
    python: str = ""
    systems: tuple[str, ...] = ("linux", "windows", "macos")


class _Labs(Record, frozen=True):
    schema: int
    lab: tuple[Text, ...]


@cache
def texts() -> dict[str, Text]:
    """Read every lab's words, by key, in teaching order."""
    raw = tomllib.loads((files("assistant.labs") / "labs.toml").read_text("utf-8"))
    return {text.key: text for text in from_plain(raw, _Labs, "labs.toml").lab}


def text_of(key: str) -> Text:
    """Find one lab's words; raise `BadInput` for a key that is not there."""
    if key not in texts():
        raise BadInput(
            _("There is no lab named {name}.", name=key),
            hint=_("Choose one of: {names}.", names=", ".join(texts())),
        )
    return texts()[key]

"""Sentences before they are written (`Message`), and the language that they are written in."""

from __future__ import annotations

import gettext
import locale
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

STARTED_AS = "SETUP_ASSISTANT_STARTED_AS"  # the variable in which start.py tells what was typed in place of `assistant`
LANGUAGES = {"en": "English", "zh_CN": "简体中文"}
FOLDER = Path(__file__).with_name("locale")


class _Current:
    """The translations in force; loaded on first use so that an import costs nothing."""

    code = ""
    translations = gettext.NullTranslations()


@dataclass(frozen=True)
class Message:
    """One sentence before it is written: its English, which is gettext's key, and the values of its placeholders.

    `many` is the plural, chosen by the value `count`. With an empty `id` the values are sentences in a row.
    """

    id: str
    params: dict[str, Value] = field(default_factory=dict)
    many: str = ""

    def __hash__(self) -> int:
        return hash((self.id, repr(self.params)))

    def __str__(self) -> str:
        return render(self)

    def __format__(self, spec: str) -> str:
        return format(render(self), spec)

    def format(self, **params: object) -> Message:
        """Give the values of placeholders; what is neither text, number nor message is kept as text."""
        given: dict[str, Value] = {name: _value(value) for name, value in params.items()}
        return replace(self, params={**self.params, **given})


Text = str | Message  # a program's own words, or ours
Value = str | int | float | Message | tuple[str | Message, ...]


def _value(value: object) -> Value:
    return value if isinstance(value, str | int | float | Message | tuple) else str(value)


def use_language(code: str | None = None, folder: Path = FOLDER) -> str:
    """Choose the language by code, else by the environment and the system; answer its code. `folder` holds the .mo."""
    wanted = code or wanted_by(os.environ, locale.setlocale(locale.LC_CTYPE))
    _Current.code = "zh_CN" if wanted.lower().startswith(("zh", "chinese")) else "en"
    _Current.translations = gettext.translation("assistant", folder, [_Current.code], fallback=True)
    return _Current.code


def wanted_by(environ: Mapping[str, str], system: str) -> str:
    """Tell the language as GNU gettext does: `LANGUAGE`, then `LC_ALL`, `LC_MESSAGES`, `LANG`; C and POSIX are final.

    Windows sets none of them; there `system` decides, which reads like "Chinese (Simplified)_China.936".
    """
    named = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return named if named in {"C", "POSIX"} else environ.get("LANGUAGE") or named or system


def language() -> str:
    """Answer the code of the language in force."""
    return _Current.code or use_language()


def _translations() -> gettext.NullTranslations:
    language()
    return _Current.translations


def _(sentence: str, /, **params: object) -> Message:
    """Give a whole English sentence with the values of its placeholders, to be written by who shows it."""
    return Message(sentence).format(**params)


def ngettext(one: str, many: str, count: int, /, **params: object) -> Message:
    """Give a sentence that depends on a number, its placeholder `count`."""
    return Message(one, many=many).format(count=count, **params)


def lines(parts: Iterable[Text]) -> Message:
    """Put texts below one another, without those that are empty."""
    named: dict[str, object] = {f"line{number}": part for number, part in enumerate(filter(None, parts))}
    return Message("\n".join(f"{{{name}}}" for name in named)).format(**named)


def verbatim(text: object) -> Message:
    """Give a text that is not ours, such as a program's own words, as it is."""
    return Message("{text}").format(text=text)


def sentences(parts: Iterable[Text]) -> Message:
    """Put sentences behind one another."""
    named: dict[str, Value] = {f"part{number}": part for number, part in enumerate(part for part in parts if part)}
    return Message("", named)


def changed(value: Value, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - of the kind that was given
    """Apply a change to every text that a message speaks of, such as a path; its own words stay."""
    if isinstance(value, Message):
        return replace(value, params={name: changed(param, change) for name, param in value.params.items()})
    if isinstance(value, tuple):
        return tuple(map(partial(changed, change=change), value))
    return change(value) if isinstance(value, str) else value


def render(message: Value | None) -> str:
    """Write a message in the language in force, "" for None; only shells and writers of files do this."""
    if isinstance(message, tuple):
        return ", ".join(map(render, message))
    if not isinstance(message, Message):
        return "" if message is None else str(message)
    if not message.id:
        return _in_a_row(map(render, message.params.values()))
    translations, params = _translations(), message.params
    count = params.get("count", 0)
    if message.many and isinstance(count, int):
        text = translations.ngettext(message.id, message.many, count)
    else:
        text = translations.gettext(message.id)
    return text.format(**{name: _inside(text, name, value) for name, value in params.items()}) if params else text


def _inside(text: str, name: str, value: Value) -> str | int | float:
    """Give what stands for a placeholder; a sentence before a sign loses its own full stop."""
    if isinstance(value, int | float):
        return value
    sign = text.partition(f"{{{name}}}")[2][:1]
    signs = ".。" if isinstance(value, str) else ".。,，;；:：)）"
    return render(value).rstrip(".。") if sign and sign in signs else render(value)


def say(sentence: str, /, **params: object) -> str:
    """Write a sentence at once, in the language in force: for shells."""
    return render(_(sentence, **params))


def _in_a_row(parts: Iterable[str]) -> str:
    """Put sentences behind one another: Chinese has no space between them; one that was left open is ended."""
    text = ""
    for part in filter(None, parts):
        space = "" if not text or text.endswith(("。", "！", "？")) else " " if text.endswith((".", "!", "?")) else ". "
        text += space + part
    return text


def as_typed(text: Text) -> str:
    """Name the assistant's commands as this user types them; `text` is a command, or a sentence with ``.

    From a checkout `assistant plan` reads `python3 start.py plan`.
    """
    typed = os.environ.get(STARTED_AS) or "assistant"
    return re.sub(r"(?:^|(?<=`))assistant(?= [a-zA-Z-])", lambda _found: typed, render(text))

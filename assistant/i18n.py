"""Sentences for people: a `Message` holds one until a shell renders it in the current language."""

from __future__ import annotations

import gettext
import locale
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

STARTED_AS = "SETUP_ASSISTANT_STARTED_AS"  # set by start.py: what is typed for `assistant`
LANGUAGES = {"en": "English", "zh_CN": "简体中文"}
FOLDER = Path(__file__).with_name("locale")


class _Current:
    """The translations in force; loaded on first use so that an import costs nothing."""

    code = ""
    options = False
    translations = gettext.NullTranslations()


# What `in_language` has put in the place of `_Current`, in its own thread or task alone.
_INSTEAD: ContextVar[tuple[str, gettext.NullTranslations] | None] = ContextVar("instead", default=None)


@dataclass(frozen=True)
class Message:
    """A sentence to be rendered later: its English text, which is gettext's key, and the values of its placeholders.

    `many` is the plural, chosen by the value `count`. With an empty `id` the values are sentences to be joined. The
    value `option` names what one adds at the command line to do what the sentence says; only there is it shown. `key`
    names the sentence for programs, in any language and whatever becomes of its words; "" if none is given.
    """

    id: str
    params: dict[str, Value] = field(default_factory=dict)
    many: str = ""
    key: str = ""

    def __hash__(self) -> int:
        return hash((self.id, repr(self.params)))

    def __str__(self) -> str:
        return render(self)

    def __format__(self, spec: str) -> str:
        return format(render(self), spec)

    def format(self, **params: object) -> Message:
        """Return a copy with these values beside its own, or in their place if they have the same name.

        A value that is no text, number, tuple or message becomes text.
        """
        given: dict[str, Value] = {
            name: value if isinstance(value, str | int | float | Message | tuple) else str(value)
            for name, value in params.items()
        }
        return replace(self, params={**self.params, **given})


Text = str | Message  # a program's own words, or ours
Value = str | int | float | Message | tuple[str | Message, ...]


def use_language(code: str | None = None, folder: Path = FOLDER) -> str:
    """Set this process's language to `code`, or without it to that of the environment or the system, and return it.

    The language is "zh_CN" for any kind of Chinese, else "en". `folder` holds the catalogues.
    """
    chosen = code or preferred_language(os.environ, locale.setlocale(locale.LC_CTYPE))
    _Current.code = "zh_CN" if chosen.lower().startswith(("zh", "chinese")) else "en"
    _Current.translations = _translations(_Current.code, folder)
    return _Current.code


def _translations(code: str, folder: Path) -> gettext.NullTranslations:
    return gettext.translation("assistant", folder, [code], fallback=True)


@contextmanager
def in_language(code: str, folder: Path = FOLDER) -> Iterator[None]:
    """Render messages in the language `code` within the block, in this thread only; `folder` holds the catalogues."""
    token = _INSTEAD.set((code, _translations(code, folder)))
    try:
        yield
    finally:
        _INSTEAD.reset(token)


def preferred_language(environ: Mapping[str, str], system: str) -> str:
    """Return the language that the variables ask for, as they spell it: `LANGUAGE`, `LC_ALL`, `LC_MESSAGES`, `LANG`.

    The first that is set counts; without any, `system`.

    As in GNU gettext, C and POSIX switch translation off whatever `LANGUAGE` says:
    https://www.gnu.org/software/gettext/manual/html_node/The-LANGUAGE-variable.html. Windows sets none of them; its
    `system` is such as "Chinese (Simplified)_China.936".
    """
    named = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return named if named in {"C", "POSIX"} else environ.get("LANGUAGE") or named or system


def show_options() -> None:
    """From now on, render each sentence with its command-line option, if it has one: for the terminal only."""
    _Current.options = True


def language() -> str:
    """Return the code of the current language."""
    instead = _INSTEAD.get()
    return instead[0] if instead else _Current.code or use_language()


def _(sentence: str, key: str = "", /, **params: object) -> Message:
    """Make a message of a whole English sentence; `key` names it for programs, `params` fill its placeholders."""
    return Message(sentence, key=key).format(**params)


def ngettext(one: str, many: str, count: int, /, **params: object) -> Message:
    """Make a message whose wording depends on `count`, which is also a placeholder."""
    return Message(one, many=many).format(count=count, **params)


def lines(parts: Iterable[Text]) -> Message:
    """Join texts as lines of one message, without the empty ones."""
    named: dict[str, object] = {f"line{number}": part for number, part in enumerate(filter(None, parts))}
    return Message("\n".join(f"{{{name}}}" for name in named)).format(**named)


def first_line(text: Text) -> Text:
    """Return the first of the texts that `lines` joined, any other message whole, or a plain text's first line."""
    if isinstance(text, Message):
        found = text.params.get("line0", text)
        return found if isinstance(found, str | Message) else text
    return text.partition("\n")[0]


def verbatim(text: object) -> Message:
    """Make a message of a text that is not ours, such as a program's own words; it is never translated."""
    return Message("{text}").format(text=text)


def sentences(parts: Iterable[Text], key: str = "") -> Message:
    """Join sentences into one message, without the empty ones; without a `key` it has that of the first."""
    named: dict[str, Value] = {f"part{number}": part for number, part in enumerate(part for part in parts if part)}
    return Message("", named, key=key or getattr(named.get("part0"), "key", ""))


def map_texts(value: Value, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - of the kind that was given
    """Return a message with `change` applied to all texts among its values, such as paths; its own words stay.

    Texts and tuples are changed likewise; other values are returned as they are.
    """
    if isinstance(value, Message):
        return replace(value, params={name: map_texts(param, change) for name, param in value.params.items()})
    if isinstance(value, tuple):
        return tuple(map(partial(map_texts, change=change), value))
    return change(value) if isinstance(value, str) else value


def render(message: Value | None) -> str:
    """Return a message as text in the current language, "" for None; for shells and writers of files only.

    The items of a tuple are joined by commas; any other value becomes text as `str` writes it. Where options of the
    command line are shown, the one that a message names is part of the text.
    """
    if isinstance(message, tuple):
        return ", ".join(map(render, message))
    if not isinstance(message, Message):
        return "" if message is None else str(message)
    if not message.id:
        return _join_sentences(map(render, message.params.values()))
    language()  # loads the translations
    translations, params = (_INSTEAD.get() or ("", _Current.translations))[1], message.params
    count = params.get("count", 0)
    if message.many and isinstance(count, int):
        text = translations.ngettext(message.id, message.many, count)
    else:
        text = translations.gettext(message.id)
    filled = _fill_placeholders(text, params) if params else text
    return _with_option(filled, str(params["option"])) if _Current.options and "option" in params else filled


# {name:>1000000000} and {name:>{width}}: no sentence of ours takes as much room
_WIDE = r"\{[^{}]+(?:\{|\d{3})"


def _fill_placeholders(text: str, params: Mapping[str, Value]) -> str:
    """Fill a text's placeholders; return it unchanged if one cannot be filled or has a width of three digits or more.

    Only texts that were read from files can have such placeholders. A plain text that is filled in loses its full stop
    before another one, and a message's text before any punctuation mark; numbers are formatted as the text says.
    """
    if re.search(_WIDE, text):
        return text
    filled: dict[str, str | int | float] = {}
    for name, value in params.items():
        sign = text.partition(f"{{{name}}}")[2][:1]
        signs = ".。" if isinstance(value, str) else ".。,，;；:：)）"
        if isinstance(value, int | float):
            filled[name] = value
        else:
            filled[name] = render(value).rstrip(".。") if sign and sign in signs else render(value)
    try:
        return text.format(**filled)
    except (LookupError, ValueError, TypeError, AttributeError):
        return text


def _with_option(text: str, option: str) -> str:
    """Return a sentence with an option before its full stop, if it has one: "Choose another folder (--target)."."""
    if text.endswith("。"):
        return f"{text[:-1]}（{option}）。"
    return f"{text[:-1]} ({option})." if text.endswith(".") else f"{text} ({option})"


def say(sentence: str, /, **params: object) -> str:
    """Render a sentence at once: for shells."""
    return render(Message(sentence).format(**params))


def _join_sentences(parts: Iterable[str]) -> str:
    """Join sentences, with a space after all but Chinese ones, and a full stop after one without an end if more follow.

    Empty ones are left out.
    """
    text = ""
    for part in filter(None, parts):
        space = "" if not text or text.endswith(("。", "！", "？")) else " " if text.endswith((".", "!", "?")) else ". "
        text += space + part
    return text


def as_typed(text: Text) -> str:
    """Return a command, or a sentence with commands in backticks, with `assistant` spelt as this user types it.

    From a checkout `assistant plan` becomes `python3 start.py plan`.
    """
    typed = os.environ.get(STARTED_AS) or "assistant"
    return re.sub(r"(?:^|(?<=`))assistant(?= [a-zA-Z-])", lambda _found: typed, render(text))

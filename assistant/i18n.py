"""Every sentence that a user reads passes through `_` or `ngettext`; the language is chosen once, here."""

from __future__ import annotations

import gettext
import locale
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = [
    "LANGUAGES",
    "STARTED_AS",
    "_",
    "as_typed",
    "language",
    "ngettext",
    "sentences",
    "use_language",
    "wanted_by",
]

STARTED_AS = "SETUP_ASSISTANT_STARTED_AS"  # the variable in which start.py tells what was typed in place of `assistant`
LANGUAGES = {"en": "English", "zh_CN": "简体中文"}
FOLDER = Path(__file__).with_name("locale")
FIELD = re.compile(r"\{(\w+)\b[^{}]*\}")  # a named placeholder, with how it is written


class _Current:
    """The translations in force; loaded on first use so that an import costs nothing."""

    code = ""
    translations = gettext.NullTranslations()


_said: dict[str, str] = {}  # what each translation that was asked for is in English


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


def _(sentence: str) -> str:
    """Translate one whole sentence; placeholders are named and filled in by the caller with `.format`."""
    said = _translations().gettext(sentence)
    _said[said] = sentence
    return said


def again(text: str) -> str:
    """Say a filled-in sentence in the language now in force; one that nothing here has said stays as it is."""
    near = [said for said in list(_said) if all(part in text for part in FIELD.split(said)[::2])]
    fits = ((said, _shape(said).fullmatch(text)) for said in sorted(near, key=_literal, reverse=True))
    said, found = next(((said, found) for said, found in fits if found), ("", None))
    if found is None:
        return text
    values = {name: again(value) if value != text else value for name, value in found.groupdict().items()}
    if values == found.groupdict() and not re.search(r"\w", FIELD.sub("", said)):
        return text  # a mere colon between two things that nothing here has said
    return FIELD.sub(lambda field: values[field[1]], _(_said[said]))


def _literal(said: str) -> int:
    """Count what a sentence has besides its placeholders: the more, the surer it is recognised."""
    return len(FIELD.sub("", said))


def _shape(said: str) -> re.Pattern[str]:
    """Give the pattern of a sentence, whatever its placeholders hold; a second one of a name holds the same."""
    parts, seen = [], set[str]()
    for index, part in enumerate(FIELD.split(said)):
        name = f"(?P={part})" if part in seen else f"(?P<{part}>.*)"
        parts.append(name if index % 2 else re.escape(part))
        seen |= {part} if index % 2 else set()
    return re.compile("".join(parts), re.DOTALL)


def ngettext(one: str, many: str, count: int) -> str:
    """Translate a sentence that depends on a number."""
    return _translations().ngettext(one, many, count)


def sentences(parts: Iterable[str]) -> str:
    """Put sentences behind one another: Chinese has no space between them; one that was left open is ended."""
    text = ""
    for part in filter(None, parts):
        space = "" if not text or text.endswith(("。", "！", "？")) else " " if text.endswith((".", "!", "?")) else ". "
        text += space + part
    return text


def as_typed(text: str) -> str:
    """Name the assistant's commands as this user types them; `text` is a command, or a sentence with ``.

    From a checkout `assistant plan` reads `python3 start.py plan`.
    """
    typed = os.environ.get(STARTED_AS) or "assistant"
    return re.sub(r"(?:^|(?<=`))assistant(?= [a-zA-Z-])", lambda _found: typed, text)

"""Every sentence that a user reads passes through `_` or `ngettext`; the language is chosen once, here."""

from __future__ import annotations

import gettext
import os
from pathlib import Path

__all__ = ["LANGUAGES", "_", "language", "ngettext", "use_language"]

LANGUAGES = {"en": "English", "zh_CN": "简体中文"}
_FOLDER = Path(__file__).with_name("locale")


class _Current:
    """The translations in force; loaded on first use so that an import costs nothing."""

    code = ""
    translations = gettext.NullTranslations()


def use_language(code: str | None = None) -> str:
    """Choose the language by code, else by `LANGUAGE`, `LC_ALL`, `LC_MESSAGES` or `LANG`; answer its code."""
    wanted = code or next(
        (os.environ[name] for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "en"
    )
    _Current.code = "zh_CN" if wanted.lower().startswith("zh") else "en"
    _Current.translations = gettext.translation("assistant", _FOLDER, [_Current.code], fallback=True)
    return _Current.code


def language() -> str:
    """Answer the code of the language in force."""
    return _Current.code or use_language()


def _translations() -> gettext.NullTranslations:
    language()
    return _Current.translations


def _(sentence: str) -> str:
    """Translate one whole sentence; placeholders are named and filled in by the caller with `.format`."""
    return _translations().gettext(sentence)


def ngettext(one: str, many: str, count: int) -> str:
    """Translate a sentence that depends on a number."""
    return _translations().ngettext(one, many, count)

"""A made-up language that shows what escapes translation.

It writes every sentence in Cyrillic and puts «» around what is filled in: whatever stays in Latin letters outside of
«» did not pass through gettext.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.mofile import write_mo

__all__ = ["ENGLISH_WORDS", "LATIN_WORD", "escaped", "every_sentence", "without_filled", "write_made_up"]

ROOT = Path(__file__).parents[1]
LATIN_WORD = re.compile(r"[A-Za-z]{2,}")
ENGLISH_WORDS = re.compile(r"\b[a-z]{2,} [a-z]{2,}\b")  # two words in small letters: no product is called so


def every_sentence() -> set[str]:
    """Extract every sentence of the code, the singular where it has a plural."""
    return {forms[0] for forms in _messages()}


def _messages() -> set[tuple[str, ...]]:
    """Extract every message with its plural, as `pybabel extract -F pyproject.toml .` does."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["babel"]
    own = settings["extractors"]
    methods = [
        (pattern, own.get(mapping["method"], mapping["method"]))
        for mapping in settings["mappings"]
        for pattern in mapping["pattern"]
    ]
    found = extract_from_dir(ROOT, method_map=methods, keywords={**DEFAULT_KEYWORDS, "say": None})
    return {(text,) if isinstance(text, str) else tuple(text[:2]) for _file, _line, text, _comments, _context in found}


def write_made_up(root: Path) -> Path:
    """Write the language's catalogue; answer `root`, for `use_language`."""
    catalog = Catalog("zh_CN")
    for forms in _messages():
        marked = re.sub(r"\{[^}]*\}", lambda found: f"«{found[0]}»", forms[-1])
        strange = re.sub(r"(\{[^}]*\})|[A-Za-z]", lambda found: found[1] or "Ж", marked)
        catalog.add(forms if len(forms) > 1 else forms[0], (strange,) if len(forms) > 1 else strange)
    (root / "zh_CN" / "LC_MESSAGES").mkdir(parents=True)
    with (root / "zh_CN" / "LC_MESSAGES" / "assistant.mo").open("wb") as file:
        write_mo(file, catalog)
    return root


def escaped(texts: Iterable[str]) -> set[str]:
    """Give the texts that hold words of no translation: any outside of «», or two English ones within."""
    return {text for text in texts if LATIN_WORD.search(without_filled(text)) or ENGLISH_WORDS.search(text)}


def without_filled(text: str) -> str:
    """Cut what stands in «», innermost first."""
    shorter = re.sub(r"«[^«»]*»", "", text)
    return shorter if shorter == text else without_filled(shorter)

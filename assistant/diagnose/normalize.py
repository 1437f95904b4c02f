"""Normalises a log for the rules: lower case, ASCII quotes, no frames around lines, translated messages in English."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from assistant.model.pasted import without_entities

NARROWEST, WIDEST = 30, 160  # characters of a line that a terminal or an editor may have broken
NEAR = 3  # lines around one among which the widest tells where lines were broken
LONGEST = 2000
TERMINALS = frozenset({80, 100, 120, 132})  # usual widths: one line that ends there may have been cut
_INSIDE = re.compile(r"[a-z0-9._-]")  # what a name may go on with
# Typographic signs and those of Chinese input methods, which forums and chats put in place of ASCII.
_MARKS = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u2007\u202f\u3000", " "),
        **dict.fromkeys("\u200b\u200c\u200d\u2060", ""),
        **dict.fromkeys("‘’‛′", "'"),
        **dict.fromkeys("“”„″«»", '"'),
        **dict(zip("：，（）；", ":,();", strict=True)),
    }
)
# What stands around a line and is not the program's: rich's boxes, a quoting mail's ">", a container's name, a time.
#   │   RuntimeError: HIP out of memory    │
#   > RuntimeError: …
#   comfyui-1  | RuntimeError: …
#   2026-11-21T10:20:30.123Z RuntimeError: …
_FRAME = re.compile(
    r"^(?:[ \t│┃|]+|[─━╭╰╮╯┌└]{3,}|>(?!>)|[\w.-]{1,40}-\d{1,3} {1,20}\|"
    r"|\d{4}-\d\d-\d\d[t ]\d\d:\d\d:\d\d[.,\d]{0,10}z?(?:[ \t]|$))+|(?<![ \t│┃|])[ \t│┃|]+$",
    re.MULTILINE,
)
# A line that begins so is not the rest of the one before it.
_BEGINS = re.compile(
    r"(?:file \"|traceback|error:|warning:|info\b|debug\b|\[|\(|>>>|\$ |\d{2}:\d{2}|[-+*#=~^]{2}|[-+] )"
)


def plain(text: str) -> str:
    """Return a text as the rules search it, with the same number of lines."""
    low = text.lower()
    low = low if low.isascii() else low.translate(_MARKS)
    low = _FRAME.sub("", without_entities(low))
    for translated, english in translations().items():
        low = low.replace(translated, english) if translated in low else low
    for pattern, known in _variants().items():
        low = pattern.sub(known, low)
    return low


def unwrapped(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Join lines that a terminal or an editor has broken; yield each with the index of its first line."""
    index = 0
    while index < len(lines):
        end = index
        while end + 1 < len(lines) and _goes_on(lines, end):
            end += 1
        if end > index:
            whole = [line.strip() for line in lines[index : end + 1]]
            yield index, " ".join(whole)[:LONGEST]
            if _cut_at_a_width([len(line) for line in lines[index:end]]):
                yield index, "".join(lines[index : end + 1])[:LONGEST]
        index = end + 1


def _cut_at_a_width(lengths: list[int]) -> bool:
    """Return whether lines end where a terminal does, within words: several alike, or one of a usual width."""
    return len({*lengths}) == 1 and (len(lengths) > 1 or lengths[0] in TERMINALS)


def may_be_cut(line: str, following: str, length: int) -> bool:
    """Return whether a terminal may have cut a word in two: `line`, of a `length` in the log, ends with the half of it.

    Texts are as `plain` returns them, without the frames and the indentation that count for the width.
    """
    inside = bool(_INSIDE.match(line[-1:]) and _INSIDE.match(following))
    ends = line.endswith("incompatible.")  # how pip ends a line for each package
    return inside and NARROWEST <= length <= WIDEST and not ends and not _BEGINS.match(following)


def _goes_on(lines: list[str], index: int) -> bool:
    """Return whether the next line goes on with this one: its first word had no room here."""
    line, following = lines[index], lines[index + 1].strip()
    if not NARROWEST <= len(line) <= WIDEST or not following or _BEGINS.match(following):
        return False
    around = [len(each) for each in lines[max(0, index - NEAR) : index + NEAR + 1]]
    widest = max(length for length in around if length <= WIDEST)
    return len(line) + 1 + len(following.split(maxsplit=1)[0]) > widest


@cache
def translations() -> dict[str, str]:
    """Return messages of systems in other languages, each with the English that the rules know."""
    return {other: known for known, others in _data()["translated"].items() for other in others}


@cache
def _variants() -> dict[re.Pattern[str], str]:
    return {re.compile(pattern): known for known, patterns in _data()["manners"].items() for pattern in patterns}


@cache
def _data() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(files("assistant.diagnose").joinpath("localized_messages.toml").read_text("utf-8"))

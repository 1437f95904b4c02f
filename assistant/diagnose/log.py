"""A log as lines that can be searched: a short one whole, a long one cut down to the lines that a rule could mean."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate

from assistant.diagnose.installer_output import MARKS as INSTALLERS
from assistant.diagnose.normalize import plain, translations, unwrapped
from assistant.diagnose.prefilter import Prefilter
from assistant.diagnose.prose import prose
from assistant.diagnose.rules import load_rules
from assistant.diagnose.wants import MARKS as LOADERS
from assistant.model.machine import Machine
from assistant.parsers.decode import text_pieces, tidied
from assistant.parsers.mentioned import mentioned

# Chosen: a pasted log has a few kilobytes, and one of some days of training has tens of megabytes.
SHORT = 10**6  # characters up to which a log is kept whole
LONGEST_LINE = 2000
LONGEST_WORD = 500  # characters without a blank of which the ends are kept: an image as text, a dump of memory
LINE_END = 4000  # characters kept of each end of a line
ALL_ENDS = 200_000  # characters kept of all lines that are longer than that
AROUND = 3  # lines kept before and after one that matters
ENDS = 200  # lines kept from the beginning and the end
LONG = 400  # characters of a line above which its neighbours are not kept with it


class Log:
    """Lines with their numbers in the file; `text` is what rules search, with broken lines joined at its end."""

    def __init__(self, lines: Iterable[tuple[int, str]]) -> None:
        self.lines = tuple(lines)
        texts = plain("\n".join(line for _number, line in self.lines)).split("\n")
        whole = list(unwrapped(texts))
        self._origins = [*range(len(texts)), *(index for index, _text in whole)]
        texts.extend(text for _index, text in whole)
        self.text = "\n".join(texts)
        self._starts = list(accumulate((len(text) + 1 for text in texts[:-1]), initial=0))

    @cached_property
    def facts(self) -> Machine:
        """What the log mentions of its machine."""
        return mentioned(self.text)

    @cached_property
    def written(self) -> list[bool]:
        """Whether a person wrote it, for each of the lines."""
        return prose([line for _number, line in self.lines])

    def index_at(self, position: int) -> int:
        """Return the index in `lines` of a position in `text`."""
        return int(self._origins[bisect_right(self._starts, position) - 1])

    def around(self, index: int, count: int = AROUND) -> tuple[tuple[int, str], ...]:
        """Return a line with its neighbours, each with its number."""
        return self.lines[max(0, index - count) : index + count + 1]


def read_log(data: bytes | str) -> Log:
    """Read what a program printed; raise `BadInput` for a binary file."""
    pieces = iter([tidied(data)]) if isinstance(data, str) else text_pieces(data)
    if len(data) <= SHORT:
        return Log(enumerate(_wrapped("".join(pieces)), 1))
    return Log(_thinned(pieces))


def _wrapped(text: str) -> list[str]:
    """Return the lines of a text, the longest cut down to their ends and broken into pieces."""
    lines = text.split("\n")
    if max(map(len, lines)) <= LONGEST_WORD:
        return lines
    lines = _WORD.sub(_ends_of_word, text).split("\n")
    long = sum(len(line) > 2 * LINE_END for line in lines)
    end = min(LINE_END, ALL_ENDS // 2 // max(long, 1))
    return [piece for line in lines for piece in _pieces(line, end)]


_WORD = re.compile(rf"[!-~]{{{LONGEST_WORD + 1},}}")


def _ends_of_word(word: re.Match[str]) -> str:
    return f"{word[0][: LONGEST_WORD // 2]} {word[0][-LONGEST_WORD // 2 :]}"


def _pieces(line: str, end: int) -> Iterator[str]:
    parts = (line,) if len(line) <= 2 * LINE_END else (line[:end], line[-end:])
    for part in parts:
        yield from (part[at : at + LONGEST_LINE] for at in range(0, len(part) or 1, LONGEST_LINE))


def _thinned(pieces: Iterable[str]) -> list[tuple[int, str]]:
    """Return both ends of a log, and the lines around those that hold a rule's literal, each kind of line once."""
    kept: dict[int, str] = {}
    last: list[tuple[int, str]] = []
    prefilter = Prefilter([*translations(), *load_rules().marks, *INSTALLERS, *LOADERS])
    number = 1
    for piece in pieces:
        if piece.isspace():
            number += piece.count("\n")
            continue
        lines = _wrapped(piece)
        near = set(range(min(ENDS, len(lines)))) if number == 1 else set()
        for index in prefilter.lines("\n".join(lines).lower()):
            around = AROUND if len(lines[index]) <= LONG else 0
            near.update(range(max(0, index - around), min(len(lines), index + around + 1)))
        kept.update((number + i, lines[i]) for i in near)
        first = max(0, len(lines) - ENDS)
        last = [*last, *enumerate(lines[first:], number + first)][-ENDS:]
        number += len(lines) - 1
    return sorted({**kept, **dict(last)}.items())

"""Finds the few lines of a huge text that hold one of many short texts, without looking for each in all of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import compress, pairwise

__all__ = ["Spotter"]

MOST_HITS = 200  # lines with the same text that are looked at in one piece
ENOUGH = 60  # lines of different shapes after which a text is no longer looked for
NEAR = 150  # characters before and after a text that make the shape of its line
FIRST = 20_000  # words of a piece that tell of what kind it is
MANY_WORDS = 10_000  # different words among those above which parts of words are no longer looked for
_LETTERS = bytes(
    code + 32 if 65 <= code <= 90 else code if 97 <= code <= 122 or code >= 128 else 32  # noqa: PLR2004 - ASCII
    for code in range(256)
)
_DIGITS = {ord(digit): None for digit in "0123456789"}


class Spotter:
    """Knows the texts to look for, each by its whole words and by the part of a word at its ends."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._parts = {text: _parts(text) for text in sorted(set(texts))}
        self._room = dict.fromkeys(self._parts, ENOUGH)
        self._shapes: set[str] = set()

    def lines(self, low: str) -> set[int]:
        """Give the indexes of lines that hold a text and whose shape, digits aside, was not seen before."""
        found = {text: set(self._fresh(low, text)) for text in self._present(low)}
        for text, indexes in found.items():
            self._room[text] -= len(indexes)
            if self._room[text] <= 0:
                del self._parts[text]
        return set().union(*found.values())

    def _present(self, low: str) -> Iterator[str]:
        """Give the texts that occur, judged first by the piece's different words, which are few in a real log."""
        every = low.encode("utf-8", "replace").translate(_LETTERS).split()
        if len(set(every[:FIRST])) > MANY_WORDS:
            yield from self._paired(low, every)
            return
        words = set(every)
        joined = b"\n".join(words)
        for text, (whole, edge) in self._parts.items():
            if (not edge or edge in joined) and words.issuperset(whole) and text in low:
                yield text

    def _paired(self, low: str, every: list[bytes]) -> Iterator[str]:
        """Do so in text that has nearly every short word: its words must stand beside one another, and be whole."""
        runs = {text: tuple(filter(None, _runs(text))) for text in self._parts}
        words = {one for text in runs.values() for one in text}.intersection(every)
        first = words.intersection(one for text in runs.values() for one in text[:-1])
        pairs = set(compress(pairwise(every), map(first.__contains__, every)))
        for text, wanted in runs.items():
            if words.issuperset(wanted) and pairs.issuperset(pairwise(wanted)) and text in low:
                yield text

    def _fresh(self, low: str, text: str) -> Iterator[int]:
        index = counted = 0
        found = low.find(text)
        for _hit in range(MOST_HITS):
            if found < 0:
                return
            end = low.find("\n", found)
            start = max(found - NEAR, low.rfind("\n", max(0, found - NEAR), found) + 1)
            shape = low[start : min(end, found + NEAR) if end >= 0 else found + NEAR].translate(_DIGITS)
            if shape not in self._shapes:
                self._shapes.add(shape)
                index, counted = index + low.count("\n", counted, found), found
                yield index
            found = low.find(text, end) if end >= 0 else -1


def _parts(text: str) -> tuple[frozenset[bytes], bytes]:
    """Split a text into the words that it holds whole and the longest of its two ends, which may be parts."""
    runs = _runs(text)
    return frozenset(runs[1:-1]) - {b""}, max(runs[0], runs[-1], key=len)


def _runs(text: str) -> list[bytes]:
    return re.split(rb"[^a-z\x80-\xff]+", text.encode())

"""Finds, in one pass (Aho-Corasick), the few lines of a huge log that hold a literal of some rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.util import find_spec

# All chosen; tests/benchmarks/diagnose_speed.py shows what they cost on logs that repeat a line for megabytes.
MOST_LINES = 200  # with the same literal that are looked at in one piece
ENOUGH = 60  # lines of different shapes after which a literal is no longer looked for
NEAR = 150  # bytes before and after a literal that make the shape of its line
FIRST = 1 << 16  # bytes of a piece that show which literals stand in every other line
BRIEF = 4  # letters of a literal that stands in random letters by chance, unless it has to begin a word
ENDING = 3  # letters that a word may have more than a brief literal: fail, failed, failure

DIGITS = b"0123456789"
LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyz")


class Prefilter:
    """Looks for literals in one piece of a log after another, and remembers how many lines of each it has found."""

    def __init__(self, literals: Iterable[str]) -> None:
        self._left = {literal.encode(): ENOUGH for literal in sorted(set(literals))}
        self._shapes: set[bytes] = set()

    def lines(self, low: str) -> set[int]:
        """Return the indexes of the lines that hold a literal in a shape not seen before.

        A line's shape is the text near the literal without its digits, which lines of a progress bar differ in.
        """
        data = low.encode("utf-8", "replace")
        cut = data.find(b"\n", FIRST) + 1
        looked_at: Counter[bytes] = Counter()
        lines = set(self._fresh(data[:cut], looked_at)) if cut else set()
        before = data.count(b"\n", 0, cut)
        lines.update(before + index for index in self._fresh(data[cut:], looked_at))
        return lines

    def _fresh(self, data: bytes, looked_at: Counter[bytes]) -> Iterator[int]:
        """Yield the index of each line that shows a literal in a new shape, literals met too often left out."""
        literals = [text for text, left in self._left.items() if left > 0 and looked_at[text] < MOST_LINES]
        ends = [0] * len(literals)  # of the line in which each literal was last found
        index = counted = 0
        for number, at in _places(literals, data):
            literal = literals[number]
            if at < ends[number] or (len(literal) <= BRIEF and not _begins_a_word(literal, at, data)):
                continue
            end = data.find(b"\n", at)
            ends[number] = end = len(data) if end < 0 else end
            looked_at[literal] += 1
            start = max(at - NEAR, data.rfind(b"\n", max(0, at - NEAR), at) + 1)
            after = data[at + len(literal) : min(end, at + NEAR)]
            # The literal keeps its digits: 0x80070057 and 0x80004005 are two errors.
            shape = b"".join((data[start:at].translate(None, DIGITS), literal, after.translate(None, DIGITS)))
            if shape not in self._shapes:
                self._shapes.add(shape)
                self._left[literal] -= 1
                index, counted = index + data.count(b"\n", counted, at), max(at, counted)
                yield index
            if self._left[literal] <= 0 or looked_at[literal] >= MOST_LINES:
                ends[number] = len(data)


def _begins_a_word(literal: bytes, at: int, data: bytes) -> bool:
    """Return whether a literal stands at the beginning of a word, with at most a short ending behind it."""
    if literal[0] in LETTERS and at and data[at - 1] in LETTERS:
        return False
    rest = data[at + len(literal) : at + len(literal) + ENDING + 1]
    return literal[-1] not in LETTERS or len(rest) <= ENDING or not LETTERS.issuperset(rest)


def _places(literals: list[bytes], data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the number of a literal and where it stands, line by line."""
    if find_spec("ahocorasick_rs"):  # the core goes without, and it has no wheel for Windows on Arm or musl
        from ahocorasick_rs import BytesAhoCorasick  # noqa: PLC0415 - only a long log needs it

        # In the order of their ends; as no literal spans lines, the lines come in order too.
        found = BytesAhoCorasick(literals).find_matches_as_indexes(data, overlapping=True)
        yield from ((number, at) for number, at, _end in found)
        return
    places = []
    for number, literal in enumerate(literals):
        at = data.find(literal)
        for _line in range(MOST_LINES):
            if at < 0:
                break
            places.append((at, number))
            end = data.find(b"\n", at)
            at = data.find(literal, end) if end >= 0 else -1
    yield from ((number, at) for at, number in sorted(places))

"""Where a line that is wider than the terminal goes on below: at blanks, and a long path behind its separators."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence

# What stands in front of a line, below which the rest of it is lined up: "    · ", "  2. ", "✓ ", "  →      2 │ ".
_SIGN = re.compile(r"\s*(?:(?:→ +)?\d+ │ |[✓✗·!?≠→+-] +|\d+\. )?")
# The pieces that a word may be taken apart into: behind a separator of paths and addresses, and after each character
# that is two columns wide, but for marks that no line begins with.
_PIECE = re.compile(
    r"[^/\\=,;\u1100-\uffff]*[/\\=,;]+|[\u1100-\uffff][、。，；：！？）」』》”’]*|[^/\\=,;\u1100-\uffff]+"
)
LEAST = 20  # chosen: columns; in a narrower terminal nothing is lined up
SHORT = 12  # chosen: columns of a cell that stays in one line, such as "2.41 s" or "20.1 GB"


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else not unicodedata.combining(sign) for sign in text)


def pieces(text: str, width: int) -> list[tuple[int, int]]:
    """Return the places in a line, from and to, that fit into `width` columns each; all but the first are indented.

    A word moves to the next line whole where it fits there; what is longer is broken at its separators. A piece without
    any stays as long as it is, and so does an address, which is to be pressed or copied.
    """
    hang = indent(text, width)
    found, start, end, room = [], 0, 0, width
    for word in re.finditer(r"\s*\S+", text):
        whole = columns(word[0])
        used = columns(text[start:end])
        if used + whole <= room:
            end = word.end()
            continue
        fits = whole - _blanks(word[0]) <= width - hang or "://" in word[0]
        parts = [word[0]] if fits else list(_parts(word[0]))
        for part in parts:
            if end > start and columns(text[start : end + len(part)]) > room:
                found.append((start, end))
                start, room = end + _blanks(text[end:]), width - hang
            end += len(part)
    return [*found, (start, end)] if end > start or not found else found


def indent(text: str, width: int) -> int:
    """Return the columns by which the further lines of a text are set in."""
    sign = _SIGN.match(text)
    return columns(sign[0]) if sign and width - columns(sign[0]) >= LEAST else 0


def folded(text: str, width: int) -> Iterator[str]:
    """Yield the lines that each line of a text becomes in a terminal of so many columns."""
    for line in text.split("\n"):
        for number, (start, end) in enumerate(pieces(line, width)):
            yield " " * (indent(line, width) if number else 0) + line[start:end]


def folded_command(command: str, width: int, margin: int) -> Iterator[str]:
    """Yield the lines of a command that is to be copied: each but the last ends as the shell wants it.

    Windows has two shells that differ in this; there a command stays one line.
    """
    if os.name == "nt":
        yield command
        return
    words = re.findall(r"""(?:[^\s'"]|'[^']*'|"[^"]*"|['"])+""", command)
    line = ""
    for word in words:
        longer = f"{line} {word}" if line else word
        if line and columns(longer) > width - margin - 2:
            yield f"{line} \\"
            longer = f"  {word}"
        line = longer
    yield line


def layout(rows: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return the widths of a table's columns that break no word, where `width` columns are there for all of them.

    None where they would not do: the rows are better read one below the other.
    """
    table = list(zip(*rows, strict=True))
    wanted = [max(map(columns, cells)) for cells in table]
    least = [max(columns(part) for cell in cells for part in _unbroken(cell)) for cells in table]
    spare, wish = width - sum(least), sum(wanted) - sum(least)
    if spare < 0:
        return None
    share = min(1.0, spare / wish) if wish else 0.0
    return [low + int(share * (most - low)) for low, most in zip(least, wanted, strict=True)]


def _unbroken(cell: str) -> Iterator[str]:
    if columns(cell) <= SHORT:
        yield cell
        return
    for word in cell.split():
        yield from [word] if columns(word) <= LEAST and word.isascii() else _parts(word)


def _blanks(text: str) -> int:
    return len(text) - len(text.lstrip())


def _parts(word: str) -> Iterator[str]:
    blanks = _blanks(word)
    first = True
    for part in _PIECE.findall(word[blanks:]):
        yield word[:blanks] + part if first else part
        first = False

"""Judges patterns by their grammar: whether one could go on for long, and whether each match holds certain texts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from re import _constants, _parser  # type: ignore[attr-defined]  # the tree that `re` itself compiles
from typing import Any

FARTHEST = 1000  # chosen: repeats, those inside others multiplied
_REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}
_INNER = {*_REPEATS, _constants.SUBPATTERN, _constants.ASSERT, _constants.ASSERT_NOT}


def endless(pattern: re.Pattern[str]) -> bool:
    """Return whether a repeat, with those inside it, goes on for more than a thousand times."""
    return _endless(_parser.parse(pattern.pattern))


def _endless(tree: Any) -> bool:
    for most, repeated in _repeats(tree):
        inner = [count for count, _repeated in _repeats(repeated)]
        if _constants.MAXREPEAT in {most, *inner} or most * max(inner, default=1) > FARTHEST:
            return True
    return False


def _repeats(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Walk all repeats of a tree, each with what it repeats."""
    for kind, value in tree:
        if kind in _REPEATS:
            yield value[1], value[2]
        parts = value[1] if kind is _constants.BRANCH else value[-1:] if kind in _INNER else ()
        for part in parts:
            yield from _repeats(part)


def missed(pattern: re.Pattern[str], held: Collection[str]) -> bool:
    """Return whether a pattern can match a text that holds none of these."""
    return _missed(_parser.parse(pattern.pattern), held)


def _missed(tree: Any, held: Collection[str], run: str = "") -> bool:
    """Return whether a tree can match a text that holds none of these; `run` stands before it."""
    for kind, value in [*tree, (None, None)]:
        if kind is _constants.LITERAL:
            run += chr(value)
            continue
        if any(text in run for text in held):
            return False
        if kind is _constants.SUBPATTERN and not _missed(value[-1], held, run):
            return False
        if kind is _constants.BRANCH and not any(_missed(branch, held, run) for branch in value[1]):
            return False
        run = ""
        if kind in _REPEATS and value[0] > 0 and not _missed(value[2], held):
            return False
    return True

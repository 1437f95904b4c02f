"""What a pattern must find literally: it spares the regular expression most lines, and bounds its cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from re import _constants, _parser  # type: ignore[attr-defined]  # there is no public tree of a pattern
from typing import Any

__all__ = ["checked", "needles"]

SHORTEST = 3
FARTHEST = 1000
_REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}

Needles = frozenset[str]


def checked(pattern: str, where: str) -> str:
    """Refuse a pattern with capitals, with an open-ended `.*` or group, or without a literal to look for."""
    if re.search(r"(?<!\\)[A-Z]", pattern):
        raise ValueError(f"{where}: {pattern!r} has capitals, but logs are searched in lower case")
    if any(_runs_away(node) for node in _nodes(_parser.parse(pattern))):
        raise ValueError(f"{where}: {pattern!r} can run away; bound it, as in .{{0,80}}")
    shortest = min(map(len, needles(pattern)), default=0)
    if shortest < (SHORTEST if pattern.isascii() else 2):
        raise ValueError(f"{where}: {pattern!r} holds no literal text to look for")
    return pattern


def needles(pattern: str) -> Needles:
    """Give texts of which every match of a pattern holds at least one: one, or one for each alternative."""
    return _needles(_parser.parse(pattern))


def _needles(tree: Iterable[Any]) -> Needles:
    """Choose, among the runs of letters and the groups that must be there, the one whose shortest text is longest."""
    candidates, run = [], ""
    for kind, value in [*tree, (None, None)]:
        if kind is _constants.LITERAL:
            run += chr(value)
            continue
        candidates.append(frozenset({run}))
        candidates.append(_group(kind, value))
        run = ""
    return max(candidates, key=lambda texts: min(map(len, texts), default=0))


def _group(kind: Any, value: Any) -> Needles:  # noqa: ANN401 - nodes of the parser's tree have no types
    if kind is _constants.SUBPATTERN:
        return _needles(value[-1])
    if kind is _constants.BRANCH:
        return frozenset().union(*map(_needles, value[1]))
    if kind in _REPEATS and value[0] > 0:
        return _needles(value[2])
    return frozenset()


def _nodes(tree: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401
    """Walk all repeats of a tree, each with what it repeats."""
    for kind, value in tree:
        if kind in _REPEATS:
            yield value[1], value[2]
            yield from _nodes(value[2])
        elif kind is _constants.SUBPATTERN:
            yield from _nodes(value[-1])
        elif kind is _constants.BRANCH:
            for branch in value[1]:
                yield from _nodes(branch)
        elif kind in {_constants.ASSERT, _constants.ASSERT_NOT}:
            yield from _nodes(value[1])


def _runs_away(repeat: tuple[Any, Any]) -> bool:
    most, repeated = repeat
    inner = [count for count, _repeated in _nodes(repeated)]
    if _constants.MAXREPEAT in {most, *inner}:
        return True
    return bool(most * max(inner, default=1) > FARTHEST)

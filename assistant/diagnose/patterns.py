"""The patterns of rules: regular expressions, and the plain text that every match holds, which is looked for first."""

from __future__ import annotations

import re
from functools import cache

# The parts of a pattern: `\.` (a character), `\d` or `[a-z]`, `(` `)` `|`, `?` `*` `{0,3}`, `+` `{2}` `.` `^`, `x`.
_PARTS = re.compile(
    r"\\([^A-Za-z0-9])|\\.|\[(?:\\.|[^\]\\]){1,200}\]|([()|])|([?*]|\{0(?:,\d*)?\})\??|[+^$.]\??|\{\d+(?:,\d*)?\}\??|(.)",
    re.DOTALL,
)
_MARKED = re.compile("«([^»]{1,200})»")


@cache
def literals(pattern: str) -> frozenset[str]:
    """Return texts of which every match holds at least one: those marked with «…», else one for each alternative.

    Unmarked, it is the longest run of plain characters that stands outside all brackets; "" where there is none.
    """
    if marked := _MARKED.findall(pattern):
        return frozenset(re.sub(r"\\(.)", r"\1", text) for text in marked)
    alternatives, depth = [[""]], 0
    for escaped, bracket, optional, plain in _PARTS.findall(pattern):
        depth += {"(": 1, ")": -1}.get(bracket, 0)
        runs = alternatives[-1]
        if bracket == "|" and depth == 0:
            alternatives.append([""])
        elif depth == 0 and (escaped or plain):
            runs[-1] += escaped or plain
        else:
            runs[-1] = runs[-1][:-1] if optional else runs[-1]
            runs.append("")
    return frozenset(max(runs, key=len) for runs in alternatives)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return the regular expression; texts are searched with plain quotes, so « and » can only be marks."""
    return re.compile(pattern.replace("«", "").replace("»", ""))

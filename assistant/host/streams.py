"""The one place that sets what the two programs print to and read from: no sentence ends them.

The encoding stays the one that Python has chosen. Into a pipe or a file that is the locale's, on Windows the ANSI code
page (https://docs.python.org/3/library/sys.html#sys.stdout), and whoever reads there expects it.
"""

from __future__ import annotations

import codecs
import io
import sys

# What is drawn in place of a sign that an encoding lacks; a letter that it lacks becomes a question mark.
PLAIN = {
    "→": "->",
    "←": "<-",
    "✓": "OK",
    "✗": "x",
    "✅": "OK",
    "⚠": "!",
    "·": "-",
    "•": "-",
    "…": "...",
    "–": "-",
    "—": "--",
    "−": "-",
    "‐": "-",
    "‑": "-",
    "“": '"',
    "”": '"',
    "„": '"',
    "‘": "'",
    "’": "'",
    "«": '"',
    "»": '"',
    "×": "x",
    "≠": "!=",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "±": "+-",
    "²": "2",
    "³": "3",
    "µ": "u",
    "μ": "u",
    "®": "(R)",
    "™": "(TM)",
    "│": "|",
    "┃": "|",
    "─": "-",
    "━": "-",
    "\N{NO-BREAK SPACE}": " ",
    "\N{NARROW NO-BREAK SPACE}": " ",
}


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Return what stands for the characters that an encoding lacks, as `codecs.register_error` wants it."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


codecs.register_error("plain", _plain)


def settle_streams() -> None:
    """Let nothing that is printed or typed end this program: where a stream lacks a sign, a plain one takes its place.

    A stream that is none of Python's own, such as a notebook's, stays as it is.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")

"""Remove characters that control a terminal, change the reading direction or are invisible from shown text.

A name or a log from somebody else is only ever text. Two that join letters and pictures stay (U+200C and U+200D):
Persian, Indic scripts and emoji are spelled with them, and they neither move nor hide what stands beside them.
"""

from __future__ import annotations

import json
import re

# Unicode's Cc, Cs, Zl and Zp, and those of Cf that show nothing (Unicode's TR 36; CVE-2021-42574).
# The Arabic, Kaithi, Egyptian and musical signs of Cf are drawn; tags (U+E0000 to U+E007F) hide whole sentences.
_HIDDEN = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
_STEERING = re.compile(rf"(?:[{_HIDDEN}]|\r(?!\n))+")  # \r alone goes back to the beginning of the line
_BREAKING = re.compile(rf"[\t\n\r{_HIDDEN}]+")
_ONE = re.compile(f"[{_HIDDEN}]")
SHORT = 300  # characters; chosen: some lines of a terminal, and longer than any name of a GPU, a file or a package


def visible(text: str) -> str:
    """Replace each run of control and invisible characters, but not line breaks and tabs, by U+FFFD."""
    return _STEERING.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Return a text as one line: each run of line breaks, tabs and hidden characters becomes a space."""
    return _BREAKING.sub(" ", text).strip()


def printable(text: object) -> str:
    """Return an external text as one line of at most 300 characters, for use in a sentence or a table."""
    return one_line(str(text))[:SHORT]


def cell(value: object) -> object:
    """Return a value for a spreadsheet's cell; a text that it would take for a formula gets a leading `'`."""
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"} else value


def escape_hidden(text: str, *, long: bool = False) -> str:
    r"""Escape the hidden characters in JSON, or with `long` in TOML: the data stay the same, and can be seen.

    TOML writes what lies beyond U+FFFF as \U and eight digits. It has no escape for a lone surrogate, which becomes
    U+FFFD.
    """
    return _ONE.sub(lambda found: _escape_in_toml(found[0]) if long else json.dumps(found[0])[1:-1], text)


def _escape_in_toml(sign: str) -> str:
    if "\ud800" <= sign <= "\udfff":
        return "\ufffd"
    return f"\\U{ord(sign):08x}" if ord(sign) > 0xFFFF else f"\\u{ord(sign):04x}"  # noqa: PLR2004 - the last of \u

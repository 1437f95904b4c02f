"""Make text harmless where it is shown: on a terminal and in HTML, which is written and escaped here alone.

Characters that control a terminal, change the reading direction or are invisible are removed.

A name or a log from somebody else is only ever text. Two that join letters and pictures stay (U+200C and U+200D):
Persian, Indic scripts and emoji are spelled with them, and they neither move nor hide what stands beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from assistant.i18n import language

# Unicode's Cc, Cs, Zl and Zp, and those of Cf that show nothing (Unicode's TR 36; CVE-2021-42574).
# The Arabic, Kaithi, Egyptian and musical signs of Cf are drawn; tags (U+E0000 to U+E007F) hide whole sentences.
_HIDDEN = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
_STEERING = rf"(?:[{_HIDDEN}]|\r(?!\n))+"  # \r alone goes back to the beginning of the line
_BREAKING = rf"[\t\n\r{_HIDDEN}]+"
_ONE = f"[{_HIDDEN}]"
_COLOURS = r"\x1b\[[0-9;?]{0,40}[ -/]?[@-~]|\x1b\][^\x07\x1b\n]{0,300}(?:\x07|\x1b\\)|\x1b[@-_]?"
SHORT = 300  # characters; chosen: some lines of a terminal, and longer than any name of a GPU, a file or a package


def visible(text: str) -> str:
    """Replace each run of control and invisible characters, but not line breaks and tabs, by U+FFFD."""
    return re.sub(_STEERING, "\ufffd", text)


def remove_colours(text: str) -> str:
    """Return a text without a terminal's escape sequences for colours, titles and cursor moves."""
    return re.sub(_COLOURS, "", text) if "\x1b" in text else text


def one_line(text: str) -> str:
    """Return a text as one line: each run of line breaks, tabs and hidden characters becomes a space."""
    return re.sub(_BREAKING, " ", text).strip()


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
    escape = _escape_in_toml if long else escape_in_json
    return re.sub(_ONE, lambda found: escape(found[0]), text)


def escape_in_json(text: str) -> str:
    r"""Write each character of a text as JSON does in ASCII: as \u and four digits, or twice that beyond U+FFFF."""
    return re.sub(r"....", r"\\u\g<0>", text.encode("utf-16-be", "surrogatepass").hex())


def _escape_in_toml(sign: str) -> str:
    if "\ud800" <= sign <= "\udfff":
        return "\ufffd"
    return f"\\U{ord(sign):08x}" if ord(sign) > 0xFFFF else f"\\u{ord(sign):04x}"  # noqa: PLR2004 - the last of \u


_NO_XML = dict.fromkeys((0xFFFE, 0xFFFF))  # no XML 1.0 may hold them (production Char), and they show nothing


class Markup(str):
    """SVG or HTML that was written here; any other text is escaped when it is put beside or between such."""

    __slots__ = ()

    def __add__(self, other: object) -> Markup:
        return Markup(super().__add__(plain(other)))


def plain(value: object) -> Markup:
    """Return a value as text that is harmless in SVG and HTML: no tags, nothing hidden; `Markup` is returned unchanged.

    A float is rounded to a tenth, as for pixels, and a message is written in the language in force.
    """
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        return Markup(f"{value:.1f}".removesuffix(".0"))
    from html import escape  # noqa: PLC0415 - its table of entities, which only pages need

    return Markup(escape(visible(str(value)).translate(_NO_XML)))


def joined(parts: Iterable[object]) -> Markup:
    """Return parts concatenated, those that are no `Markup` escaped."""
    return Markup("".join(map(plain, parts)))


def tag(name: str, /, *content: object, **attributes: object) -> Markup:
    """Return an element around its content, all but `Markup` of it escaped; without any content, "<name/>".

    HTML takes that for a start tag: there an empty element needs "" as its content. `stroke_width=2` becomes the
    attribute stroke-width, and `class_` class; an attribute that is None is left out.
    """
    given = {
        key: value if isinstance(value, float) else str(value) for key, value in attributes.items() if value is not None
    }
    named = "".join(f' {key.rstrip("_").replace("_", "-")}="{plain(value)}"' for key, value in given.items())
    return Markup(f"<{name}{named}>{joined(content)}</{name}>" if content else f"<{name}{named}/>")


def style(sheet: str) -> Markup:
    """Return an element with a style sheet of ours, as it is: inside of `style` nothing is escaped."""
    return Markup(f"<style>{sheet}</style>")


def html_language() -> str:
    """Return the language in force as HTML names it: zh-CN, where gettext says zh_CN."""
    return language().replace("_", "-")

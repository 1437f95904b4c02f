"""Writes SVG: shapes and text at positions in pixels, in the colours of the page around the picture."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from html import escape

from assistant.model.visible import visible

# Where no page around it sets a colour, a grey that reads on white and on black: contrast 4.4 and 4.7 to 1.
GREY = "#787878"
_NO_XML = dict.fromkeys((0xFFFE, 0xFFFF))  # no XML 1.0 may hold them (production Char), and they show nothing


def plain(value: object) -> str:
    """Escape a value for SVG and HTML, without hidden characters; numbers are written to a tenth of a pixel."""
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return escape(visible(str(value)).translate(_NO_XML))


def tag(name: str, *content: str, **attributes: object) -> str:
    """Write an element around `content`, which is SVG already; `stroke_width` becomes stroke-width, `class_` class."""
    named = "".join(f' {key.rstrip("_").replace("_", "-")}="{plain(value)}"' for key, value in attributes.items())
    return f"<{name}{named}>{''.join(content)}</{name}>" if content else f"<{name}{named}/>"


def text(x: float | str, y: float, words: object, **attributes: object) -> str:
    """Write words from `x` on the baseline `y` (`text_anchor` may shift them); "" for no words."""
    return tag("text", plain(words), x=x, y=y, **attributes) if words else ""


def document(width: float, height: float, parts: Iterable[str], title: str, description: str) -> str:
    """Write a whole picture on the page's own background, with title and description for screen readers."""
    return tag(
        "svg",
        tag("title", plain(title)),
        tag("desc", plain(description)),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=width,
        height=height,
        role="img",
        aria_label=title,
        font_family="system-ui, sans-serif",
        font_size=12,
        fill="currentColor",
        color=GREY,  # for viewers of files that do not know variables
        style=f"color: var(--ptsa-text, {GREY})",
    )


def width_of(words: str, size: float = 12) -> float:
    """Estimate the width of words in pixels, rather too wide: the reader's font is not known."""
    return size * sum(1.0 if unicodedata.east_asian_width(sign) in "WF" else 0.6 for sign in words)

"""Writes markup: elements and pages of HTML, and SVG.

This is the one place where text is escaped: an element escapes all that is put into it, unless it was written here.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from assistant.i18n import language
from assistant.model.visible import visible

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


def web_page(title: str, policy: str, sheet: str, body: Markup, class_: str | None = None) -> Markup:
    """Return a whole page of HTML, of which a browser loads and runs only what the policy allows.

    `sheet` is its style sheet, `class_` the class of its body's `main`.
    """
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("title", title),
        style(sheet),
    )
    page = tag("html", head, tag("body", tag("main", tag("h1", title), body, class_=class_)), lang=html_language())
    return Markup(f"<!doctype html>\n{page}\n")


def html_language() -> str:
    """Return the language in force as HTML names it: zh-CN, where gettext says zh_CN."""
    return language().replace("_", "-")

"""A report on many machines as one page: both languages, sorted by a click, to be printed; it loads nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from assistant.export import MARKER
from assistant.fleet.rows import Standing
from assistant.fleet.summary import Fleet
from assistant.fleet.tables import Cell, Table, lines_of, standings, tables_of, title_of
from assistant.i18n import LANGUAGES, Message, _, in_language, language, render
from assistant.markup import Markup, joined, plain, tag

_FOLDER = Path(__file__).parent
_SIGNS = {
    Standing.BROKEN: "✗",
    Standing.UNREAD: "?",
    Standing.BETTER: "!",
    Standing.BARE: "–",
    Standing.UNCHECKED: "?",
    Standing.WORKS: "✓",
}


def page_of(fleet: Fleet) -> str:
    """Write the page; it opens in the language in force, and buttons show the others."""
    script = (_FOLDER / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("title", title_of(fleet)),
        tag("style", Markup((_FOLDER / "page.css").read_text(encoding="utf-8"))),
    )
    body = tag("body", tag("main", *_content(fleet)), tag("script", Markup(script)))
    return f"<!doctype html>\n<!-- {MARKER} -->\n{tag('html', head, body, lang=_tag(language()))}\n"


def table_of(table: Table) -> Markup:
    """Write one table in the language in force, for a notebook's cell."""
    return _table(table, [_said(table)], sorts=False)


def _tag(code: str) -> str:
    """Return a language as HTML names it."""
    return code.replace("_", "-")


class _Said(NamedTuple):
    """A table in one language; a cell is its lines."""

    title: str
    lead: str
    headings: tuple[str, ...]
    rows: list[tuple[tuple[str, ...], ...]]


def _content(fleet: Fleet) -> list[Markup]:
    tables = tables_of(fleet)
    said: list[list[_Said]] = []
    for code in LANGUAGES:
        with in_language(code):  # once for all: to change the language for each cell would take most of the time
            said.append([_said(table) for table in tables])
    buttons = [tag("button", name, type="button", lang=_tag(code)) for code, name in LANGUAGES.items()]
    made = _("Made {when} UTC by the setup assistant for PyTorch.", when=f"{fleet.when:%Y-%m-%d %H:%M}")
    tiles = [
        tag("li", tag("strong", count), " ", _word(standing), class_=standing.value)
        for standing, count in standings(fleet)
    ]
    return [
        tag("nav", *buttons),
        tag("h1", _in_each(title_of(fleet))),
        tag("p", _in_each(made)),
        tag("ul", *tiles),
        *(_table(table, each) for table, each in zip(tables, zip(*said, strict=True), strict=True)),
    ]


def _word(standing: Standing) -> Markup:
    return _sign(standing) + " " + _in_each(standing.word)


def _sign(standing: Standing) -> Markup:
    return tag("span", _SIGNS[standing], aria_hidden="true")


def _said(table: Table) -> _Said:
    """Render a table in the language in force."""
    rows = [tuple(lines_of(cell) for cell in row) for row in table.rows]
    return _Said(render(table.title), render(table.lead), tuple(map(render, table.headings)), rows)


def _in_each(text: Message) -> Markup:
    """Write a sentence in every language."""
    said = []
    for code in LANGUAGES:
        with in_language(code):
            said.append(render(text))
    return _both(said)


def _both(words: Sequence[str]) -> Markup:
    """Write what each language says once where it is the same; the page's style shows the language that is chosen."""
    if len({*words}) == 1:
        return plain(words[0])
    pairs = zip(LANGUAGES, words, strict=True)
    return joined(tag("span", text, lang=_tag(code)) for code, text in pairs)


def _table(table: Table, said: Sequence[_Said], *, sorts: bool = True) -> Markup:
    words = [_both(each) for each in zip(*(each.headings for each in said), strict=True)]
    headings = [tag("th", tag("button", one, type="button") if sorts else one, scope="col") for one in words]
    lines = zip(table.rows, *(each.rows for each in said), strict=True)
    rows = [tag("tr", *map(_cell, row, *in_each)) for row, *in_each in lines]
    return tag(
        "section",
        tag("h2", _both([each.title for each in said])),
        tag("p", _both([each.lead for each in said])),
        _search() if sorts and table.key == "machines" else "",
        tag("table", tag("thead", tag("tr", *headings)), tag("tbody", "", *rows)),
        id=table.key,
    )


def _search() -> Markup:
    field = tag("input", type="search", autocomplete="off")
    return tag("label", _in_each(_("Only rows with these words:")), " ", field)


def _cell(cell: Cell, *in_each: tuple[str, ...]) -> Markup:
    """Write a cell, which is given once more for each language as its lines."""
    if isinstance(cell, Standing):
        order = list(Standing).index(cell)
        return tag("td", _sign(cell) + " " + _both([line for (line,) in in_each]), class_=cell.value, data_sort=order)
    lines = [_both(words) for words in zip(*in_each, strict=True)]
    if len(lines) < 2:  # noqa: PLR2004 - one needs no list
        return tag("td", joined(lines))
    return tag("td", *(tag("div", line) for line in lines))

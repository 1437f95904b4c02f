"""The pieces that the wizard's HTML is built of; `markup.tag` writes and escapes all of them."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from assistant.i18n import Text, as_typed, say
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.visible import Markup, joined, tag
from assistant.views import remedy_blocks

# Drawn on a square of 16 by 16; they take the colour of the text beside them.
ICONS = {
    "ok": "M3 8.5 6.5 12 13 4.5",
    "info": "M8 7v4.5M8 4.2v.3M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z",
    "warning": "M8 1.8 15 14H1zM8 6.3v3.5M8 11.6v.3",
    "error": "M4 4l8 8M12 4l-8 8",
    "stale": "M13 8a5 5 0 1 1-1.6-3.7L13 6M13 2.2V6H9.2",
    "running": "M4 1.8h8M4 14.2h8M5 1.8c0 5.5 6 6.9 6 12.4M11 1.8c0 5.5-6 6.9-6 12.4",
    "waiting": "M8 3.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9z",
    "next": "M2.5 8h11M9 3.5 13.5 8 9 12.5",
    "file": "M8 2v8M4.5 6.8 8 10.3l3.5-3.5M2.5 13.5h11",
    "no": "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM3.5 3.5l9 9",
    "unknown": "M5.5 6a2.5 2.5 0 1 1 3.6 2.2C8.3 8.7 8 9.2 8 10M8 12.6v.3",
    "chip": "M4 4h8v8H4zM6 1.5V4M10 1.5V4M6 12v2.5M10 12v2.5M1.5 6H4M1.5 10H4M12 6h2.5M12 10h2.5M6.5 6.5h3v3h-3z",
    "learn": "M8 3 1.5 6 8 9l6.5-3zM4 7.3v3.4c2.2 1.8 5.8 1.8 8 0V7.3M14.5 6v4",
    "picture": "M2 3h12v10H2zM2 11l3.5-3.5 2.5 2.5 2-2 4 4M10.5 5.5v.4",
    "talk": "M2 3h12v8H7.5L4.5 13.5V11H2zM5 6h6M5 8.3h4",
    "sound": "M6.2 2.5h3.6v6H6.2zM3.7 7.5c0 5 8.6 5 8.6 0M8 11.3v3M5.5 14.3h5",
    "eye": "M1.5 8C4.5 3 11.5 3 14.5 8 11.5 13 4.5 13 1.5 8zM8 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4z",
    "tools": "M3 13l6-6M9.5 3a3 3 0 0 0 3.5 3.5L9 10 6 7zM12 12l1.5 1.5",
    "terminal": "M2 3h12v10H2zM4.5 6l2 2-2 2M8.5 10.5h3",
    "code": "M5.5 4.5 2 8l3.5 3.5M10.5 4.5 14 8l-3.5 3.5",
    "lock": "M4 7.5h8v6H4zM5.8 7.5V5a2.2 2.2 0 0 1 4.4 0v2.5M8 9.8v1.6",
    "folder": "M2 4h4.5L8 5.5h6V13H2z",
    "person": "M8 2.5a2.7 2.7 0 1 0 0 5.4 2.7 2.7 0 0 0 0-5.4M3 14c0-6 10-6 10 0",
    "box": "M8 1.8 14 5v6.3L8 14.3l-6-3V5zM2 5l6 3 6-3M8 8v6.3",
}
NOTHING = Markup()


@cache
def icon(name: str, words: Text = "") -> Markup:
    """Return a sign of `ICONS` as SVG; `words` are read out for it; without any, screen readers skip it."""
    named = {"role": "img", "aria_label": words} if words else {"aria_hidden": "true"}
    return tag(
        "svg",
        tag("path", d=ICONS[name]),
        class_=f"ptsa-icon ptsa-icon-{name}",
        viewBox="0 0 16 16",
        width=16,  # said here too: without it, a page whose style has not come yet would show it as wide as itself
        height=16,
        fill="none",
        stroke="currentColor",
        **named,
    )


def heading(text: Text, lead: str = "") -> Markup:
    """Return a step's heading, which takes the focus when the step is entered, and a sentence below."""
    return tag("h2", text, class_="ptsa-heading", tabindex=-1) + (lead_line(lead) if lead else "")


def lead_line(text: Text) -> Markup:
    """Return a sentence in the quiet style of explanations."""
    return tag("p", text, class_="ptsa-lead")


def section(title: Text, body: Markup) -> Markup:
    """Return a part of a panel under its own heading; nothing for no body."""
    return tag("section", tag("h3", title), body, class_="ptsa-section") if body else NOTHING


def table(rows: Iterable[tuple[Text, ...]], headings: tuple[Text, ...] = ()) -> Markup:
    """Return a table; without headings, each row is headed by its first cell."""
    head = [tag("th", text, scope="col") for text in headings]
    body = [
        tag("tr", tag("td", first) if headings else tag("th", first, scope="row"), *(tag("td", cell) for cell in rest))
        for first, *rest in rows
    ]
    whole = tag("table", tag("thead", tag("tr", *head)) if head else "", tag("tbody", "", *body), class_="ptsa-table")
    return tag("div", whole, class_="ptsa-scroll", tabindex=0) if head else whole


def note(severity: Severity, text: Text, more: Markup = NOTHING) -> Markup:
    """Return a sentence, and `more` below it, in a frame; word, sign and border tell its severity."""
    words = {
        Severity.OK: say("Good"),
        Severity.INFO: say("Note"),
        Severity.WARNING: say("Warning"),
        Severity.ERROR: say("Problem"),
    }
    title = icon(severity.value) + tag("strong", words[severity])
    return tag("div", title, tag("span", as_typed(text)), more, class_=f"ptsa-note ptsa-note-{severity.value}")


def finding(value: Finding) -> Markup:
    """Return a finding with its remedies."""
    return note(value.severity, value.text, remedies(value.remedies))


def failure(message: Text, hint: Text, severity: Severity = Severity.ERROR) -> Markup:
    """Return what failed, with the next step below it."""
    return note(severity, message, bullets([as_typed(hint)] if hint else ()))


def remedies(found: Iterable[Remedy]) -> Markup:
    """Return a sentence for each remedy and below it a block for what to set, to type and to change.

    A plan and a check are left out: they are what the wizard's own buttons do.
    """
    parts: list[Markup] = []
    for remedy in found:
        parts.append(tag("p", _signed("next", as_typed(remedy.text)), class_="ptsa-way"))
        for kind, lead, lines in remedy_blocks(remedy):
            if kind not in {"plan", "check"}:
                parts += [paragraph(lead), code("\n".join(map(as_typed, lines)))]
    return joined(parts)


def paragraph(text: Text, sign: str = "") -> Markup:
    """Return a sentence, with the sign named before it, if any; nothing for no text."""
    return tag("p", _signed(sign, text)) if text else NOTHING


def download(name: str, content: bytes) -> Markup:
    """Return a link that holds the content of a file, so that no server need reach it."""
    data = base64.b64encode(content).decode()
    words = say("Download {name}", name=name)
    return icon("file") + tag("a", words, download=name, href=f"data:application/octet-stream;base64,{data}")


def fetch(name: str, key: str) -> Markup:
    """Return a link that asks the wizard for a file's content only when it is pressed."""
    return icon("file") + tag("a", say("Download {name}", name=name), href="#", data_file=key)


def peek(summary: str, key: str) -> Markup:
    """Return a fold for a file's text under a sentence; the wizard is asked for it only when that is opened."""
    return later(summary, key, tag("pre", "", class_="ptsa-code", tabindex=0))


def later(summary: str, key: str, place: Markup | None = None) -> Markup:
    """Return a fold for what is long and seldom read: the wizard is asked for `key` when it is opened."""
    return tag("details", tag("summary", summary), place or tag("div", ""), data_file=key)


def code(text: str) -> Markup:
    """Return text as typed."""
    return tag("pre", text, class_="ptsa-code")


def copyable(text: str) -> Markup:
    """Return text as typed, with a button that copies it."""
    return tag("div", code(text), copy_button(text, say("Copy")), class_="ptsa-copyable")


def copy_button(text: str, words: str) -> Markup:
    """Return a button that puts a text on the clipboard, as the wizard's head sees to."""
    return tag("button", words, type="button", class_="jupyter-button widget-button ptsa-copy", data_copy=text)


class Tile(NamedTuple):
    """A card to choose or to press: its key, title and lead, a sign of `ICONS`, and how well it fits this machine.

    `light` is "good", "warning", "bad" or "" for nothing to say, and `fits` says that in words. One that is `off`
    cannot be chosen. `copy` is a text that a press puts on the clipboard.
    """

    key: str
    title: Text
    lead: Text = ""
    sign: str = ""
    light: str = ""
    fits: Text = ""
    off: bool = False
    copy: str | None = None


def tiles(legend: Text, options: Iterable[Tile], chosen: str, kind: str = "radio", class_: str = "") -> Markup:
    """Return cards of which one is chosen, or several if the kind is "checkbox": `chosen` holds the key or keys.

    A choice arrives at the page's `pressed` by its key, of which the part before ":" names the group.
    """
    cards = [
        tag(
            "label",
            tag(
                "input",
                type=kind,
                name=option.key.partition(":")[0],
                data_press=option.key,
                checked="" if option.key in chosen.split() else None,
                disabled="" if option.off else None,
            ),
            _face(option),
            class_="ptsa-tile ptsa-off" if option.off else "ptsa-tile",
        )
        for option in options
    ]
    row = tag("div", *cards, class_="ptsa-tile-row")
    return tag("fieldset", tag("legend", legend), row, class_=f"ptsa-tiles {class_}".strip()) if cards else NOTHING


def cards(title: Text, options: Iterable[Tile]) -> Markup:
    """Return cards that are buttons, under a title; a press arrives at the page's `pressed` by its key."""
    row = [
        tag("button", _face(one), type="button", class_="ptsa-tile", data_press=one.key, data_copy=one.copy)
        for one in options
    ]
    return section(title, tag("div", *row, class_="ptsa-tile-row")) if row else NOTHING


def _face(tile: Tile) -> Markup:
    """Return what a card shows: sign and title, the lead, and its light."""
    title = tag("span", icon(tile.sign) if tile.sign else "", tile.title, class_="ptsa-tile-title")
    lead = tag("span", tile.lead, class_="ptsa-tile-lead") if tile.lead else ""
    return joined([title, " ", lead, " ", light(tile.light, tile.fits) if tile.light else ""])


def light(value: str, words: Text) -> Markup:
    """Return a dot for "good", "warning", "bad" or "unknown", which differ in sign and colour, and its words."""
    sign = {"good": "ok", "bad": "error"}.get(value, value)
    return tag("span", icon(sign), tag("span", words), class_=f"ptsa-light ptsa-light-{value}")


def bar(share: float, words: Text, of: Text = "", kind: str = "good") -> Markup:
    """Return a share from 0 to 1 as a bar below its words; `of` stands at its end."""
    line = tag("span", tag("span", words), tag("span", of), class_="ptsa-bar-words")
    width = f"width:{100 * min(1.0, share):.0f}%"
    fill = tag("span", "", style=width, class_=f"ptsa-bar-fill ptsa-bar-{kind}")
    return tag("div", line, tag("span", fill, class_="ptsa-bar", aria_hidden="true"), class_="ptsa-amount")


def button(words: Text, press: str, *, named: Text = "") -> Markup:
    """Return a button; a press arrives at the page's `pressed`. `named` is its name for screen readers, if longer."""
    looks = "jupyter-button widget-button ptsa-small-button"
    return tag("button", words, type="button", class_=looks, data_press=press, aria_label=named or None)


def inline(line: Text) -> Markup:
    """Return a short text for the inside of a line; nothing for none."""
    return tag("span", line) if line else NOTHING


def bullets(lines: Iterable[Text], sign: str = "") -> Markup:
    """Return a list, with the sign named before each line, if any; nothing for no lines."""
    items = [tag("li", icon(sign) if sign else "", tag("span", line)) for line in lines]
    return tag("ul", *items, class_="ptsa-signed" if sign else "ptsa-plain") if items else NOTHING


def details(summary: str, body: Markup) -> Markup:
    """Return a part folded away under a sentence; nothing for no body."""
    return tag("details", tag("summary", summary), body) if body else NOTHING


def _signed(sign: str, text: Text) -> Markup:
    return joined([icon(sign) if sign else "", text])

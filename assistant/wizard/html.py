"""Small pieces of HTML; whatever comes from outside is escaped here and nowhere else."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable
from itertools import groupby

from assistant.i18n import Message, Text, as_typed, render, say
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.visible import visible
from assistant.views import remedy_lines

# Lines on a field of 16 by 16; they take the colour of the text beside them.
ICONS = {
    "ok": "M3 8.5 6.5 12 13 4.5",
    "info": "M8 7v4.5M8 4.2v.3M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z",
    "warning": "M8 1.8 15 14H1zM8 6.3v3.5M8 11.6v.3",
    "error": "M4 4l8 8M12 4l-8 8",
    "stale": "M13 8a5 5 0 1 1-1.6-3.7L13 6M13 2.2V6H9.2",
    "running": "M4 1.8h8M4 14.2h8M5 1.8c0 5.5 6 6.9 6 12.4M11 1.8c0 5.5-6 6.9-6 12.4",
    "gpu": "M4 4h8v8H4zM6.5 1.5V4M9.5 1.5V4M6.5 12v2.5M9.5 12v2.5M1.5 6.5H4M1.5 9.5H4M12 6.5h2.5M12 9.5h2.5",
    "next": "M2.5 8h11M9 3.5 13.5 8 9 12.5",
    "file": "M8 2v8M4.5 6.8 8 10.3l3.5-3.5M2.5 13.5h11",
    "no": "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM3.5 3.5l9 9",
}


def esc(text: object) -> str:
    """Make text harmless in HTML: no tags, and nothing hidden in it."""
    return html.escape(visible(render(text) if isinstance(text, Message) else str(text)))


def icon(name: str, words: Text = "") -> str:
    """Give a drawn sign; without words it only repeats what stands beside it, and is not read out."""
    named = f'role="img" aria-label="{esc(words)}"' if words else 'aria-hidden="true"'
    # Its size is said here too: without it, a page whose style has not come yet would show it as wide as itself.
    drawn = f'width="16" height="16" fill="none" stroke="currentColor"><path d="{ICONS[name]}"/></svg>'
    return f'<svg class="ptsa-icon ptsa-icon-{name}" viewBox="0 0 16 16" {named} {drawn}'


def heading(text: str, lead: str = "") -> str:
    """Give a step's heading, which takes the focus when the step is entered, and a sentence below."""
    return f'<h2 class="ptsa-heading" tabindex="-1">{esc(text)}</h2>' + (
        f'<p class="ptsa-lead">{esc(lead)}</p>' * bool(lead)
    )


def section(title: str, body: str) -> str:
    """Give a part of a panel under its own heading; nothing for no body."""
    return f'<section class="ptsa-section"><h3>{esc(title)}</h3>{body}</section>' if body else ""


def table(rows: Iterable[tuple[Text, ...]], headings: tuple[Text, ...] = ()) -> str:
    """Give a table; without headings the first column names the rows."""
    head = "".join(f'<th scope="col">{esc(text)}</th>' for text in headings)
    body = "".join(f"<tr>{_cells(row, named=not headings)}</tr>" for row in rows)
    return f'<table class="ptsa-table">{f"<thead><tr>{head}</tr></thead>" * bool(head)}<tbody>{body}</tbody></table>'


def note(severity: Severity, text: Text, more: str = "") -> str:
    """Give a framed sentence; its severity is told by word, sign and border. `more` is HTML already."""
    words = {
        Severity.OK: say("Good"),
        Severity.INFO: say("Note"),
        Severity.WARNING: say("Warning"),
        Severity.ERROR: say("Problem"),
    }
    title = f"{icon(severity.value)}<strong>{esc(words[severity])}</strong>"
    return f'<div class="ptsa-note ptsa-note-{severity.value}">{title}<span>{esc(as_typed(text))}</span>{more}</div>'


def card(title: str, body: str, sign: str = "", mark: str = "") -> str:
    """Give a framed thing under its name; `body` is HTML already, `mark` a class for its look."""
    return f'<div class="ptsa-card {mark}"><h4>{icon(sign) if sign else ""}{esc(title)}</h4>{body}</div>'


def chips(words: Iterable[Text], kind: str = "") -> str:
    """Give short words in frames of their own; empty ones are left out."""
    items = "".join(f"<li>{esc(word)}</li>" for word in words if word)
    return f'<ul class="ptsa-chips {kind}">{items}</ul>' if items else ""


def finding(value: Finding) -> str:
    """Give a finding with its remedies."""
    return note(value.severity, value.text, remedies(value.remedies))


def failure(message: Text, hint: Text, severity: Severity = Severity.ERROR) -> str:
    """Say what failed, with the next step below it."""
    return note(severity, message, bullets([as_typed(hint)] if hint else ()))


def remedies(ways: Iterable[Remedy]) -> str:
    """Give ways out: a sentence each, with what to set and to type."""
    return "".join(f'<p class="ptsa-way">{icon("next")}{esc(as_typed(way.text))}</p>{_lines(way)}' for way in ways)


def _lines(way: Remedy) -> str:
    """Give a block for the lines of each kind; a plan and a check are what the wizard's own buttons do."""
    told = ""
    for kind, lines in groupby(remedy_lines(way), key=lambda line: line.kind):
        text = "\n".join(as_typed(line.text) for line in lines)
        if kind == "place":
            told += paragraph(text)
        elif kind in {"set", "command", "change"}:
            told += code(text)
    return told


def paragraph(text: Text, sign: str = "") -> str:
    """Give a sentence, with a sign before it where one is named; nothing for no text."""
    return f"<p>{icon(sign) if sign else ''}{esc(text)}</p>" if text else ""


def download(name: str, content: bytes) -> str:
    """Give a link that holds the content of a file, so that no server need reach it."""
    words = say("Download {name}", name=name)
    data = base64.b64encode(content).decode()
    link = f'<a download="{esc(name)}" href="data:application/octet-stream;base64,{data}">'
    return f"{icon('file')}{link}{esc(words)}</a>"


def fetch(name: str, key: str) -> str:
    """Give a link that asks the wizard for a file's content only when it is pressed."""
    words = say("Download {name}", name=name)
    return f'{icon("file")}<a href="#" data-file="{esc(key)}">{esc(words)}</a>'


def peek(summary: str, key: str) -> str:
    """Fold a file's text away under a sentence; the wizard is asked for it only when that is opened."""
    place = '<pre class="ptsa-code" tabindex="0"></pre>'
    return f'<details data-file="{esc(key)}"><summary>{esc(summary)}</summary>{place}</details>'


def code(text: str) -> str:
    """Give text as typed."""
    return f'<pre class="ptsa-code">{esc(text)}</pre>'


def bullets(lines: Iterable[Text], sign: str = "") -> str:
    """Give a list, with a sign before each line where one is named; nothing for no lines."""
    items = "".join(f"<li>{icon(sign) if sign else ''}<span>{esc(line)}</span></li>" for line in lines)
    return f'<ul class="{"ptsa-signed" if sign else "ptsa-plain"}">{items}</ul>' if items else ""


def details(summary: str, body: str) -> str:
    """Fold HTML away under a sentence; nothing for no body."""
    return f"<details><summary>{esc(summary)}</summary>{body}</details>" if body else ""


def _cells(row: tuple[Text, ...], *, named: bool) -> str:
    first = f'<th scope="row">{esc(row[0])}</th>' if named else f"<td>{esc(row[0])}</td>"
    return first + "".join(f"<td>{esc(cell)}</td>" for cell in row[1:])

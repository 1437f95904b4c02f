"""Small pieces of HTML; whatever comes from outside is escaped here and nowhere else."""

from __future__ import annotations

import html
from collections.abc import Iterable

from assistant.i18n import _
from assistant.model.finding import Finding, Severity

__all__ = ["bullets", "code", "details", "esc", "finding", "heading", "note", "table"]

SIGNS = {Severity.OK: "✓", Severity.INFO: "i", Severity.WARNING: "!", Severity.ERROR: "✗"}


def esc(text: object) -> str:
    """Make text harmless in HTML."""
    return html.escape(str(text))


def heading(text: str, lead: str = "") -> str:
    """Give a step's heading, which takes the focus when the step is entered, and a sentence below."""
    return f'<h2 class="ptsa-heading" tabindex="-1">{esc(text)}</h2>' + (
        f'<p class="ptsa-lead">{esc(lead)}</p>' * bool(lead)
    )


def table(rows: Iterable[tuple[str, ...]], headings: tuple[str, ...] = ()) -> str:
    """Give a table; without headings the first column names the rows."""
    head = "".join(f'<th scope="col">{esc(text)}</th>' for text in headings)
    body = "".join(f"<tr>{_cells(row, named=not headings)}</tr>" for row in rows)
    return f'<table class="ptsa-table">{f"<thead><tr>{head}</tr></thead>" * bool(head)}<tbody>{body}</tbody></table>'


def note(severity: Severity, text: str, more: str = "") -> str:
    """Give a framed sentence; its severity is told by word, sign and border. `more` is HTML already."""
    words = {
        Severity.OK: _("Good"),
        Severity.INFO: _("Note"),
        Severity.WARNING: _("Warning"),
        Severity.ERROR: _("Problem"),
    }
    title = f"<strong>{SIGNS[severity]} {esc(words[severity])}</strong>"
    return f'<div class="ptsa-note ptsa-note-{severity.value}">{title}{esc(text)}{more}</div>'


def finding(value: Finding) -> str:
    """Give a finding with its remedies."""
    remedies = "".join(
        f"<p>→ {esc(remedy.text)}</p>" + (code("\n".join(remedy.commands)) * bool(remedy.commands))
        for remedy in value.remedies
    )
    return note(value.severity, value.text, remedies)


def code(text: str) -> str:
    """Give text as typed."""
    return f'<pre class="ptsa-code">{esc(text)}</pre>'


def bullets(lines: Iterable[str]) -> str:
    """Give a list; nothing for no lines."""
    items = "".join(f"<li>{esc(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def details(summary: str, body: str) -> str:
    """Fold HTML away under a sentence; nothing for no body."""
    return f"<details><summary>{esc(summary)}</summary>{body}</details>" if body else ""


def _cells(row: tuple[str, ...], *, named: bool) -> str:
    first = f'<th scope="row">{esc(row[0])}</th>' if named else f"<td>{esc(row[0])}</td>"
    return first + "".join(f"<td>{esc(cell)}</td>" for cell in row[1:])

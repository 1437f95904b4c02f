"""The report on many machines as a file: page, notebook, spreadsheet or JSON."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Literal, get_args

from assistant.fleet.notebook import notebook_of
from assistant.fleet.page import page_of
from assistant.fleet.summary import Fleet
from assistant.fleet.tables import MACHINE_KEYS, lines_of, machines_of
from assistant.host.files import write_named
from assistant.model.record import to_json, with_words
from assistant.model.visible import cell, visible

Format = Literal["html", "ipynb", "csv", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)


def text_of(fleet: Fleet, kind: Format, place: str) -> str:
    """Return a report as the text of a file; `place` is where its records lie, for a notebook to read them again."""
    if kind == "html":
        return page_of(fleet)
    if kind == "ipynb":
        return notebook_of(fleet, place)
    return _spreadsheet(fleet) if kind == "csv" else to_json(with_words(fleet)) + "\n"


def write_report(fleet: Fleet, kind: Format, place: str, to: Path) -> None:
    """Write a report to a file, for Excel with the mark by which that knows UTF-8. Raises `OSError`."""
    mark = "\ufeff" if kind == "csv" else ""
    write_named(to, mark + visible(text_of(fleet, kind, place)))


def _spreadsheet(fleet: Fleet) -> str:
    """Write a line for each machine; the headings are keys, the same in each language."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(MACHINE_KEYS)
    for row in machines_of(fleet).rows:
        writer.writerow([cell("; ".join(lines_of(one))) for one in row])
    return written.getvalue()

"""A report on many machines as a notebook: its tables in both languages, and a cell that reads the records again."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assistant.export import MARKER, escaped
from assistant.fleet.page import table_of
from assistant.fleet.reading import read_records
from assistant.fleet.rows import rows_of
from assistant.fleet.summary import Fleet, summed_up
from assistant.fleet.tables import MACHINE_KEYS, Table, lines_of, machines_of, standings, tables_of, title_of
from assistant.i18n import LANGUAGES, _, in_language, language, render, say
from assistant.model.errors import BadInput
from assistant.model.visible import visible

MOST = 500  # chosen: rows that JupyterLab draws at once without a wait


class Shown:
    """A table of machines as Jupyter shows it."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def _repr_html_(self) -> str:
        return table_of(self._table)


def show(place: str, *, by: str = "state") -> Shown:
    """Read the records of a folder and show the machines, sorted by a column of `MACHINE_KEYS`.

    Raises `BadInput` for another column, and for a folder that cannot be read.
    """
    if by not in MACHINE_KEYS:
        raise BadInput(
            _("There is no column {name}.", name=by), hint=_("Choose from: {formats}.", formats=", ".join(MACHINE_KEYS))
        )
    now = datetime.now(UTC)
    fleet = summed_up(rows_of(read_records(Path(place)), now), now)
    return Shown(_cut(machines_of(fleet, by)))


def _cut(table: Table) -> Table:
    """Leave the first rows, and say so."""
    if len(table.rows) <= MOST:
        return table
    lead = _("The first {count} of {total} machines.", count=MOST, total=len(table.rows))
    return table._replace(lead=lead, rows=table.rows[:MOST])


def notebook_of(fleet: Fleet, place: str) -> str:
    """Return the notebook (nbformat 4.5) as text."""
    source = (
        "import torch_setup_assistant  # names the file that is in the way, if you have an assistant.py\n"
        "from assistant.fleet import show\n\n"
        f'show({place!r}, by="state")  # {", ".join(MACHINE_KEYS)}'
    )
    shown = Shown(_cut(machines_of(fleet)))._repr_html_()
    output = {
        "output_type": "execute_result",
        "execution_count": 1,
        "metadata": {},
        "data": {"text/html": visible(shown), "text/plain": render(title_of(fleet))},
    }
    cells: list[dict[str, Any]] = [
        *({"cell_type": "markdown", "metadata": {}, "source": visible(text)} for text in _in_each(fleet)),
        {"cell_type": "code", "metadata": {}, "execution_count": 1, "outputs": [output], "source": source},
    ]
    notebook: dict[str, Any] = {
        "metadata": {
            "origin": MARKER,
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
        "cells": [{"id": f"part-{number}", **cell} for number, cell in enumerate(cells)],
    }
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _in_each(fleet: Fleet) -> list[str]:
    """Return the tables but that of the machines, one text for each language, that in force first."""
    found = []
    for code in sorted(LANGUAGES, key=lambda code: code != language()):
        with in_language(code):
            counts = " · ".join(f"{render(standing.word)}: {count}" for standing, count in standings(fleet))
            parts = [f"# {render(title_of(fleet))}", counts, *(_markdown(table) for table in tables_of(fleet)[:-1])]
            found.append("\n\n".join([*parts, say("The machines are in the table below; run its cell to read again.")]))
    return found


def _markdown(table: Table) -> str:
    """Write a table with the cells that `escaped` makes harmless."""
    rows = [[", ".join(lines_of(cell)) for cell in row] for row in table.rows]
    lines = [list(map(render, table.headings)), ["---"] * len(table.headings), *rows]
    body = "\n".join(f"| {' | '.join(map(escaped, line))} |" for line in lines)
    return f"## {render(table.title)}\n\n{render(table.lead)}\n\n{body}"

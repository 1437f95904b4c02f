"""How the terminal draws a report on many machines: how they stand, and what helps; the machines only where few."""

from __future__ import annotations

from rich.text import Text

from assistant.cli.console import console
from assistant.cli.table import draw_rows
from assistant.fleet import Fleet, lines_of, standings, tables_of, title_of
from assistant.i18n import as_typed, render, say

_FEW = 20  # chosen: machines that are listed; of more a page is made


def draw_fleet(fleet: Fleet) -> None:
    """Print the report."""
    console.print(Text(render(title_of(fleet)), style="bold"))
    console.print(Text(" · ".join(f"{render(standing.word)}: {count}" for standing, count in standings(fleet))))
    *others, machines = tables_of(fleet)
    for table in (*others, *([machines] if len(machines.rows) <= _FEW else [])):
        console.print(Text())
        console.print(Text(render(table.title), style="bold"))
        draw_rows(table.headings, [["; ".join(lines_of(cell)) for cell in row] for row in table.rows])
    console.print(Text())
    hint = say("`assistant fleet report FOLDER --to report.html` writes a page of it, to be sorted, sent and printed.")
    console.print(Text(as_typed(hint), style="dim"))

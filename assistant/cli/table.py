"""Tables and commands as the terminal shows them, however narrow it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from assistant.cli.console import console
from assistant.cli.fold import SHORT, columns, folded_command, layout
from assistant.host.shell import shell_for
from assistant.i18n import Message, render
from assistant.model.shell import command_line

Cell = str | Message | Text


def draw_rows(headings: Iterable[str | Message], rows: Iterable[Iterable[Cell]], *, numbers: bool = False) -> None:
    """Print a table without its empty columns; nothing at all where it has no rows.

    On a terminal no word is broken: where the columns do not fit, each row stands by itself. In a file or a pipe each
    row is one line. With `numbers`, all cells between the first and the last of a row are figures.
    """
    names = [render(heading) for heading in headings]
    cells = [[cell if isinstance(cell, Text) else Text(render(cell)) for cell in row] for row in rows]
    kept = [place for place in range(len(cells[0]) if cells else 0) if any(row[place].plain for row in cells)]
    cells = [[row[place] for place in kept] for row in cells]
    names = [names[place] for place in kept] if names else [""] * len(kept)
    texts = [names, *([cell.plain for cell in row] for row in cells)]
    natural = sum(max(map(columns, column)) + 4 for column in zip(*texts, strict=True))
    narrow = console.is_terminal and natural > console.width
    widths = layout(texts, console.width - 2 * len(kept)) if narrow else None
    if narrow and widths is None:
        _draw_one_by_one(names, cells, numbers=numbers)
    elif cells:
        table = Table(box=None, padding=(0, 0, 0, 2) if widths else (0, 2), show_header=any(names))
        for place, name in enumerate(names):
            figures = numbers and 0 < place < len(names) - 1
            width = widths[place] if widths else None
            table.add_column(name, overflow="fold", width=width, justify="right" if figures else "left")
        for row in cells:
            table.add_row(*row)
        console.print(table)


def _draw_one_by_one(names: Sequence[str], rows: Iterable[Sequence[Text]], *, numbers: bool) -> None:
    """Print each row by itself: short cells behind the first one, where they speak for themselves, the others below."""
    for first, *others in rows:
        short = [not numbers and columns(cell.plain) <= SHORT for cell in others]
        behind = [cell for cell, fits in zip(others, short, strict=True) if cell.plain and fits]
        console.print(Text("  ").join([Text(), first, *behind]))
        for name, cell, fits in zip(names[1:], others, short, strict=True):
            if cell.plain and not fits:
                console.print(Text.assemble(f"      {name}: " if name else "      ", cell))


def draw_command(command: str | Sequence[str], indent: str = "    ", style: str = "dim") -> None:
    """Print a command, words as the shell takes them; on a narrow terminal in lines that can be copied."""
    command = command if isinstance(command, str) else command_line(command, shell_for())
    fitting = folded_command(command, console.width, len(indent)) if console.is_terminal else [command]
    for line in fitting:
        console.print(Text(indent + line, style=style), folds=False)

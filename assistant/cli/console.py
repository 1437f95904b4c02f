"""The one way to draw: rich, with every text cleaned of hidden characters; tables and commands at any width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from assistant.cli.terminal import SHORT, columns, folded_command, indent, layout, pieces, printing
from assistant.host.process import shell_for
from assistant.i18n import Message, render
from assistant.model.shell import command_line
from assistant.model.visible import visible

UNBOUND = 10_000  # chosen: columns; more than any row of ours has


class Terminal(Console):
    """Draws as rich does; colours and moves are rich's own, never those that a text brings along.

    A line that is wider than the terminal goes on below it, lined up; what is not shown on a terminal keeps its lines.
    """

    @property
    def size(self) -> ConsoleDimensions:
        """The columns and lines that there are; a file or a pipe has as many columns as a table needs."""
        found = super().size
        return found if self.is_terminal else ConsoleDimensions(UNBOUND, found.height)

    @size.setter
    def size(self, new: tuple[int, int]) -> None:
        Console.size.fset(self, new)  # type: ignore[attr-defined] # mypy sees no setter of a property

    def print(self, *objects: Any, folds: bool = True, **options: Any) -> None:  # noqa: ANN401 - rich's signature
        """Print; a single text is folded unless it must stay as it is."""
        with printing():
            self._print(objects, folds=folds, **options)

    def _print(self, objects: tuple[Any, ...], *, folds: bool, **options: Any) -> None:  # noqa: ANN401 - likewise
        if not folds or len(objects) != 1 or not isinstance(objects[0], Text) or not self.is_terminal:
            super().print(*objects, **options)
            return
        for line in objects[0].split("\n", allow_blank=True):
            margin = " " * indent(line.plain, self.width)
            for number, (start, end) in enumerate(pieces(line.plain, self.width)):
                super().print(Text(margin if number else "", style=line.style) + line[start:end], **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the pieces of what is drawn, their text cleaned before any width is reckoned."""
        for part in super().render(renderable, options):
            yield part if part.control else Segment(visible(part.text), part.style)


console = Terminal(highlight=False, soft_wrap=True)


Cell = str | Message | Text


def draw_rows(headings: Iterable[str | Message], rows: Iterable[Iterable[Cell]], *, numbers: bool = False) -> None:
    """Print a table without its empty columns; nothing at all where it has no rows.

    On a terminal no word is broken: where the columns do not fit, each row stands by itself. In a file or a pipe each
    row is one line. With `numbers`, all cells between the first and the last of a row are figures.
    """
    names = [render(heading) for heading in headings]
    cells = [[cell if isinstance(cell, Text) else Text(render(cell)) for cell in row] for row in rows]
    filled = [place for place in range(len(cells[0]) if cells else 0) if any(row[place].plain for row in cells)]
    cells = [[row[place] for place in filled] for row in cells]
    names = [names[place] for place in filled] if names else [""] * len(filled)
    texts = [names, *([cell.plain for cell in row] for row in cells)]
    natural = sum(max(map(columns, column)) + 4 for column in zip(*texts, strict=True))
    narrow = console.is_terminal and natural > console.width
    widths = layout(texts, console.width - 2 * len(filled)) if narrow else None
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

"""The one way to draw: rich, with every text cleaned of hidden characters; apart as rich takes a while to import."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from assistant.cli.fold import indent, pieces
from assistant.cli.terminal import printing
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

"""The one way to draw: rich, with every text cleaned of hidden characters; apart as rich takes a while to import."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from assistant.model.visible import visible


class Terminal(Console):
    """Draws as rich does; colours and moves are rich's own, never those that a text brings along."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the pieces of what is drawn, their text cleaned before any width is reckoned."""
        for part in super().render(renderable, options):
            yield part if part.control else Segment(visible(part.text), part.style)


console = Terminal(highlight=False, soft_wrap=True)

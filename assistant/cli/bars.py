"""The line that the terminal shows while something works: what it does, one bar for all, the time left."""

from __future__ import annotations

from collections.abc import Callable

from rich.progress import Progress as Bars
from rich.progress import ProgressColumn, SpinnerColumn, TextColumn
from rich.progress import Task as Line
from rich.progress_bar import ProgressBar
from rich.table import Column
from rich.text import Text as RichText

from assistant.cli.console import Terminal
from assistant.i18n import render
from assistant.model.event import Progress
from assistant.session.progress import TITLES, Overall


def installation_bars(overall: Callable[[], Overall | None], *, hidden: bool) -> Bars:
    """Return the line, drawn on stderr where that is a terminal."""
    said = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
    terminal = Terminal(stderr=True)
    columns = (SpinnerColumn(), said, WholeBar(overall), TimeLeft(overall))
    return Bars(*columns, console=terminal, transient=True, disable=hidden or not terminal.is_terminal, expand=True)


def described(event: Progress) -> str:
    """Say what is done just now, and how far that is."""
    said = TITLES[event.part] if event.part else event.text
    return f"{render(said)}  {render(event.figures)}".strip()


class WholeBar(ProgressColumn):
    """One bar from the first byte to the last check; it only moves where nobody knows how long something takes."""

    def __init__(self, overall: Callable[[], Overall | None]) -> None:
        super().__init__(table_column=Column(ratio=1, min_width=8))
        self._overall = overall

    def render(self, task: Line) -> ProgressBar:
        """Draw it as far as the installation is by now."""
        now = self._overall()
        return ProgressBar(
            total=1, completed=now.share if now else 0, pulse=now is None, animation_time=task.get_time()
        )


class TimeLeft(ProgressColumn):
    """The time that the whole installation still takes."""

    def __init__(self, overall: Callable[[], Overall | None]) -> None:
        super().__init__(table_column=Column(no_wrap=True))
        self._overall = overall

    def render(self, task: Line) -> RichText:  # noqa: ARG002 - rich's signature
        """Say it, as far as it is known."""
        now = self._overall()
        return RichText(render(now.left) if now else "", style="dim")

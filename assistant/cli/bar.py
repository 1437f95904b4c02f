"""The one bar that the terminal shows while a task works."""

from __future__ import annotations

from types import TracebackType

from rich.progress import Progress as Bars
from rich.progress import ProgressColumn, SpinnerColumn, TextColumn
from rich.progress import Task as Line
from rich.progress_bar import ProgressBar
from rich.table import Column

from assistant.cli.console import Terminal
from assistant.i18n import render
from assistant.model.event import Event, Progress
from assistant.session.progress import TITLES
from assistant.session.session import Session


class Bar:
    """A line at the foot of the terminal: what a session does, how far that is, and how fast."""

    def __init__(self, session: Session, *, hidden: bool) -> None:
        terminal = Terminal(stderr=True)
        said = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
        spinner = SpinnerColumn("dots" if terminal.encoding.startswith("utf") else "line")  # rich does so for bars
        self._share = _Share()
        off = hidden or not terminal.is_terminal
        self._bars = Bars(spinner, said, self._share, console=terminal, transient=True, disable=off, expand=True)
        self._line = self._bars.add_task("", total=None)
        session.listen(self._hear)

    def __enter__(self) -> None:
        """Show it."""
        self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take it away."""
        self.stop()

    def start(self) -> None:
        """Show it, as before a question."""
        if not self._bars.disable:
            self._bars.start()

    def stop(self) -> None:
        """Take it away, so that a question can be asked."""
        if not self._bars.disable:
            self._bars.stop()

    def _hear(self, event: Event) -> None:
        """Show what a task says of itself; a part of an installation has the same words throughout."""
        if isinstance(event, Progress):
            said = TITLES[event.part] if event.part else event.text
            self._share.share = event.share
            self._bars.update(self._line, description=f"{render(said)}  {render(event.figures)}".strip())


class _Share(ProgressColumn):
    """A bar for what runs; it only moves where nobody knows how far that is."""

    share: float | None = None

    def __init__(self) -> None:
        super().__init__(table_column=Column(ratio=1, min_width=8))

    def render(self, task: Line) -> ProgressBar:
        """Draw it."""
        return ProgressBar(total=1, completed=self.share or 0, pulse=self.share is None, animation_time=task.get_time())

"""The one bar that the terminal shows while a task works."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from rich.progress import Progress as Bars
from rich.progress import ProgressColumn, SpinnerColumn, TextColumn
from rich.progress import Task as Line
from rich.progress_bar import ProgressBar
from rich.table import Column
from rich.text import Text

from assistant.cli.console import Terminal
from assistant.i18n import render
from assistant.model.event import Event, Progress
from assistant.session.progress import TITLES, Overall
from assistant.session.session import Session

Ask = Callable[[], Overall | None]


class Bar:
    """A line at the foot of the terminal: what a session does, how far all of it is, and how long it still takes.

    While something works that is no part of an installation, it only moves.
    """

    def __init__(self, session: Session, *, hidden: bool) -> None:
        def overall() -> Overall | None:
            return session.overall

        terminal = Terminal(stderr=True)
        said = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
        spinner = SpinnerColumn("dots" if terminal.encoding.startswith("utf") else "line")  # rich does so for bars
        columns = (spinner, said, _Share(overall), _TimeLeft(overall))
        off = hidden or not terminal.is_terminal
        self._bars = Bars(*columns, console=terminal, transient=True, disable=off, expand=True)
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
            self._bars.update(self._line, description=f"{render(said)}  {render(event.figures)}".strip())


class _Share(ProgressColumn):
    """One bar from the first byte to the last check; it only moves where nobody knows how long something takes."""

    def __init__(self, overall: Ask) -> None:
        super().__init__(table_column=Column(ratio=1, min_width=8))
        self._overall = overall

    def render(self, task: Line) -> ProgressBar:
        """Draw it as far as the installation is by now."""
        now = self._overall()
        return ProgressBar(
            total=1, completed=now.share if now else 0, pulse=now is None, animation_time=task.get_time()
        )


class _TimeLeft(ProgressColumn):
    """The time that the whole installation still takes."""

    def __init__(self, overall: Ask) -> None:
        super().__init__(table_column=Column(no_wrap=True))
        self._overall = overall

    def render(self, task: Line) -> Text:  # noqa: ARG002 - rich's signature
        """Say it, as far as it is known."""
        now = self._overall()
        return Text(render(now.left) if now else "", style="dim")

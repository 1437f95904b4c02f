"""Runs a session's tasks in the terminal: a progress line while they work, a few lines when they are done."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import TracebackType

import click
from rich.progress import Progress as Bars
from rich.progress import ProgressColumn, SpinnerColumn, TextColumn
from rich.progress import Task as Line
from rich.progress_bar import ProgressBar
from rich.table import Column

from assistant.cli.console import Terminal
from assistant.cli.draw import (
    draw_causes,
    draw_detected,
    draw_diagnosed,
    draw_exported,
    draw_installed,
    draw_next,
    draw_planned,
    draw_prepared,
    draw_verified,
)
from assistant.cli.terminal import ask
from assistant.host.base import Host
from assistant.host.live import LiveHost
from assistant.host.process import on_interrupt
from assistant.i18n import Text, _, render, say, sentences
from assistant.install import KERNEL, Sources, find_target
from assistant.model.errors import AssistantError, BadInput, Cancelled, WorkFailed
from assistant.model.event import Event, Progress
from assistant.model.plan import Plan, Planning, Request
from assistant.model.record import replace
from assistant.session.actions import Answer, Resume, Wish
from assistant.session.session import TAKE_BACK, InlineRunner, Session
from assistant.session.state import Phase, Planned, State, Task
from assistant.session.steps import TITLES, stopped
from assistant.session.store import Store


class OnlyFinished(Store):
    """Keeps the last setup until another environment stands: what is refused or only tried replaces nothing."""

    def save(self, state: State) -> Text:
        """Write a state that has a plan and the environment made for it."""
        return super().save(state) if state.environment and state.plan else ""


def refuse_blocked(session: Session, task: Task) -> None:
    """Raise `BadInput` where a task cannot begin now."""
    if reasons := session.blockers(task):
        raise BadInput(sentences(reasons), hint=_("Run `assistant setup` first."))


def failure_of(state: State, task: Task) -> AssistantError | None:
    """Return why a task failed, with its exit code; None where it did not."""
    status = state.environments.status if task.is_about_environments else state.status(task.step)
    if status.phase is not Phase.FAILED:
        return None
    failure = AssistantError(status.message, hint=status.hint)
    failure.exit_code = status.exit_code or 1
    return failure


def with_own_python(request: Request, target: str, host: Host) -> Request:
    """Ask for the Python of the environment that stands at a target, which keeps it; a request's own comes first."""
    if request.python or target in {"", KERNEL}:
        return request
    site, own = find_target(target, host)[1], str(host.facts("platform").get("python", ""))
    return replace(request, python=site.minor) if site and not own.startswith(f"{site.minor}.") else request


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
        """Show how far a task is, under the title of its part where it has one; ignore all other events."""
        if isinstance(event, Progress):
            title = TITLES[event.part] if event.part else event.text
            self._share.share = event.share
            self._bars.update(self._line, description=f"{render(title)}  {render(event.figures)}".strip())


class _Share(ProgressColumn):
    """A bar for what runs; it only moves where nobody knows how far that is."""

    share: float | None = None

    def __init__(self) -> None:
        super().__init__(table_column=Column(ratio=1, min_width=8))

    def render(self, task: Line) -> ProgressBar:
        """Draw it."""
        return ProgressBar(total=1, completed=self.share or 0, pulse=self.share is None, animation_time=task.get_time())


DRAW: dict[Task, Callable[[State], None]] = {
    Task.DETECT: draw_detected,
    Task.PLAN: draw_planned,
    Task.PREPARE: draw_prepared,
    Task.INSTALL: draw_installed,
    Task.VERIFY: draw_verified,
    Task.DIAGNOSE: draw_diagnosed,
    Task.EXPORT: draw_exported,
}


class Journey:
    """A session in the terminal; `quiet` draws nothing (for --json), `asks` puts a task's questions to the user."""

    def __init__(
        self, state: State, sources: Sources | None = None, *, quiet: bool = False, asks: bool = False
    ) -> None:
        host = LiveHost()
        asks = asks and not quiet and sys.stdin.isatty()
        sources = sources or Sources(host)
        self.session = Session(host, InlineRunner(), OnlyFinished(), state, sources=sources, asks=asks)
        self.session.watch(self._answer)
        self._quiet, self._offline = quiet, sources.offline
        self._interrupted = False
        self._bar = Bar(self.session, hidden=quiet)

    @property
    def state(self) -> State:
        """The session's state."""
        return self.session.state

    def run(self, *tasks: Task) -> State:
        """Run tasks in order; raise the failure of the first that fails, with its own exit code.

        A `KeyboardInterrupt` that is raised carries what stands then, as an `AssistantError`.
        """
        for task in tasks:
            refuse_blocked(self.session, task)
            try:
                # Ctrl-C stops what changes files only where it can be taken back, and anything else at once.
                heard = on_interrupt(self._interrupt) if task in TAKE_BACK else nullcontext()
                with self._bar, heard:
                    self.session.begin(task)
                self._raise_for(task)
            except KeyboardInterrupt as error:
                raise KeyboardInterrupt(stopped(self.state)) from error
            except AssistantError as error:
                if self._interrupted:
                    raise KeyboardInterrupt(error) from error
                raise
            if self._interrupted:
                raise KeyboardInterrupt(stopped(self.state))
            if not self._quiet and task in DRAW:
                DRAW[task](self.state)
        return self.state

    def plan(self, request: Request) -> State:
        """Plan what is asked for."""
        self.session.dispatch(Wish(request=request))
        return self.run(Task.PLAN)

    def take(self, plan: Plan) -> None:
        """Go on with a plan that was made elsewhere."""
        planning = Planning(choice=plan, plans=(plan,))
        self.session.dispatch(Resume(state=replace(self.state, planned=Planned(planning=planning))))

    def install(self, *then: Task, yes: bool) -> None:
        """Ask before anything is written, unless all is there already; install, verify, and do what comes then.

        Raises `Cancelled` where the user says no.
        """
        ready = self.state.preview and self.state.preview.ready
        if not (ready or yes or ask(say("Install now?"), default=True)):
            raise Cancelled(_("Nothing was installed."), hint=_("Run the command again when you are ready."))
        self.run(Task.INSTALL, Task.VERIFY, *then)
        if not self._quiet:
            draw_next(self.state, offline=self._offline)

    def _interrupt(self) -> None:
        self._interrupted = True
        self.session.interrupt()

    def _raise_for(self, task: Task) -> None:
        """Raise the failure of a task, after the diagnosis of one that did real work."""
        status = self.state.environments.status if task.is_about_environments else self.state.status(task.step)
        if status.phase is Phase.FAILED and task in {Task.INSTALL, Task.VERIFY} and status.exit_code == 1:
            self.session.begin(Task.DIAGNOSE)
            if not self._quiet:
                draw_causes(self.state)
        if failure := failure_of(self.state, task):
            raise failure

    def _answer(self, old: State, new: State) -> None:
        """Put the question of a running task to the user."""
        if not new.question or old.question:
            return
        self._bar.stop()
        try:
            with on_interrupt(_raise_abort):
                self.session.dispatch(Answer(yes=ask(new.question, default=False)))
        except click.Abort:
            self._interrupt()
        self._bar.start()


def _raise_abort() -> None:
    raise click.Abort


def refuse_failed(state: State) -> None:
    """Raise `WorkFailed` where a check of the verification failed."""
    if state.report and not state.report.passed:
        raise WorkFailed(_("Some checks failed."), hint=_("The table above and the report say which, and why."))

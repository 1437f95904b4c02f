"""Runs a setup's tasks in the terminal: a progress line while they work, a few lines when they are done."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
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
from assistant.host.process import CancelToken, on_interrupt
from assistant.host.uv import find_uv
from assistant.i18n import Message, _, render, say, sentences
from assistant.install import EnvironmentFolder, Site, Sources, Tools
from assistant.model.errors import AssistantError, BadInput, Cancelled, WorkFailed
from assistant.model.event import Event, FindingRaised, Progress, Step
from assistant.model.plan import KERNEL_TARGET, Plan, Planning, Request
from assistant.model.record import replace
from assistant.model.shell import command_line
from assistant.session.actions import Begin, Failed, Finished, Reported, Wish, blockers, reduce
from assistant.session.state import Phase, Planned, State, Task
from assistant.session.steps import TITLES
from assistant.session.store import Store
from assistant.session.tasks import TAKE_BACK, failed, perform


def refuse_blocked(state: State, task: Task) -> None:
    """Raise `BadInput` where a task cannot begin now."""
    if reasons := blockers(state, task):
        raise BadInput(sentences(reasons), hint=_("Run `assistant setup` first."))


def with_own_python(request: Request, target: str, host: Host) -> Request:
    """Ask for the Python of the environment that stands at a target, which keeps it; a request's own comes first."""
    if request.python or target in {"", KERNEL_TARGET}:
        return request
    environment, own = EnvironmentFolder.of_target(target, host), str(host.facts("platform").get("python", ""))
    minor = Site.ask(environment.path, host).minor if environment.exists else ""
    return replace(request, python=minor) if minor and not own.startswith(f"{minor}.") else request


class Bar:
    """A line at the foot of the terminal: what is going on, how far that is, and how fast."""

    def __init__(self, *, hidden: bool) -> None:
        terminal = Terminal(stderr=True)
        said = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
        spinner = SpinnerColumn("dots" if terminal.encoding.startswith("utf") else "line")  # rich does so for bars
        self._share = _Share()
        off = hidden or not terminal.is_terminal
        self._bars = Bars(spinner, said, self._share, console=terminal, transient=True, disable=off, expand=True)
        self._line = self._bars.add_task("", total=None)

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

    def show(self, event: Event) -> None:
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


class Work:
    """What a step works with in the terminal: the bar shows its events, and its questions are asked here.

    `quiet` draws nothing (for --json); with `asks` a question is put to the user, else the answer is no.
    """

    def __init__(self, sources: Sources | None = None, *, quiet: bool = False, asks: bool = False) -> None:
        host = LiveHost()
        self.store = Store()
        self.bar = Bar(hidden=quiet)
        self._asks = asks and not quiet and sys.stdin.isatty()
        self.tools = Tools(host, sources or Sources(host), self.hear, CancelToken(), self._ask)

    def hear(self, event: Event) -> None:
        """Write lines of output into the log, and show how far the step is."""
        self.bar.show(self.store.logged(event))

    @contextmanager
    def shown(self, *, takes_back: bool = False) -> Iterator[None]:
        """Show the bar while a step works; with `takes_back`, Ctrl-C asks it to stop and take back what it began."""
        with self.bar, on_interrupt(self.tools.cancel.signal) if takes_back else nullcontext():
            yield

    def _ask(self, question: Message) -> bool:
        """Put the question of a step to the user; Ctrl-C stops the step."""
        if not self._asks:
            return False
        answer = False
        self.bar.stop()
        try:
            with on_interrupt(_raise_abort):
                answer = ask(question, default=False)
        except click.Abort:
            self.tools.cancel.signal()
        self.bar.start()
        self.tools.cancel.check()
        return answer


def _raise_abort() -> None:
    raise click.Abort


class Journey:
    """A setup in the terminal: its tasks one after the other, each drawn when it is done.

    An installation that stands is saved as the last setup; what is refused or only tried replaces nothing.
    """

    def __init__(
        self, state: State, sources: Sources | None = None, *, quiet: bool = False, asks: bool = False
    ) -> None:
        self._work = Work(sources, quiet=quiet, asks=asks)
        self._quiet = quiet
        self.state = replace(state, log_file=str(self._work.store.log))

    def run(self, *tasks: Task) -> State:
        """Run tasks in order; raise the failure of the first that fails, with its own exit code.

        A `KeyboardInterrupt` that is raised carries what stands then, as an `AssistantError`.
        """
        for task in tasks:
            refuse_blocked(self.state, task)
            try:
                self._run(task)
            except KeyboardInterrupt as error:
                raise KeyboardInterrupt(stopped(self.state)) from error
            except AssistantError as error:
                if self._work.tools.cancel:
                    raise KeyboardInterrupt(error) from error
                raise
            if self._work.tools.cancel:
                raise KeyboardInterrupt(stopped(self.state))
            if not self._quiet and task in DRAW:
                DRAW[task](self.state)
        return self.state

    def _run(self, task: Task) -> None:
        """Run a task to its end, and save what it has come to; look for the cause where real work has failed."""
        self.state = reduce(self.state, Begin(task=task))
        events: list[Event] = []

        def hear(event: Event) -> None:
            events.append(event)
            self._work.hear(event)

        failure: AssistantError | None = None
        end: Finished | Failed
        try:
            with self._work.shown(takes_back=task in TAKE_BACK):
                end = perform(task, self.state, dataclasses.replace(self._work.tools, sink=hear))
        except AssistantError as error:
            failure, end = error, failed(task, error)
        self.state = reduce(reduce(self.state, Reported(events=tuple(events))), end)
        if failure is None:
            self._save(task)
            return
        if task in {Task.INSTALL, Task.VERIFY} and failure.exit_code == 1:
            self._run(Task.DIAGNOSE)
            if not self._quiet:
                draw_causes(self.state)
        raise failure

    def _save(self, task: Task) -> None:
        """Save an environment that stands, with the plan that it was made for."""
        if self.state.environment and self.state.plan and (fault := self._work.store.save(self.state)):
            self.state = reduce(self.state, Reported(events=(FindingRaised(step=task.step, finding=fault),)))

    def plan(self, request: Request) -> State:
        """Plan what is asked for."""
        self.state = reduce(self.state, Wish(request=request))
        return self.run(Task.PLAN)

    def take(self, plan: Plan) -> None:
        """Go on with a plan that was made elsewhere."""
        planning = Planning(choice=plan, plans=(plan,))
        self.state = replace(self.state, planned=Planned(planning=planning))

    def install(self, *then: Task, yes: bool) -> None:
        """Ask before anything is written, unless all is there already; install, verify, and do what comes then.

        Raises `Cancelled` where the user says no.
        """
        ready = self.state.preview and self.state.preview.ready
        if not (ready or yes or ask(say("Install now?"), default=True)):
            raise Cancelled(_("Nothing was installed."), hint=_("Run the command again when you are ready."))
        self.run(Task.INSTALL)
        if self.state.report is None:  # an environment that was there already
            self.run(Task.VERIFY)
        elif not self._quiet:
            draw_verified(self.state)
        self.run(*then)
        if not self._quiet:
            draw_next(self.state, offline=self._work.tools.sources.offline)


def refuse_failed(state: State) -> None:
    """Raise `WorkFailed` where a check of the verification failed."""
    if state.report and not state.report.passed:
        raise WorkFailed(_("Some checks failed."), hint=_("The table above and the report say which, and why."))


def stopped(state: State) -> Cancelled:
    """Return what an interrupted installation has left, and how that is removed."""
    made, preview = state.environment, state.preview
    if state.status(Step.INSTALL).phase is not Phase.DONE or made is None or (preview and preview.ready):
        return Cancelled(_("Stopped before anything was changed."))
    text = _("Stopped, but the installation in {path} is complete and stays.", path=made.path)
    if EnvironmentFolder(Path(made.path)).marker:
        command = command_line(["assistant", "envs", "--remove", made.path])
        return Cancelled(text, hint=_("`{command}` removes it.", command=command))
    command = command_line([find_uv(), "pip", "uninstall", "--python", made.python, "torch"])
    return Cancelled(text, hint=_("To take torch out of it again: {command}", command=command))

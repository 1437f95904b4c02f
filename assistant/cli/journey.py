"""Runs a session's tasks in the terminal: a progress line while they work, a few lines when they are done."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import click
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.text import Text

from assistant.cli.console import Terminal, console
from assistant.cli.draw import draw_findings, draw_report, draw_rows
from assistant.cli.draw_diagnosis import draw_diagnoses
from assistant.cli.terminal import ask
from assistant.diagnose import read_log
from assistant.host.live import LiveHost
from assistant.host.process import on_interrupt
from assistant.i18n import _, as_typed, ngettext, render, say, sentences
from assistant.install import Prepared, Sources, find_uv, read_marker
from assistant.model.errors import AssistantError, BadInput, Cancelled, WorkFailed
from assistant.model.event import Event, Progress, Step
from assistant.model.report import verdict
from assistant.session.actions import Answer
from assistant.session.nouns import Phase, State, Task
from assistant.session.runner import InlineRunner
from assistant.session.session import TAKE_BACK, Session
from assistant.session.store import Store
from assistant.views import gpu_line, plan_summary

CAUSES = 3  # of a failure, best first


class OnlyFinished(Store):
    """Keeps the last setup until another environment stands: what is refused or only tried replaces nothing."""

    def save(self, state: State) -> None:
        """Write a state that has a plan and the environment made for it."""
        if state.environment and state.plan:
            super().save(state)


class Journey:
    """A session in the terminal; `quiet` draws nothing (for --json), `asks` puts a task's questions to the user."""

    def __init__(
        self,
        state: State,
        sources: Sources | None = None,
        *,
        quiet: bool = False,
        asks: bool = False,
    ) -> None:
        host = LiveHost()
        asks = asks and not quiet and sys.stdin.isatty()
        self.session = Session(host, InlineRunner(), OnlyFinished(), state, sources=sources or Sources(host), asks=asks)
        self.session.listen(self._hear)
        self.session.watch(self._answer)
        self._quiet = quiet
        self._interrupted = False
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
        told = Terminal(stderr=True)
        self._bars = Bars(*columns, console=told, transient=True, disable=quiet or not told.is_terminal)
        self._line = self._bars.add_task("", total=None)

    @property
    def state(self) -> State:
        """The session's state."""
        return self.session.state

    def run(self, *tasks: Task) -> State:
        """Run tasks in order; the first that fails is raised with its own exit code.

        A `KeyboardInterrupt` that is raised carries what stands then, as an `AssistantError`.
        """
        for task in tasks:
            if reasons := self.session.blockers(task):
                raise BadInput(sentences(reasons), hint=_("Run `assistant setup` first."))
            try:
                with nullcontext() if self._bars.disable else self._bars, self._interruptible(task):
                    self.session.begin(task)
                self._raise_for(task)
            except KeyboardInterrupt as error:
                raise KeyboardInterrupt(self._stopped()) from error
            except AssistantError as error:
                if self._interrupted:
                    raise KeyboardInterrupt(error) from error
                raise
            if self._interrupted:
                raise KeyboardInterrupt(self._stopped())
            if not self._quiet:
                DRAW[task](self.state)
        return self.state

    def _interruptible(self, task: Task) -> AbstractContextManager[None]:
        """Let Ctrl-C stop what changes files only where it can be taken back, and anything else at once."""
        return on_interrupt(self._interrupt) if task in TAKE_BACK else nullcontext()

    def _interrupt(self) -> None:
        self._interrupted = True
        self.session.interrupt()

    def _stopped(self) -> Cancelled:
        """Say what stands after Ctrl-C, in the words of the last installation's outcome."""
        made, preview = self.state.environment, self.state.preview
        if self.state.status(Step.INSTALL).phase is not Phase.DONE or made is None or (preview and preview.ready):
            return Cancelled(_("Stopped before anything was changed."))
        text = _("Stopped, but the installation in {path} is complete and stays.", path=made.path)
        if read_marker(Path(made.path)):
            hint = _("`assistant envs --remove {path}` removes it.", path=shlex.quote(made.path))
        else:
            command = shlex.join([find_uv(), "pip", "uninstall", "--python", made.python, "torch"])
            hint = _("To take torch out of it again: {command}", command=command)
        return Cancelled(text, hint=hint)

    def _raise_for(self, task: Task) -> None:
        """Raise the failure of a task, after the diagnosis of one that did real work."""
        status = self.state.status(task.step)
        if status.phase is Phase.FAILED and task in {Task.INSTALL, Task.VERIFY} and status.exit_code == 1:
            self.session.begin(Task.DIAGNOSE)
            if not self._quiet:
                _draw_causes(self.state)
        if status.phase is Phase.FAILED:
            failure = AssistantError(status.message, hint=status.hint)
            failure.exit_code = status.exit_code or 1
            raise failure

    def _hear(self, event: Event) -> None:
        if isinstance(event, Progress):
            text = f"{render(event.text)}  {render(event.figures)}".strip()
            self._bars.update(self._line, description=text, completed=event.done, total=event.total)

    def _answer(self, old: State, new: State) -> None:
        """Put the question of a running task to the user."""
        if not new.question or old.question:
            return
        self._bars.stop()
        try:
            with on_interrupt(_raise_abort):
                self.session.dispatch(Answer(yes=ask(new.question, default=False)))
        except click.Abort:
            self._interrupt()
        self._bars.start()


def _raise_abort() -> None:
    raise click.Abort


def agree(state: State, *, yes: bool) -> None:
    """Ask before anything is written, unless all is there already; raise `Cancelled` where the user says no."""
    if state.preview and state.preview.ready:
        return
    if not yes and not ask(say("Install now?"), default=True):
        raise Cancelled(_("Nothing was installed."), hint=_("Run the command again when you are ready."))


def refuse_failed(state: State) -> None:
    """Raise `WorkFailed` where a check of the verification failed."""
    if state.report and not state.report.passed:
        raise WorkFailed(_("Some checks failed."), hint=_("The table above and the report tell which, and why."))


def _draw_detect(state: State) -> None:
    machine = state.detection.machine if state.detection else None
    if machine is None:
        return
    gpus = ", ".join(gpu_line(gpu) for gpu in machine.gpus) or say("no GPU found")
    told = say("{system}, Python {python}, {gpus}")
    _done(say("Detect"), told.format(system=machine.os_version or machine.os, python=machine.python, gpus=gpus))
    draw_findings(state.findings)


def _draw_plan(state: State) -> None:
    if state.plan:
        _done(say("Plan"), render(plan_summary(state.plan)))
        for line in state.plan.reasons:
            console.print(Text(f"    {render(line)}", style="dim"))
        for line in state.plan.warnings:
            console.print(Text(f"  ! {as_typed(line)}", style="yellow"))


def _draw_prepare(state: State) -> None:
    preview = state.preview
    if preview is None:
        return
    count, size = len(preview.resolution.packages), preview.download / 10**6
    console.print(
        Text(
            say(
                "  {count} packages, {size:.0f} MB to download, into {target}",
                count=count,
                size=size,
                target=preview.target,
            )
        )
    )
    draw_findings(preview.findings)
    for command in preview.commands:
        console.print(Text(f"    {shlex.join(command)}", style="dim"))


def draw_preview(preview: Prepared) -> None:
    """Print every package with its size, and every file that an installation would write."""
    rows = ((one.name, one.version, _size(one.size), one.url) for one in preview.resolution.packages)
    draw_rows((say("Package"), say("Version"), say("Size"), say("Source")), rows)
    if preview.ready:
        console.print(say("This environment is there already and holds exactly these packages."))
    for path in preview.writes:
        console.print(Text(say("  writes {path}", path=path)))
    total, fetched = preview.resolution.download / 1e6, preview.download / 1e6
    told = say("  {total:.1f} MB in all, of which {fetched:.1f} MB have yet to be downloaded; nothing was changed")
    console.print(Text(told.format(total=total, fetched=fetched)))


def _size(size: int | None) -> str:
    return say("unknown") if size is None else f"{size / 1e6:.2f} MB"


def _draw_install(state: State) -> None:
    if state.environment and state.preview:
        ready = state.preview.ready is not None
        text = say("it was there already, in {path}") if ready else say("made {path}")
        _done(say("Install"), text.format(path=state.environment.path))


def _draw_verify(state: State) -> None:
    if state.report:
        draw_report(state.report)
        _done(say("Verify"), render(verdict(state.report)), good=state.report.passed)


def _draw_diagnose(state: State) -> None:
    _draw_causes(state)
    worth = sum(finding.wrong for finding in state.findings)
    text = render(ngettext("{count} thing to mend, see above", "{count} things to mend, see above", worth))
    _done(say("Diagnose"), text if worth else say("nothing to mend"), good=not worth)


def _draw_causes(state: State) -> None:
    draw_diagnoses(read_log(""), ((diagnosis, None) for diagnosis in state.diagnoses[:CAUSES]))


def _draw_export(state: State) -> None:
    files = [Path(path) for path in state.exported]
    folder = os.path.commonpath([path.parent for path in files]) if files else ""
    told = render(ngettext("{count} file in {folder}", "{count} files in {folder}", len(files), folder=folder))
    _done(say("Export"), told)
    for path in files:
        console.print(Text(f"    {path.relative_to(folder)}"))
    for line in state.log:
        console.print(Text(f"  ! {as_typed(line)}", style="yellow"))


DRAW: dict[Task, Callable[[State], None]] = {
    Task.DETECT: _draw_detect,
    Task.PLAN: _draw_plan,
    Task.PREPARE: _draw_prepare,
    Task.INSTALL: _draw_install,
    Task.VERIFY: _draw_verify,
    Task.DIAGNOSE: _draw_diagnose,
    Task.EXPORT: _draw_export,
}


def _done(step: str, text: str, *, good: bool = True) -> None:
    sign = ("✓ ", "green") if good else ("✗ ", "red")
    console.print(Text.assemble(sign, (f"{step}  ", "bold"), text))

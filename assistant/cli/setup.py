"""`assistant setup` and its parts `install` and `verify`, and how a setup's tasks run and are shown in the terminal."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bars
from rich.table import Column

from assistant import verify as verification
from assistant.cli import draw
from assistant.cli.draw import draw_preview, draw_verified
from assistant.cli.options import (
    combine,
    dry_run_option,
    pop_request,
    project_options,
    request_options,
    source_options,
    trust_index_option,
    with_projects,
)
from assistant.cli.terminal import ask, echo_json, json_option, yes_option
from assistant.host.base import Host
from assistant.host.extras import find_uv
from assistant.host.files import full_path
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken, on_interrupt
from assistant.i18n import Message, _, render, say, sentences
from assistant.install import EnvironmentFolder, Site, Sources, Tools
from assistant.model.errors import AssistantError, BadInput, Cancelled, WorkFailed
from assistant.model.plan import KERNEL_TARGET, Plan, Planning, Request
from assistant.model.record import replace
from assistant.model.report import Event, FindingRaised, Level, Progress, Step
from assistant.model.shell import command_line
from assistant.session.actions import Begin, Choose, Failed, Finished, Reported, blockers, reduce, with_report
from assistant.session.answers import preview_answer, setup_answer
from assistant.session.session import TAKE_BACK, failure_action, perform_task
from assistant.session.state import Phase, Planned, State, Task, required
from assistant.session.steps import TITLES
from assistant.session.store import Store, load_last_setup, state_for_environment


def parse_target(context: click.Context, option: click.Parameter, target: str) -> str:
    """Return "new", "kernel" and "" as they are, and a folder as an absolute path; `./kernel` is a folder of that name.

    Raises `BadInput` for "" on the command line: it is a shell's variable that was not set.
    """
    if not target and context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
        raise BadInput(_("{name} is empty.", name=option.opts[0]), hint=_("Name a folder, or leave it out."))
    return target if target in {"", "new", KERNEL_TARGET} else str(full_path(target))


target_option = click.option(
    "--target",
    default="",
    metavar="new|kernel|PATH",
    callback=parse_target,
    help="Where to install; a new environment by default.",
)


def refuse_blocked(state: State, task: Task) -> None:
    """Raise `BadInput` if a task cannot begin now."""
    if reasons := blockers(state, task):
        raise BadInput(sentences(reasons), hint=_("Run `assistant setup` first."))


def with_own_python(request: Request, target: str, host: Host) -> Request:
    """Return the request for the Python version of the environment at `target`, unless the assistant's own is the same.

    It stays as it is if it asks for a version, for "", "new" and "kernel", and if nothing is there. What was killed
    there is finished or rolled back first, and the environment's Python is run.
    """
    if request.python or target in {"", "new", KERNEL_TARGET}:
        return request
    environment, own = EnvironmentFolder.from_target(target, host), str(host.facts("platform").get("python", ""))
    minor = Site.ask(environment.path, host).minor if environment.exists else ""
    return replace(request, python=minor) if minor and not own.startswith(f"{minor}.") else request


class Bar(Bars):
    """A line at the foot of the terminal: what is going on, how far that is, and how fast."""

    def __init__(self, *, hidden: bool) -> None:
        terminal = draw.Terminal(stderr=True)
        said = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
        spinner = SpinnerColumn("dots" if terminal.encoding.startswith("utf") else "line")  # rich does so for bars
        share = BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=8))
        off = hidden or not terminal.is_terminal
        super().__init__(spinner, said, share, console=terminal, transient=True, disable=off, expand=True)
        self.add_task("", total=None)

    def stop(self) -> None:
        """Remove the bar, so that a question can be asked; a hidden one prints nothing."""
        if not self.disable:
            super().stop()

    def show(self, event: Event) -> None:
        """Show a `Progress`: the title of its part, or its own text, with figures and share; ignore other events."""
        if isinstance(event, Progress):
            line = self.tasks[0]
            line.total = None if event.share is None else 1.0  # it only moves where nobody knows how far that is
            title = TITLES[event.part] if event.part else event.text
            text = f"{render(title)}  {render(event.figures)}".strip()
            self.update(line.id, completed=event.share or 0.0, description=text)


class Work:
    """What a step works with in the terminal: the bar shows its events, and its questions are asked here.

    `quiet` draws nothing (for --json); with `asks` a question is put to the user, else the answer is no.
    """

    def __init__(self, sources: Sources | None = None, *, quiet: bool = False, asks: bool = False) -> None:
        self.store, self.cancel = Store(), CancelToken()
        self.bar = Bar(hidden=quiet)
        self._sources, self._asks = sources, asks and not quiet and sys.stdin.isatty()

    @cached_property
    def tools(self) -> Tools:
        """What a task of a setup works with."""
        host = LiveHost()
        return Tools(host, self._sources or Sources(host), self.hear, self.cancel, self._ask)

    def hear(self, event: Event) -> None:
        """Write lines of output into the log, and show how far the step is."""
        self.bar.show(self.store.log_event(event))

    @contextmanager
    def show_progress(self, *, takes_back: bool = False) -> Iterator[None]:
        """Show the bar while a step works; with `takes_back`, Ctrl-C asks it to stop and take back what it began."""
        with self.bar, on_interrupt(self.cancel.signal) if takes_back else nullcontext():
            yield

    def _ask(self, question: Message) -> bool:
        """Ask a step's question and return whether the answer is yes; Enter alone means no.

        Without `asks`, with `quiet`, and if the input is no terminal, nobody is asked, and the answer is no. Raises
        `Cancelled` if the user interrupts the question.
        """

        def abort(_number: int) -> None:
            raise click.Abort

        answer = False
        if self._asks:
            self.bar.stop()
            try:
                with on_interrupt(abort):
                    answer = ask(question, default=False)
            except click.Abort:
                self.cancel.signal()
            self.bar.start()
            self.cancel.check()
        return answer


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
        """Run tasks in order, print the result of each, and return the state; raise the error of the first that fails.

        Raises `BadInput` for a task that cannot begin now, and on an interruption `KeyboardInterrupt` with the
        `AssistantError` to print.
        """
        for task in tasks:
            refuse_blocked(self.state, task)
            try:
                self._run(task)
            except KeyboardInterrupt as error:
                raise KeyboardInterrupt(interruption(self.state)) from error
            except AssistantError as error:
                if self._work.cancel:
                    raise KeyboardInterrupt(error) from error
                raise
            if self._work.cancel:
                raise KeyboardInterrupt(interruption(self.state))
            if not self._quiet and (draw_done := draw.OF_TASK.get(task.value)):
                draw_done(self.state)
        return self.state

    def _run(self, task: Task) -> None:
        """Run a task, and put its events and result into the state; then save an environment in it as the last setup.

        If installing or verifying itself failed (exit code 1), its causes are looked for and printed. Raises the task's
        error, and saves nothing then.
        """
        self.state = reduce(self.state, Begin(task=task))
        events: list[Event] = []

        def hear(event: Event) -> None:
            """Keep an event for the state, and show it."""
            events.append(event)
            self._work.hear(event)

        failure: AssistantError | None = None
        end: Finished | Failed
        try:
            with self._work.show_progress(takes_back=task in TAKE_BACK):
                end = perform_task(task, self.state, dataclasses.replace(self._work.tools, sink=hear))
        except AssistantError as error:
            failure, end = error, failure_action(task, error)
        self.state = reduce(reduce(self.state, Reported(events=tuple(events))), end)
        if failure is None:
            if self.state.environment and self.state.plan and (fault := self._work.store.save(self.state)):
                self.state = reduce(self.state, Reported(events=(FindingRaised(step=task.step, finding=fault),)))
            return
        if task in {Task.INSTALL, Task.VERIFY} and failure.exit_code == 1:
            self._run(Task.DIAGNOSE)
            if not self._quiet:
                draw.draw_causes(self.state)
        raise failure

    def plan(self, request: Request) -> State:
        """Plan what is asked for."""
        self.state = reduce(self.state, Choose(request=request))
        return self.run(Task.PLAN)

    def take(self, plan: Plan) -> None:
        """Set a plan that was made elsewhere as the chosen one."""
        planning = Planning(choice=plan, plans=(plan,))
        self.state = replace(self.state, planned=Planned(planning=planning))

    def install(self, *then: Task, yes: bool) -> None:
        """Install the plan, verify it and run the tasks `then`; print the results, and what to type now.

        The user is asked first, unless `yes` or if all is installed already. Raises `Cancelled` if the user declines.
        """
        ready = self.state.preview and self.state.preview.ready
        if not (ready or yes or ask(say("Install now?"), default=True)):
            raise Cancelled(_("Nothing was installed."), hint=_("Run the command again when you are ready."))
        self.run(Task.INSTALL)
        if self.state.report is None:  # an environment that was there already
            self.run(Task.VERIFY)
        elif not self._quiet:
            draw.draw_verified(self.state)
        self.run(*then)
        if not self._quiet:
            draw.draw_next(self.state, offline=self._work.tools.sources.offline)


def refuse_failed(state: State) -> None:
    """Raise `WorkFailed` if a check of the verification failed."""
    if state.report and not state.report.passed:
        raise WorkFailed(_("Some checks failed."), hint=_("The table above and the report say which, and why."))


def interruption(state: State) -> Cancelled:
    """Return the error for an interruption: nothing was changed, or what was installed stays; how to remove that."""
    made, preview = state.environment, state.preview
    if state.status(Step.INSTALL).phase is not Phase.DONE or made is None or (preview and preview.ready):
        return Cancelled(_("Stopped before anything was changed."))
    text = _("Stopped, but the installation in {path} is complete and stays.", path=made.path)
    if EnvironmentFolder(Path(made.path)).marker:
        command = command_line(["assistant", "envs", "--remove", made.path])
        return Cancelled(text, hint=_("`{command}` removes it.", command=command))
    command = command_line([find_uv(), "pip", "uninstall", "--python", made.python, "torch"])
    return Cancelled(text, hint=_("To take torch out of it again: {command}", command=command))


agreement_options = combine(
    yes_option(help="Answer yes to every question."),
    click.option(
        "--with-cuda-libraries",
        "with_cuda",
        is_flag=True,
        help="If no CPU build is available, take PyPI's default build with its several GB of CUDA libraries.",
    ),
    click.option("--keep", is_flag=True, help="Keep the installation even if its verification fails."),
    trust_index_option,
)


@click.command()
@click.option("--target", default="", metavar="PATH", callback=parse_target, help="Folder of the new environment.")
@click.option("--to", "folder", default="", metavar="DIR", help="Folder of the exported files.")
@request_options
@project_options
@source_options
@agreement_options
@json_option
def setup(target: str, folder: str, *, yes: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's
    """Set up PyTorch: detect, plan, install, verify, diagnose, export."""
    journey = _prepare(target, folder, options, quiet=as_json, asks=not yes)
    journey.install(Task.DIAGNOSE, Task.EXPORT, yes=yes)
    if as_json:
        echo_json(setup_answer(journey.state))
    refuse_failed(journey.state)


@click.command()
@target_option
@request_options
@project_options
@source_options
@dry_run_option
@agreement_options
@json_option
def install(target: str, *, dry_run: bool, yes: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's
    """Install the plan into a new environment or an existing one, and verify it."""
    aim = "" if target == "new" else target
    journey = _prepare(aim, "", options, quiet=as_json, asks=not yes, dry_run=dry_run)
    preview = journey.state.preview
    if not dry_run:
        journey.install(yes=yes)
    elif not as_json and preview:
        draw_preview(preview)
    if as_json:
        echo_json(preview_answer(preview) if dry_run else journey.state.environment)


@click.command()
@click.option(
    "--target",
    default="",
    metavar="PATH",
    callback=parse_target,
    help="The environment to check; by default the last setup's.",
)
@click.option("--device", default="", metavar="DEVICE", help="cpu, cuda, cuda:1, …; by default the plan's.")
@click.option("--full", is_flag=True, help="Check every operation, small models and speed as well (about a minute).")
@json_option
def verify(target: str, device: str, *, full: bool, as_json: bool) -> None:
    """Check that an environment really computes on its device."""
    state = state_for_environment(Path(target).expanduser().absolute()) if target else load_last_setup()
    environment, plan = required(state.environment), state.plan
    if not (device or plan):
        raise BadInput(
            _("It is not known which device {path} is for.", path=environment.path),
            hint=_("Name it, as in --device cpu."),
        )
    work = Work(quiet=as_json)
    level: Level = "full" if full else "quick"
    with work.show_progress():
        report = verification.run(environment, plan, device=device, level=level, sink=work.hear, cancel=work.cancel)
    state = with_report(state, report)
    if plan:  # what is exported next is what was verified last
        work.store.save(state)
    if as_json:
        echo_json(report)
    else:
        draw_verified(state)
    refuse_failed(state)


def _prepare(
    target: str, folder: str, options: dict[str, Any], *, quiet: bool, asks: bool, dry_run: bool = False
) -> Journey:
    """Return a journey that has detected the machine, planned, and resolved the packages; each result is printed.

    A dry run asks no question, and `quiet` prints nothing. `options` are those that the shared option groups add to the
    command; all but those of package sources are removed.
    """
    host = LiveHost()
    how = {"asks": asks and not dry_run, "all_taken": dry_run, "quiet": quiet}
    request, _project = with_projects(pop_request(options), options, options["trust_index"], **how)
    request = replace(with_own_python(request, target, host), cuda_libraries=options.pop("with_cuda"))
    trust = options.pop("trust_index")
    state = State().with_choices(target=target, folder=folder, request=request, keep=options.pop("keep"))
    journey = Journey(state, Sources(host, **options, trust=trust), quiet=quiet, asks=asks)
    journey.run(Task.DETECT, Task.PLAN, Task.PREPARE)
    return journey

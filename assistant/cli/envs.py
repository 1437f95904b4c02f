"""`assistant envs`, `recover` and `guard`: environments here, what a killed installation left, torch protected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from assistant.cli.draw import console, draw_findings, draw_line
from assistant.cli.options import source_options
from assistant.cli.setup import Work
from assistant.cli.terminal import ask, echo, echo_json, json_option, yes_option
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.i18n import _, as_typed, render, say, sentences
from assistant.install import EnvironmentFolder, Site, Sources, Tools
from assistant.install import recover as take_back
from assistant.model.errors import Cancelled
from assistant.model.shell import quote
from assistant.session.answers import environment_answer, environments_answer
from assistant.session.environments import (
    carry_out_repair,
    check_picked,
    list_made,
    run_survey,
    undo_last_change,
    work_out_repair,
)
from assistant.session.state import EnvironmentSummary, Light, Repair, State, Survey, Surveyed, megabytes, undo_notice


@click.command()
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="List every environment that is found: those of kernels, conda, uv and applications, too.",
)
@click.option("--check", default="", metavar="PATH", help="Check this environment, and let it compute.")
@click.option(
    "--mend", default="", metavar="PATH", help="Show what would mend this environment, and do it if you agree."
)
@click.option("--undo", default="", metavar="PATH", help="Put back what this environment held before its last change.")
@click.option(
    "--forget",
    "to_forget",
    default="",
    metavar="PATH",
    help="Delete what is kept for undoing the last change, to free space.",
)
@click.option(
    "--remove", default="", metavar="NAME", help="Remove this one, with its kernels: its name, folder or kernel."
)
@click.option("--prune", is_flag=True, help="Delete the downloaded files that are kept for later installations.")
@yes_option(help="Answer yes to every question.")
@source_options
@json_option
def envs(remove: str, *, prune: bool, every: bool, yes: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's
    """List environments; check, mend, undo or remove one."""
    check, mend, undo, to_forget = (options.pop(name) for name in ("check", "mend", "undo", "to_forget"))
    if sum(map(bool, (check, mend, undo, to_forget, prune or remove))) > 1:
        raise click.UsageError(say("Only one of --check, --mend, --undo, --forget and --remove can be done at a time."))
    if prune or remove or to_forget:
        _delete(remove, to_forget, prune=prune, yes=yes, as_json=as_json)
    else:
        work = Work(Sources(LiveHost(), **options), quiet=as_json, asks=not yes)
        tasks = {check_picked: check, work_out_repair: mend, undo_last_change: undo}
        task, path = (run_survey if every else list_made), ""
        for named_task, named in tasks.items():
            if named:  # one at most
                task, path = named_task, named
        _run_task(work, task, path, yes=yes, as_json=as_json)


def _delete(remove: str, to_forget: str, *, prune: bool, yes: bool, as_json: bool) -> None:
    """Delete downloads (`prune`) or what the environment `to_forget` keeps for undoing; then the environment `remove`.

    The user is asked only before an environment is removed, unless `yes`; raises `Cancelled` on a no. Prints what was
    removed, and how much was freed.
    """
    freed = None
    if prune or to_forget:
        freed = Sources.delete_downloads() if prune else EnvironmentFolder.at(to_forget).delete_previous_state()
    if remove and not (yes or ask(_("Remove {name} and all that is in it?", name=remove), default=False, err=True)):
        raise Cancelled(_("Nothing was removed."))
    removed = None
    if remove:
        environment = EnvironmentFolder.named(remove)
        environment.remove()
        removed = str(environment.path)
    if as_json:
        echo_json({"freed_bytes": freed} if to_forget else {"removed": removed, "freed_bytes": freed})
        return
    if freed is not None:
        echo(say("Freed {size} MB.", size=freed // 10**6))
    if removed:
        echo(say("Removed {path}.", path=removed))


def _run_task(work: Work, task: Callable[[State, Tools], Surveyed], path: str, *, yes: bool, as_json: bool) -> None:
    """Run a task about the environment at a path, or about all that it finds if that is ""; print the result.

    A repair that the task proposes is shown and, once the user confirms it, carried out; `yes` skips the question. With
    `as_json` it is not shown, and carried out only with `yes`. Raises `Cancelled` if the user declines.
    """
    state = State().with_environments(picked=str(EnvironmentFolder.at(path).path) if path else "")

    def run(task: Callable[[State, Tools], Surveyed]) -> State:
        """Run a task on the state, and return the state with what it found."""
        with work.show_progress(takes_back=task in {undo_last_change, carry_out_repair}):
            found = task(state, work.tools)
        return state.with_environments(survey=found.survey, repair=found.repair)

    state = run(task)
    if (repair := state.environments.repair) and (yes or not as_json):
        if not as_json:
            draw_repair(repair)
        if not yes and not ask(_("Change these packages now?"), default=False, err=True):
            raise Cancelled(_("Nothing was changed."), hint=_("Run the command again when you are ready."))
        state = run(carry_out_repair)
    survey = state.environments.survey or Survey()
    summary = survey.summary_at(state.environments.picked)
    if as_json:
        echo_json(environment_answer(summary, survey, repair) if summary else environments_answer(survey))
    elif summary:
        draw_findings(survey.notes)
        draw_environment(summary)
    else:
        draw_environments(survey)


SIGNS = {
    Light.GOOD: ("✓", "green"),
    Light.WARNING: ("!", "yellow"),
    Light.BAD: ("✗", "red"),
    Light.UNKNOWN: ("?", "dim"),
}


def draw_environments(survey: Survey) -> None:
    """Print three lines for each environment: name and contents, path, state; and whether the search was cut short."""
    for one in survey.environments:
        _draw_summary(one)
        draw_line(f"    {one.state}", "" if one.light is Light.GOOD else SIGNS[one.light][1])
    if not survey.environments:
        draw_line(_("No environments were found; `assistant setup` makes one."))
    if survey.cut_short:
        draw_line(_("There are more folders than could be searched; use --check to name an environment."), "dim")


def draw_environment(environment: EnvironmentSummary) -> None:
    """Print what an environment holds, its findings with remedies (its state if it has none), and how to undo."""
    _draw_summary(environment)
    if environment.size is not None:
        draw_line(_("    {size} MB on disk", size=environment.size // 10**6), "dim")
    if environment.findings:
        draw_findings(environment.findings)
    else:
        draw_line(f"    {environment.state}")
    if environment.undo:
        text = _("`assistant envs --undo {path}` undoes its last change.", path=quote(environment.path))
        draw_line(f"    {text} {undo_notice(environment.undo)}", "dim")


def draw_repair(repair: Repair) -> None:
    """Print the packages that a repair would change, its download and findings, and what it would mend and leave."""
    difference = repair.difference
    draw_line(_("What would change in {path}:", path=repair.path), "bold")
    for move in difference.moves:
        draw_line(f"  {render(move.words)}")
    draw_line(_("  {size:.1f} MB to download", size=megabytes(difference.download)), "dim")
    draw_findings(difference.findings)
    for finding in repair.mends:
        console.print(Text.assemble(("✓ ", "green"), say("would be mended: {problem}", problem=finding.text)))
    for finding in repair.remains:
        console.print(Text.assemble(("! ", "yellow"), say("would remain: {problem}", problem=finding.text)))


def _draw_summary(environment: EnvironmentSummary) -> None:
    """Print an environment's name, what manages it, its torch, Python and state in a line, its path in another."""
    sign, style = SIGNS[environment.light]
    holds = [render(environment.keeper)]
    holds += [f"PyTorch {render(environment.build)}"] if environment.torch else []
    holds += [f"Python {environment.python}"] if environment.python else []
    word = (f"  ({render(environment.light.word)})", style)
    console.print(Text.assemble((f"{sign} ", style), (environment.name, "bold"), f"  {', '.join(holds)}", word))
    console.print(Text(f"    {environment.path}", style="dim"), soft_wrap=True)


@click.command()
@click.option("--target", default="", metavar="PATH", help="One environment; by default all that are known.")
@json_option
@click.pass_context
def recover(context: click.Context, /, target: str, *, as_json: bool) -> None:
    """Roll back what an interrupted installation left; harmless if there is nothing."""
    host = LiveHost()
    tools = Tools(host, Sources(host), lambda _event: None, CancelToken())
    done = take_back(tools, Path(target).expanduser().absolute() if target else None)
    if as_json:
        echo_json(done, indent=0)
    elif not done:
        echo(_("There is nothing to roll back."))
    for one in done:
        if one.error:
            echo(sentences((as_typed(one.error), as_typed(one.hint))), err=True)
        elif not as_json:
            text = _("{path} has been removed.") if one.is_removed else _("{path} has been restored.")
            echo(text.format(path=one.target))
            if one.beside:
                echo(_("Something else stands there by now; the environment is in {path}.", path=one.beside))
    context.exit(1 if any(one.error for one in done) else 0)


@click.command()
@click.argument("path")
@click.option("--off", is_flag=True, help="Take back all that guard or an installation wrote to this end.")
@yes_option(help="Write it without a question.")
@json_option
def guard(path: str, *, off: bool, yes: bool, as_json: bool) -> None:
    """Keep the torch of an environment: a later `pip install` or `uv pip install` is refused if it would replace it.

    PATH is the environment's folder, or that of its project. A project of uv then says so in its pyproject.toml.
    """
    environment = EnvironmentFolder.at(path)
    if off:
        environment.unguard()
        _report(environment, as_json=as_json)
        return
    site = Site.ask(environment.path, LiveHost())
    if not yes:
        text = _(
            "This writes constraints and pip's configuration to {path}, and adds two lines to each script that "
            "activates it. Nothing is installed."
        )
        draw_line(text.format(path=environment.path))
        for file, lines in environment.lines_outside(site).items():
            draw_line(_("It also adds these lines to {file}:", file=file))
            echo(lines)
        if not ask(_("Write them?"), default=True, err=True):
            raise Cancelled(_("Nothing was changed."), hint=_("Run the command again when you are ready."))
    found = environment.guard(site)
    _report(environment, as_json=as_json)
    if not as_json:
        draw_findings(found)


def _report(environment: EnvironmentFolder, *, as_json: bool) -> None:
    """Print what an environment keeps now."""
    path, pins = environment.path, environment.guards
    if as_json:
        echo_json({"path": str(path), "pins": pins})
    elif pins:
        draw_line(_("✓ pip and uv keep {pins} in {path}.", pins=", ".join(pins), path=path))
        draw_line(_("In a terminal, activate it anew: uv heeds what its script sets."), "dim")
    else:
        draw_line(_("Nothing holds torch in {path} any more.", path=path))

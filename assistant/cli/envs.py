"""`assistant envs` and `recover`: the environments on this machine, and what a killed installation left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from assistant.cli.console import console, draw_rows
from assistant.cli.draw import draw_findings
from assistant.cli.journey import Work
from assistant.cli.options import source_options
from assistant.cli.terminal import ask, echo, echo_json, json_option, yes_option
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.i18n import _, as_typed, render, say, sentences
from assistant.install import EnvironmentFolder, Sources, Tools
from assistant.install import recover as take_back
from assistant.model.errors import Cancelled
from assistant.model.shell import quoted
from assistant.session.answers import of_environment, of_environments
from assistant.session.environments import compared, looked, repaired, surveyed, undone
from assistant.session.state import State, Surveyed
from assistant.session.survey import EnvironmentSummary, Light, Repair, Survey, kept_for_undo, megabytes


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
    "lets_go",
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
    check, mend, undo, lets_go = (options.pop(name) for name in ("check", "mend", "undo", "lets_go"))
    if sum(map(bool, (check, mend, undo, lets_go, prune or remove))) > 1:
        raise click.UsageError(say("Only one of --check, --mend, --undo, --forget and --remove can be done at a time."))
    if prune or remove:
        _tidy(remove, prune=prune, yes=yes, as_json=as_json)
    elif lets_go:
        _let_go(lets_go, as_json=as_json)
    elif every or check or mend or undo:
        work = Work(Sources(LiveHost(), **options), quiet=as_json, asks=not yes)
        _visit(work, {looked: check, compared: mend, undone: undo}, yes=yes, as_json=as_json)
    else:
        host = LiveHost()
        found = [one for made in EnvironmentFolder.all_made() if (one := made.describe(host))]
        if as_json:
            echo_json(found)
        elif not found:
            echo(as_typed(say("There are no environments yet; `assistant setup` makes one.")))
        else:
            headings = (say("Name"), say("Backend"), "PyTorch", "Python", say("Size"), say("State"))
            words = {"good": say("good"), "changed": say("changed since"), "broken": say("broken")}
            rows = []
            for one in found:
                state = words[one.health] + (f": {', '.join(one.differs)}" if one.differs else "")
                rows.append(
                    (one.name, one.backend, one.torch, one.python, say("{size} MB", size=one.size // 10**6), state)
                )
            draw_rows(headings, rows)
            for one in found:
                kernels = say(", kernels: {names}", names=", ".join(one.kernels)) if one.kernels else ""
                echo(f"  {one.name}: {one.path}{kernels}")


def _tidy(remove: str, *, prune: bool, yes: bool, as_json: bool) -> None:
    freed = Sources.delete_downloads() if prune else None
    if remove and not yes:
        question = say("Remove {name} and all that is in it?", name=remove)
        if not ask(question, default=False, err=True):
            raise Cancelled(_("Nothing was removed."))
    removed = None
    if remove:
        environment = EnvironmentFolder.named(remove)
        environment.remove()
        removed = str(environment.path)
    if as_json:
        echo_json({"removed": removed, "freed_bytes": freed})
        return
    if freed is not None:
        echo(say("Freed {size} MB.", size=freed // 10**6))
    if removed:
        echo(say("Removed {path}.", path=removed))


def _let_go(path: str, *, as_json: bool) -> None:
    freed = EnvironmentFolder.at(path).forget_last_change()
    echo_json({"freed_bytes": freed}) if as_json else echo(say("Freed {size} MB.", size=freed // 10**6))


Visit = Callable[[State, Tools], Surveyed]


def _visit(work: Work, asked: dict[Visit, str], *, yes: bool, as_json: bool) -> None:
    """List the environments, or do what is asked for with one of them."""
    visit, path = next(((visit, path) for visit, path in asked.items() if path), (surveyed, ""))
    state = State().with_environments(picked=str(EnvironmentFolder.at(path).path) if path else "")

    def run(visit: Visit) -> State:
        with work.shown(takes_back=visit in {undone, repaired}):
            found = visit(state, work.tools)
        return state.with_environments(survey=found.survey, repair=found.repair)

    state = run(visit)
    repair = state.environments.repair
    if repair and (yes or not as_json):
        _agree(repair, yes=yes, as_json=as_json)
        state = run(repaired)
    survey = state.environments.survey or Survey()
    known = survey.of(state.environments.picked)
    if as_json:
        echo_json(of_environment(known, survey, repair) if known else of_environments(survey))
    elif known:
        draw_findings(survey.notes)
        draw_environment(known)
    else:
        draw_environments(survey.environments, cut_short=survey.cut_short)


def _agree(repair: Repair, *, yes: bool, as_json: bool) -> None:
    """Show what would change, and ask; raise `Cancelled` where the user says no."""
    if not as_json:
        draw_repair(repair)
    if not yes and not ask(say("Change these packages now?"), default=False, err=True):
        raise Cancelled(_("Nothing was changed."), hint=_("Run the command again when you are ready."))


SIGNS = {
    Light.GOOD: ("✓", "green"),
    Light.WARNING: ("!", "yellow"),
    Light.BAD: ("✗", "red"),
    Light.UNKNOWN: ("?", "dim"),
}


def draw_environments(found: Iterable[EnvironmentSummary], *, cut_short: bool) -> None:
    """Print three lines for each environment: its name and what it holds, where it is, how it stands."""
    found = tuple(found)
    for one in found:
        _draw_one(one)
        console.print(Text(f"    {as_typed(one.state)}", style="" if one.light is Light.GOOD else SIGNS[one.light][1]))
    if not found:
        console.print(Text(as_typed(say("No environments were found; `assistant setup` makes one."))))
    if cut_short:
        console.print(
            Text(say("There are more folders than could be searched; use --check to name an environment."), style="dim")
        )


def draw_environment(one: EnvironmentSummary) -> None:
    """Print all that is known of an environment, with what would fix it."""
    _draw_one(one)
    if one.size is not None:
        console.print(Text(say("    {size} MB on disk", size=one.size // 10**6), style="dim"))
    if one.findings:
        draw_findings(one.findings)
    else:
        console.print(Text(f"    {as_typed(one.state)}"))
    if one.undo:
        text = say("`assistant envs --undo {path}` undoes its last change.", path=quoted(one.path))
        console.print(Text(f"    {as_typed(text)} {render(kept_for_undo(one.undo))}", style="dim"))


def draw_repair(repair: Repair) -> None:
    """Print the difference that a change would make, what it mends and what it leaves."""
    difference = repair.difference
    console.print(Text(say("What would change in {path}:", path=repair.path), style="bold"))
    for move in difference.moves:
        console.print(Text(f"  {render(move.words)}"))
    console.print(Text(say("  {size:.1f} MB to download", size=megabytes(difference.download)), style="dim"))
    draw_findings(difference.findings)
    for finding in repair.mends:
        console.print(Text.assemble(("✓ ", "green"), say("would be mended: {problem}", problem=finding.text)))
    for finding in repair.remains:
        console.print(Text.assemble(("! ", "yellow"), say("would remain: {problem}", problem=finding.text)))


def _draw_one(one: EnvironmentSummary) -> None:
    sign, style = SIGNS[one.light]
    known = [render(one.keeper)]
    known += [f"PyTorch {render(one.build)}"] if one.torch else []
    known += [f"Python {one.python}"] if one.python else []
    named = ((f"{sign} ", style), (one.name, "bold"), f"  {', '.join(known)}", (f"  ({render(one.light.word)})", style))
    console.print(Text.assemble(*named))
    console.print(Text(f"    {one.path}", style="dim"), soft_wrap=True)


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
        echo(say("There is nothing to roll back."))
    for one in done:
        if one.error:
            echo(sentences((as_typed(one.error), as_typed(one.hint))), err=True)
        elif not as_json:
            text = say("{path} has been removed.") if one.is_removed else say("{path} has been restored.")
            echo(text.format(path=one.target))
            if one.beside:
                echo(say("Something else stands there by now; the environment is in {path}.", path=one.beside))
    context.exit(1 if any(one.error for one in done) else 0)

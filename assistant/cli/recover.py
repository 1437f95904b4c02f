"""`assistant recover`: roll back what an interrupted installation left."""

from __future__ import annotations

from pathlib import Path

import click

from assistant.cli.terminal import echo, echo_json, json_option
from assistant.i18n import as_typed, say, sentences
from assistant.install import Outcome, Recovered, give_up
from assistant.install import recover as take_back


@click.command()
@click.option("--target", default="", metavar="PATH", help="One environment; by default all that are known.")
@click.option(
    "--give-up", "gives_up", is_flag=True, help="Forget what cannot be rolled back, and list what is left where."
)
@json_option
@click.pass_context
def recover(context: click.Context, /, target: str, *, gives_up: bool, as_json: bool) -> None:
    """Roll back what an interrupted installation left; harmless if there is nothing."""
    only = Path(target).expanduser().absolute() if target else None
    if gives_up:
        forgotten = give_up(only)
        if as_json:
            echo_json(forgotten, indent=0)
        elif not forgotten:
            echo(say("There is nothing to give up."))
        else:
            _print_forgotten(forgotten)
        return
    done = take_back(only)
    if as_json:
        echo_json(done, indent=0)
    elif not done:
        echo(say("There is nothing to roll back."))
    for one in done:
        _print_outcome(one, as_json=as_json)
    context.exit(1 if any(one.outcome is Outcome.FAILED for one in done) else 0)


def _print_outcome(one: Recovered, *, as_json: bool) -> None:
    if one.outcome is Outcome.FAILED:
        echo(sentences((as_typed(one.error), as_typed(one.hint))), err=True)
    elif not as_json:
        text = {
            Outcome.TAKEN_BACK: say("{path} has been restored."),
            Outcome.STANDS: say("The installation in {path} is complete and stays; its leftovers have been removed."),
            Outcome.REMOVED: say("{path} has been removed."),
        }[one.outcome]
        echo(text.format(path=one.target))
        for path in one.kept:
            echo(say("Files that were not part of the installation have been moved to {path}.", path=path))


def _print_forgotten(found: dict[str, tuple[str, ...]]) -> None:
    for target, left in found.items():
        echo(say("The unfinished installation in {path} is forgotten.", path=target))
        for path in left:
            echo(say("  {path} is still there; delete it when you no longer need its contents.", path=path))

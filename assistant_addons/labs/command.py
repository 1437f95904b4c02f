"""`assistant labs`: play a lab in any terminal and editor, and make a table of a class's results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assistant.api import render, say
from assistant.api.system import require_extra
from assistant.api.terminal import echo, echo_json, json_option
from assistant_addons.labs.words import needs_of, opening_of, result_line

if TYPE_CHECKING:
    from assistant_addons.labs.play import Play

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group()
def labs() -> None:
    """Break-and-fix labs for teaching troubleshooting."""


def _lab_options(command: Callable[..., object]) -> Callable[..., object]:
    folder = click.option(
        "--folder", type=_FOLDER, help="The lab's folder; by default the current one, or labs-work/KEY below it."
    )
    return click.argument("key", default="")(folder(command))


def _play(key: str, folder: Path | None, **given: Any) -> Play:  # noqa: ANN401 - what a lab takes
    from assistant_addons.labs.play import play_at  # noqa: PLC0415 - `--help` needs no lab

    require_extra("labs")
    return play_at(key, folder, report=lambda text: echo(text, err=True), **given)


@labs.command("list")
@json_option
def list_labs(*, as_json: bool) -> None:
    """List the labs: how long each takes, and what it needs."""
    from assistant_addons.labs.definition import labs  # noqa: PLC0415 - `--help` needs no lab

    shown = ("minutes", "files", "systems", "python", "needs")
    if as_json:
        echo_json(
            [
                {
                    "key": key,
                    "title": str(one.title),
                    "task": str(one.task),
                    **{name: getattr(one, name) for name in shown},
                }
                for key, one in labs().items()
            ]
        )
        return
    for key, one in labs().items():
        minutes = say("{count} min", count=one.minutes)
        echo("  ".join(filter(None, [f"{key:20}", f"{minutes:8}", str(one.title), needs_of(one)])))


@labs.command()
@_lab_options
@click.option("--learner", default="", metavar="NAME", help="Whose result it is, for a teacher's table.")
def start(key: str, folder: Path | None, learner: str) -> None:
    """Make a lab's folder with a fault in it; again: start over."""
    play = _play(key, folder, learner=learner)
    play.start()
    echo(opening_of(play))


@labs.command()
@_lab_options
def hint(key: str, folder: Path | None) -> None:
    """Show the next hint, which costs two of ten points."""
    echo(_play(key, folder).hint())


@labs.command()
@_lab_options
@click.option("--is", "cause", required=True, metavar="CAUSE", help="The cause, by its key.")
@click.option(
    "--because", default="", metavar="WORDS", help="What shows it: a line that something printed, or your words."
)
def cause(key: str, folder: Path | None, cause: str, because: str) -> None:
    """Say what the cause is; your first answer counts."""
    echo(_play(key, folder).name(cause, because))


@labs.command()
@_lab_options
@json_option
@click.pass_context
def check(context: click.Context, key: str, folder: Path | None, *, as_json: bool) -> None:
    """Run what failed, in a process apart, and write the result beside the lab's folder."""
    play = _play(key, folder)
    fault, result = play.check()
    if as_json:
        echo_json({**{name: getattr(result, name) for name in result.__struct_fields__}, "fault": fault})
    else:
        echo(result_line(play, fault))
    context.exit(1 if fault else 0)


@labs.command()
@click.argument("folder", type=_FOLDER)
@json_option
def table(folder: Path, *, as_json: bool) -> None:
    """Make a table and a page of the results in a folder: labs.csv and labs.html."""
    from assistant_addons.labs import table as made  # noqa: PLC0415 - `--help` needs no lab

    rows = made.read_results(folder)
    if as_json:
        echo_json(tuple(rows))
        return
    for path in made.write_table(folder, rows):
        echo(str(path))
    for row in rows:
        if row.fault:
            echo(render(row.fault), err=True)

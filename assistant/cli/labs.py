"""`assistant labs`: the list of labs, and the grades of a folder of learners' notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assistant.cli.terminal import echo, echo_json, json_option
from assistant.i18n import _, render, say
from assistant.model.errors import BadInput

if TYPE_CHECKING:
    from assistant.labs import Grade  # `--help` needs no notebook library


@click.group()
def labs() -> None:
    """Break-and-fix labs for teaching troubleshooting."""


@labs.command("list")
@json_option
def list_labs(*, as_json: bool) -> None:
    """List the labs."""
    from assistant.labs import texts  # noqa: PLC0415 - `--help` needs no notebook library

    if as_json:
        echo_json(tuple(texts().values()))
        return
    for text in texts().values():
        echo(f"{text.key:20} {say(text.title)}")


@labs.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--run", is_flag=True, help="Run a copy of each notebook first; otherwise its saved outputs are trusted.")
@click.option("--network", is_flag=True, help="Let the notebooks reach the network: some labs install packages.")
@click.option(
    "--limit", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="How long one notebook may run."
)
@click.option(
    "--i-trust-these", "trusted", is_flag=True, help="Run them without a sandbox: they can do anything that you can."
)
@json_option
@click.pass_context
def check(
    context: click.Context,
    folder: Path,
    limit: float | None,
    *,
    run: bool,
    network: bool,
    trusted: bool,
    as_json: bool,
) -> None:
    """Grade a folder of learners' notebooks."""
    from assistant.host.extras import require  # noqa: PLC0415 - the list of labs needs no extra
    from assistant.labs import grade  # noqa: PLC0415 - likewise

    require("lab")
    if run:
        from assistant.labs.rerun import rerun  # noqa: PLC0415 - likewise

        found = list(rerun(folder, trusted=trusted, network=network, seconds=limit))
    else:
        found = grade(folder)
    if as_json:
        echo_json(tuple(found))
    elif found:
        _draw(found)
    else:
        raise BadInput(
            _("There is no notebook in {folder}.", folder=folder),
            hint=_("Name the folder that holds the notebooks."),
        )
    if run and not network and not all(row.solved for row in found):
        echo(say("Labs that install packages cannot be solved without the network; allow it with --network."), err=True)
    context.exit(0 if found and all(row.solved for row in found) else 1)


@labs.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--labs",
    "keys",
    multiple=True,
    metavar="KEY",
    help="A lab of the course; name each one that you want. Default: all.",
)
@click.option(
    "--roster", type=click.Path(path_type=Path), metavar="CSV", help="The learners: id, last_name, first_name, email."
)
@click.option(
    "--exchange", type=click.Path(path_type=Path), metavar="DIR", help="The folder through which learners hand in."
)
def course(folder: Path, keys: tuple[str, ...], roster: Path | None, exchange: Path | None) -> None:
    """Write a course for nbgrader into a new folder."""
    from assistant.host.extras import require  # noqa: PLC0415 - the list of labs needs no extra
    from assistant.labs.course.writing import write_course  # noqa: PLC0415 - likewise

    require("course" if roster else "lab")
    write_course(folder, keys, roster=roster, exchange=exchange)
    echo(say("The course is in {folder}; its README.md says how to go on.", folder=folder))


@labs.command()
@click.option(
    "--shared", type=click.Path(path_type=Path), metavar="DIR", required=True, help="A new folder that all can read."
)
@click.option("--labs", "keys", multiple=True, metavar="KEY", help="A lab that will be played. Default: all.")
def prepare(shared: Path, keys: tuple[str, ...]) -> None:
    """Make one environment and one folder of wheels for all learners of a machine."""
    from assistant.labs import prepare as room  # noqa: PLC0415 - the list of labs needs no installer
    from assistant.labs.shared import VARIABLE  # noqa: PLC0415 - likewise

    made = room.prepare(shared, keys, lambda text: echo(render(text), err=True))
    echo(say("Labs use it wherever this variable is set: {setting}", setting=f"{VARIABLE}={made.folder}"))


def _draw(found: Sequence[Grade]) -> None:
    from assistant.cli.table import draw_rows  # noqa: PLC0415 - --json need not load the drawing library

    solved = {True: say("mended"), False: say("not mended")}
    rows = [(row.notebook, row.lab, row.fault or solved[row.solved], str(row.points)) for row in found]
    draw_rows((say("Notebook"), say("Lab"), say("Result"), say("Points")), rows)

"""`assistant labs`: the list of labs, and the grades of a folder of learners' notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assistant.cli.terminal import echo, echo_json, json_option
from assistant.i18n import _, say
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


def _draw(found: Sequence[Grade]) -> None:
    from assistant.cli.table import draw_rows  # noqa: PLC0415 - --json need not load the drawing library

    solved = {True: say("mended"), False: say("not mended")}
    rows = [(row.notebook, row.lab, row.fault or solved[row.solved], str(row.points)) for row in found]
    draw_rows((say("Notebook"), say("Lab"), say("Result"), say("Points")), rows)

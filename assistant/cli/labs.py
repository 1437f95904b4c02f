"""`assistant labs`: the list of labs, and the grades of a folder of learners' notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assistant.cli.terminal import echo, echo_json
from assistant.i18n import _, say
from assistant.model.errors import BadInput

if TYPE_CHECKING:
    from assistant.labs import Grade  # `--help` needs no notebook library


@click.group()
def labs() -> None:
    """Break-and-fix labs for teaching troubleshooting."""


@labs.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
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
@click.option("--run", is_flag=True, help="Run each notebook first, in a copy; else what it holds is believed.")
@click.option("--network", is_flag=True, help="Let them reach the network: some labs install packages.")
@click.option("--limit", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="How long one may run.")
@click.option("--i-trust-these", "trusted", is_flag=True, help="Run them without a sandbox, as programs of yours.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
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
        echo(say("Labs that install packages cannot be mended without the network; --network lets them."), err=True)
    context.exit(0 if found and all(row.solved for row in found) else 1)


def _draw(found: Sequence[Grade]) -> None:
    from rich.table import Table  # noqa: PLC0415 - --json need not load the drawing library
    from rich.text import Text  # noqa: PLC0415 - likewise

    from assistant.cli.console import console  # noqa: PLC0415 - likewise

    table = Table(box=None, padding=(0, 1))
    for heading in (say("Notebook"), say("Lab"), say("Result"), say("Points")):
        table.add_column(heading, overflow="fold")
    for row in found:
        told = row.fault or (say("mended") if row.solved else say("not mended"))
        table.add_row(*map(Text, (row.notebook, row.lab, told, str(row.points))))
    console.print(table)

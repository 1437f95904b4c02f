"""`assistant export`: the files of the last setup, or a setup package for PCs that are not here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.text import Text

from assistant.cli.journey import Journey
from assistant.cli.options import request_options, source_options
from assistant.cli.packages import write_packages
from assistant.cli.table import draw_rows
from assistant.cli.terminal import echo, echo_json, json_option
from assistant.export import FORMATS
from assistant.i18n import as_typed, say
from assistant.model.record import replace
from assistant.session.resume import last_setup
from assistant.session.state import Task


@click.command()
@click.argument("formats", nargs=-1, metavar="[FORMAT]...")
@click.option("--to", "folder", default="", metavar="DIR", help="Folder of the exported files.")
@click.option(
    "--machine",
    "machines",
    multiple=True,
    metavar="NAME|FILE",
    help="Write a setup package for such a PC instead: a recorded machine, or a JSON file; may be given several times.",
)
@request_options
@source_options
@click.option("--force", is_flag=True, help="Replace files of the same names, whoever wrote them.")
@click.option("--list", "listing", is_flag=True, help="List the formats, and write nothing.")
@json_option
def export(
    formats: tuple[str, ...],
    folder: str,
    machines: tuple[str, ...],
    *,
    force: bool,
    listing: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - those of `request_options` and `source_options`
) -> None:
    """Write the configuration of the last setup to files, or setup packages for other PCs."""
    if listing:
        _list(as_json=as_json)
        return
    if machines:
        if formats or not folder:
            raise click.UsageError(say("--machine needs --to DIR, and takes no format."))
        place = Path(folder).expanduser().absolute()
        written = write_packages(machines, place, options, force=force, quiet=as_json)
        if as_json:
            echo_json(tuple(map(str, written)), indent=0)
        else:
            echo(say("{page} shows which PC gets which package.", page=written[0]))
        return
    if any(options.values()):
        raise click.UsageError(say("Options for the plan and its sources work only with --machine."))
    state = replace(last_setup(), folder=folder, formats=formats, overwrite=force)
    journey = Journey(state, quiet=as_json, asks=True)
    journey.run(Task.EXPORT)
    if as_json:
        echo_json(journey.state.exported, indent=0)


def _list(*, as_json: bool) -> None:
    """Print the formats, and for the terminal which of them need more than a plan."""
    described = {name: kind.description for name, kind in FORMATS.items()}
    if as_json:
        echo_json(described)
        return
    rows = []
    for name, kind in FORMATS.items():
        text = described[name]
        if kind.installed:
            text = say("{purpose} (only once an environment was made)", purpose=text)
        rows.append((Text(name, style="bold"), as_typed(text)))
    draw_rows((), rows)

"""`assistant export`: the files of the last setup."""

from __future__ import annotations

import click
from rich.text import Text

from assistant.cli.console import draw_rows
from assistant.cli.journey import Journey
from assistant.cli.terminal import echo_json, json_option
from assistant.export import FORMATS
from assistant.i18n import as_typed
from assistant.session.state import Task
from assistant.session.store import last_setup


@click.command()
@click.argument("formats", nargs=-1, metavar="[FORMAT]...")
@click.option("--to", "folder", default="", metavar="DIR", help="Folder of the exported files.")
@click.option("--force", is_flag=True, help="Replace files of the same names, whoever wrote them.")
@click.option("--list", "listing", is_flag=True, help="List the formats, and write nothing.")
@json_option
def export(formats: tuple[str, ...], folder: str, *, force: bool, listing: bool, as_json: bool) -> None:
    """Write the configuration of the last setup to files."""
    if listing:
        _list(as_json=as_json)
        return
    state = last_setup().with_choices(folder=folder, formats=formats, overwrite=force)
    journey = Journey(state, quiet=as_json, asks=True)
    journey.run(Task.EXPORT)
    if as_json:
        echo_json(journey.state.exported.files, indent=0)


def _list(*, as_json: bool) -> None:
    """Print the formats."""
    described = {name: kind.description for name, kind in FORMATS.items()}
    if as_json:
        echo_json(described)
    else:
        draw_rows((), [(Text(name, style="bold"), as_typed(text)) for name, text in described.items()])

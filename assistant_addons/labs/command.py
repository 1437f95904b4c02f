"""`assistant labs`: the list of labs, their notebooks, and the grades of learners' notebooks."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assistant.api import BadInput, _, render, say
from assistant.api.journey import draw_rows
from assistant.api.system import require_extra
from assistant.api.terminal import echo, echo_json, json_option
from assistant.api.texts import cell

if TYPE_CHECKING:
    from assistant_addons.labs.definition import LabText
    from assistant_addons.labs.journal import Grade


@click.group()
def labs() -> None:
    """Break-and-fix labs for teaching troubleshooting."""


@labs.command("list")
@json_option
def list_labs(*, as_json: bool) -> None:
    """List the labs: how long each takes, and what it needs."""
    from assistant_addons.labs.definition import labs  # noqa: PLC0415 - `--help` needs no lab
    from assistant_addons.labs.lab import needs_of  # noqa: PLC0415 - likewise

    if as_json:
        echo_json([_shown(key, definition.text()) for key, definition in labs().items()])
        return
    for key, definition in labs().items():
        text = definition.text()
        minutes = say("{count} min", count=text.minutes)
        echo("  ".join(filter(None, [f"{key:20}", f"{minutes:8}", text.title, needs_of(text)])))


def _shown(key: str, text: LabText) -> dict[str, object]:
    """Return what a learner may see of a lab before it is solved."""
    shown = ("title", "minutes", "objectives", "story", "files", "systems", "python", "needs")
    return {"key": key, **{name: getattr(text, name) for name in shown}}


@labs.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--csv", "as_csv", is_flag=True, help="Print a table with a row for each learner and lab.")
@json_option
@click.pass_context
def check(context: click.Context, folder: Path, *, as_csv: bool, as_json: bool) -> None:
    """Grade a folder of learners' notebooks."""
    from assistant_addons.labs.journal import grade  # noqa: PLC0415 - `--help` needs no lab

    require_extra("labs")
    found = grade(folder)
    if not found and not as_json:
        raise BadInput(
            _("There is no notebook in {folder}.", folder=folder),
            hint=_("Name the folder that holds the notebooks."),
        )
    if as_json:
        echo_json(tuple(found))
    elif as_csv:
        echo(_table(found).rstrip())
    else:
        _draw(found)
    echo(say("The points follow from the journals in the notebooks, which their owners can change."), err=True)
    context.exit(0 if found and all(row.solved for row in found) else 1)


@labs.command()
@click.argument("folder", type=click.Path(path_type=Path))
def notebooks(folder: Path) -> None:
    """Write the labs' notebooks into a folder."""
    from assistant_addons.labs.notebook import write_notebooks  # noqa: PLC0415 - `--help` needs no lab

    require_extra("labs")
    for path in write_notebooks(folder):
        echo(str(path))


def _table(found: Sequence[Grade]) -> str:
    columns = ("learner", "lab", "points", "solved", "hints", "misses", "aids", "minutes")
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow([*columns, "remarks", "notebook"])
    for row in found:
        plain = [getattr(row, name) for name in columns]
        writer.writerow([*map(cell, plain), cell(render(row.fault)), cell(row.notebook)])
    return table.getvalue()


def _draw(found: Sequence[Grade]) -> None:
    rows = [
        (row.learner, row.lab, "\n".join(filter(None, [_result(row), render(row.fault)])), str(row.points))
        for row in found
    ]
    draw_rows((say("Learner"), say("Lab"), say("Result"), say("Points")), rows)


def _result(row: Grade) -> str:
    return say("fixed") if row.solved else say("not fixed")

"""`assistant fleet`: one record for each of many machines, and one report on all of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from assistant.cli.apply import CONFIG_LIMIT
from assistant.cli.inputs import host_of, read_text, replay_option, standard_input
from assistant.cli.planning import plan_tools
from assistant.cli.terminal import echo, echo_json, echo_record, json_option
from assistant.export import read_config
from assistant.fleet import (
    FORMATS,
    LONGEST_NAME,
    Format,
    own_name,
    read_lines,
    read_records,
    rows_of,
    summed_up,
    take_record,
    text_of,
    write_record,
    write_report,
)
from assistant.i18n import _, say
from assistant.model.errors import BadInput, unwritable
from assistant.session.store import Store


@click.group()
def fleet() -> None:
    """Many machines: a record of each, and one report on all of them."""


@fleet.command()
@click.option("--target", default="", metavar="PATH", help="The environment to verify; by default the last setup's.")
@click.option("--name", default="", metavar="NAME", help="What the machine is called; by default its own name.")
@click.option("--config", metavar="assistant.toml", help="Also compare with this exported configuration.")
@click.option(
    "--to",
    default="-",
    metavar="DIR|FILE|-",
    help="Write the record there, in a folder as NAME.json; by default it is printed ('-').",
)
@click.option("--no-verify", is_flag=True, help="Compute nothing; report machine, plan and packages only.")
@replay_option
@json_option
def record(
    target: str, name: str, config: str | None, to: str, replay: str | None, *, no_verify: bool, as_json: bool
) -> None:
    """Write one record of this machine for a report on many: facts, plan, environment, verification, problems."""
    host, last = host_of(replay), Store().environment()
    name = name or own_name(host) or Path(replay or "").stem
    if not name:
        raise BadInput(_("This machine has no name."), hint=_("Name it.", option="--name"))
    if len(name) > LONGEST_NAME:
        raise BadInput(_("A name has at most {limit} characters.", limit=LONGEST_NAME), hint=_("Choose a shorter one."))
    exported = read_config(read_text(config, CONFIG_LIMIT), config) if config else None
    if not (target or exported or replay) and last:
        target = last.path
    told = _("The record names this machine {name}; all else that is private is taken out.", name=name, option="--name")
    echo(told, err=True)
    taken = take_record(host, name, plan_tools({}), target=target, config=exported, verify=not no_verify)
    if to == "-":
        echo_record(taken)
        return
    try:
        written = write_record(taken, Path(to).expanduser())
    except OSError as error:
        raise unwritable(to, error) from error
    if as_json:
        echo_json({"name": name, "file": str(written)})
    else:
        echo(say("Written: {file}", file=written))


@fleet.command()
@click.argument("place", metavar="FOLDER|FILE.jsonl")
@click.option("--to", metavar="FILE|-", help="Write the report there: FILE.html, .ipynb, .csv or .json.")
@click.option("--format", "kind", type=click.Choice(FORMATS), help="Its format, where the file's name does not tell.")
@json_option
def report(place: str, to: str | None, kind: Format | None, *, as_json: bool) -> None:
    """Report on many machines from their records: who has what, what fails, what mends it, what helps most."""
    now = datetime.now(UTC)
    named = Path(to).expanduser() if to and to != "-" else None
    if named and kind is None:
        kind = _format_of(named)
    read = read_lines(standard_input(), "-") if place == "-" else read_records(Path(place).expanduser(), named)
    found = summed_up(rows_of(read, now), now)
    if not found.machines:
        hint = say("Each machine writes one: `assistant fleet record --to {folder}`", folder=place)
        raise BadInput(_("There are no records in {folder}.", folder=place), hint=hint)
    if named:
        try:
            write_report(found, kind or "html", place, named)
        except OSError as error:
            raise unwritable(named, error) from error
    elif to:
        echo(text_of(found, kind or "html", place).rstrip("\n"))
        return
    if as_json:
        echo_json(found)
    elif named:
        echo(say("Written: {file}", file=named))
    else:
        from assistant.cli.draw_fleet import draw_fleet  # noqa: PLC0415 - --json need not load the drawing library

        draw_fleet(found)


def _format_of(path: Path) -> Format:
    """Return the format that a file's name tells; raise `BadInput` for another name."""
    found = next((kind for kind in FORMATS if path.suffix.lower() == f".{kind}"), None)
    if found is None:
        hint = _("Name its format.", option=f"--format {'|'.join(FORMATS)}")
        raise BadInput(_("The name {file} does not tell in which format to write.", file=path.name), hint=hint)
    return found

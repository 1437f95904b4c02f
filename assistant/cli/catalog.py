"""`assistant catalog`: show the tables that plans rest on, check their age, bring them up to date."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from typing import Any

import click
import msgspec

from assistant.catalog import Catalog, load_catalog
from assistant.catalog.editions import data_files, editions
from assistant.catalog.refresh import Refreshed, newer_than, refreshed
from assistant.catalog.user import write_tables
from assistant.cli.editions import age_lines, edition_lines, editions_as_values, rows_of_age
from assistant.cli.fold import folded
from assistant.cli.terminal import ask, echo, echo_json, json_option, yes_option
from assistant.host.live import LiveHost
from assistant.i18n import Message, _, as_typed, render, say, sentences
from assistant.install import Sources, check_index_url
from assistant.model.errors import BadInput, Cancelled, WorkFailed
from assistant.session.sources import list_builds

WIDTH = 100  # chosen: characters of a line, as rows are long; fewer in a narrow terminal
REFRESH_SECONDS = 20.0  # chosen: the longest pages of an index are a few MB


index_option = click.option(
    "--index-url",
    default="",
    metavar="URL",
    callback=lambda _context, _option, url: check_index_url(url) if url else url,
    help="Ask this index instead of torch's own.",
)


@click.group()
def catalog() -> None:
    """Show, check or refresh the tables that plans are based on."""


@catalog.command()
@click.argument("table", required=False)
@json_option
def show(table: str | None, *, as_json: bool) -> None:
    """List the tables and the editions that they are from, or print the rows of one table."""
    known = load_catalog()
    tables = _tables()
    if table:
        name = _named(table, tables)
        if as_json:
            echo_json(tables[name])
        else:
            echo("\n".join(_lines(tables[name])))
    elif as_json:
        listed = {name: {**one, "rows": len(one["rows"])} for name, one in tables.items()}
        echo_json({"editions": editions_as_values(), "remark": known.remark, "tables": listed})
    else:
        for line in edition_lines():
            echo(line)
        for name, one in tables.items():
            rows = say("{count} rows as of {day}", count=len(one["rows"]), day=one["as_of"])
            echo(f"{name:22} {rows}")
        echo(as_typed(say("`assistant catalog show TABLE` prints the rows of one, and where they come from.")))
    _remark(known)


@catalog.command()
@index_option
@json_option
def check(index_url: str, *, as_json: bool) -> None:
    """Check whether an index lists a newer torch than the tables do, and which rows are old."""
    known = load_catalog()
    listing = list_builds(Sources(LiveHost(), index_url=index_url, seconds=REFRESH_SECONDS), known, ("torch",))
    newer = newer_than(known.torch, listing.seen)
    if as_json:
        answer = {"known": known.newest_torch, "as_of": known.torch.releases.as_of, "newer": newer}
        echo_json({**answer, "not_checked": listing.unchecked, "remark": known.remark, "old": rows_of_age()})
        return
    if newer:
        text = say("! An index lists torch {newer}, and the tables end with {known}: run `assistant catalog refresh`.")
    elif listing.seen:
        text = say("Up to date: no index that answered lists a torch newer than {known}, the tables' newest of {day}.")
    else:
        text = say("No index answered, so it is not known whether there is a torch newer than {known}, as of {day}.")
    day = known.torch.releases.as_of
    echo(as_typed(text).format(newer=newer, known=known.newest_torch, day=day))
    _print_unchecked(listing.unchecked)
    for line in age_lines():
        echo(line)
    _remark(known)


@catalog.command()
@index_option
@yes_option(help="Write without asking.")
@json_option
def refresh(index_url: str, *, yes: bool, as_json: bool) -> None:
    """Update what the catalogue knows of torch, and of the packages that every plan adds, from the package indexes."""
    known, host = load_catalog(), LiveHost()
    basics = sorted({row.package for row in known.torch.basics.rows if row.cuda is None})
    listing = list_builds(Sources(host, index_url=index_url, seconds=REFRESH_SECONDS), known, ("torch", *basics))
    if not listing.seen:
        reasons = sentences(listing.unchecked)
        text = _("No index could be read, so the tables stay as they are. {reasons}", reasons=reasons)
        raise WorkFailed(text, hint=_("Check the network, or name an index with --index-url."))
    found = refreshed(known.torch, listing.seen, str(host.facts("identity")["date"]))
    if not as_json:
        _print_changes(found, known)
        _print_unchecked(listing.unchecked)
    path = None
    if found.changes:
        if not yes and not ask(say("Write these changes?"), default=True, err=True):
            raise Cancelled(_("Nothing was written."), hint=_("The tables stay as they are."))
        path = str(write_tables({"torch": found.tables}))
    if as_json:
        echo_json({"changes": found.changes, "not_checked": listing.unchecked, "written": path})
    elif path:
        echo(say("Written to {path}; plans are based on it from now on.", path=path))


def _tables() -> dict[str, dict[str, Any]]:
    """Return every table as plain values, named file.table."""
    texts = {name: editions().of(name).text(name) for name in data_files()}
    files = {name: msgspec.json.decode(text, type=dict[str, Any]) for name, text in texts.items()}
    return {f"{name}.{title}": table for name, tables in files.items() for title, table in tables.items()}


def _named(wanted: str, tables: dict[str, dict[str, Any]]) -> str:
    fitting = [name for name in tables if wanted == name or wanted in name.split(".")]
    if len(fitting) != 1:
        raise BadInput(
            _("'{name}' is not the name of one table.", name=wanted),
            hint=_("Choose one of: {names}.", names=", ".join(fitting or tables)),
        )
    return fitting[0]


def _lines(table: dict[str, Any]) -> Iterable[str]:
    yield say("As of {day}, from:", day=table["as_of"])
    yield from (f"    {source}" for source in re.split(r"; | (?=https?:)", table["source"]))
    width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    for row in table["rows"]:
        known = "  ".join(f"{key}={_cell(value)}" for key, value in row.items() if value not in (None, "", [], {}))
        yield from folded(f"· {known}", width)


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_cell(inner)}" for key, inner in value.items()) + "}"
    return " ".join(map(_cell, value)) if isinstance(value, list | tuple) else str(value)


def _print_changes(found: Refreshed, known: Catalog) -> None:
    for change in found.changes:
        echo(f"+ {render(change)}")
    if not found.changes:
        text = say("The tables hold all that the indexes list; torch {version} is the newest (as of {day}).")
        echo(text.format(version=known.newest_torch, day=known.torch.releases.as_of))


def _print_unchecked(unchecked: Iterable[Message]) -> None:
    for sentence in unchecked:
        echo(f"! {render(sentence)}")


def _remark(known: Catalog) -> None:
    if known.remark:
        echo(as_typed(known.remark), err=True)

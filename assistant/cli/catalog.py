"""`assistant catalog`: show the tables that plans rest on, compare them with the indexes, bring them up to date."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from typing import Any

import click
import msgspec

from assistant.catalog import Catalog, load_catalog
from assistant.catalog.refresh import newer_than, write_tables
from assistant.catalog.tables import data_files, shipped_text, user_tables
from assistant.cli.terminal import ask, echo, echo_json, folded, json_option, yes_option
from assistant.host.live import LiveHost
from assistant.i18n import Message, _, as_typed, render, say, sentences
from assistant.install import Sources, check_index_url
from assistant.model.errors import BadInput, Cancelled, WorkFailed
from assistant.model.record import to_json
from assistant.session.upkeep import Listing, looked_over, renewed

WIDTH = 100  # chosen: characters of a line, as rows are long; fewer in a narrow terminal


index_option = click.option(
    "--index-url",
    default="",
    metavar="URL",
    callback=lambda _context, _option, url: check_index_url(url) if url else url,
    help="Ask this index instead of torch's and AMD's own.",
)


@click.group()
def catalog() -> None:
    """Show, check or refresh the tables that plans are based on."""


@catalog.command()
@click.argument("table", required=False)
@json_option
def show(table: str | None, *, as_json: bool) -> None:
    """List the tables, or print the rows of one."""
    known = load_catalog()
    tables = _tables()
    if table:
        name = _named(table, tables)
        if as_json:
            echo_json(tables[name])
        else:
            echo("\n".join(_lines(tables[name])))
    elif as_json:
        listed = {
            name: {**one, "rows": len(one["rows"]), "refreshed": _is_refreshed(name)} for name, one in tables.items()
        }
        echo_json({"remark": known.remark, "tables": listed})
    else:
        for name, one in tables.items():
            text = _("{count} rows as of {day}")
            if _is_refreshed(name):
                text = _("{count} rows as of {day}, refreshed by you")
            echo(f"{name:22} {render(text.format(count=len(one['rows']), day=one['as_of']))}")
        echo(as_typed(say("`assistant catalog show TABLE` prints the rows of one, and where they come from.")))
    _remark(known)


@catalog.command()
@index_option
@json_option
@click.pass_context
def check(context: click.Context, index_url: str, *, as_json: bool) -> None:
    """Say what each index lists of torch, and what is new; exit with 1 if one cannot be asked."""
    known, host = load_catalog(), LiveHost()
    renewal = looked_over(Sources(host, index_url=index_url), known, _today(host))
    listing, new = renewal.listing, renewal.found.changes
    newer = newer_than(known.torch, listing.seen)
    if as_json:
        answer = {"known": known.newest_torch, "as_of": known.torch.releases.as_of, "newer": newer, "changes": new}
        asked = {"sources": listing.answers, "not_checked": listing.unchecked}
        echo_json({**answer, **asked, "remark": known.remark})
    else:
        _print_answers(listing)
        _print_news(new, known, whole=not listing.unchecked)
        if new:
            echo(as_typed(say("`assistant catalog refresh` writes that into the tables.")))
        _remark(known)
    context.exit(1 if listing.unchecked else 0)


@catalog.command()
@index_option
@yes_option(help="Write without asking.")
@json_option
def refresh(index_url: str, *, yes: bool, as_json: bool) -> None:
    """Update the tables from the package indexes."""
    known, host = load_catalog(), LiveHost()
    renewal = renewed(Sources(host, index_url=index_url), known, _today(host))
    found, listing, read = renewal
    if not listing.seen:
        reasons = sentences(listing.unchecked)
        text = _("No index could be read, so the tables stay as they are. {reasons}", reasons=reasons)
        raise WorkFailed(text, hint=_("Check the network, or name an index with --index-url."))
    if not as_json:
        _print_answers(listing)
        _print_news(found.changes, known, whole=not listing.unchecked)
        for sentence in read.unread:
            echo(f"! {render(sentence)}")
    path = None
    if found.changed:
        if not yes and not ask(say("Write these changes?"), default=True, err=True):
            raise Cancelled(_("Nothing was written."), hint=_("The tables stay as they are."))
        path = str(write_tables(found.changed))
    if as_json:
        answer = {"changes": found.changes, "not_checked": listing.unchecked, "not_read": read.unread}
        echo_json({**answer, "sources": listing.answers, "written": path})
    elif path:
        echo(say("Written to {path}; plans are based on it from now on.", path=path))


def _today(host: LiveHost) -> str:
    return str(host.facts("identity")["date"])


def _print_answers(listing: Listing) -> None:
    """Print one line for each source: what it lists of torch, or why it could not be asked."""
    texts = {
        "ok": say("✓ {source}: torch {newest} is the newest of its releases ({releases})."),
        "nothing": say("– {source}: lists no torch."),
        "unreachable": say("! {source}: not checked, since it cannot be reached ({reason})."),
    }
    for one in listing.answers:
        if one.moved:
            echo(say("! {source}: lists no torch; perhaps it has moved.", source=one.source))
            continue
        values = {"source": one.source, "releases": one.releases, "newest": one.newest, "reason": render(one.reason)}
        echo(texts[one.status].format(**values))


def _print_news(changes: Sequence[Message], known: Catalog, *, whole: bool) -> None:
    """Print what the indexes list beyond the tables; that nothing is new is claimed only where all of them answered."""
    for change in changes:
        echo(f"+ {render(change)}")
    if changes:
        return
    if whole:
        text = say("Up to date: no index lists more of torch than the tables of {day} know; {version} is the newest.")
    else:
        text = say("Nothing new was seen; whether there is a torch newer than {version} ({day}) is not known.")
    echo(text.format(version=known.newest_torch, day=known.torch.releases.as_of))


def _tables() -> dict[str, dict[str, Any]]:
    """Return every table as plain values, named file.table."""
    shipped = {name: msgspec.json.decode(shipped_text(name), type=dict[str, Any]) for name in data_files()}
    files = {**shipped, **msgspec.json.decode(to_json(user_tables().tables), type=dict[str, Any])}
    return {f"{name}.{title}": table for name, tables in files.items() for title, table in tables.items()}


def _is_refreshed(table: str) -> bool:
    """Return whether a table, named file.table, is one that this user refreshed."""
    return table.partition(".")[0] in user_tables().tables


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


def _remark(known: Catalog) -> None:
    if known.remark:
        echo(as_typed(known.remark), err=True)

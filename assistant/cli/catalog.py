"""`assistant catalog refresh`: bring the tables that plans rest on up to date with the package indexes."""

from __future__ import annotations

import click

from assistant.catalog import load_catalog
from assistant.catalog.tables import write_tables
from assistant.cli.terminal import ask, echo, echo_json, json_option, yes_option
from assistant.host.live import LiveHost
from assistant.i18n import _, render, say, sentences
from assistant.install import Sources
from assistant.model.errors import Cancelled, WorkFailed
from assistant.session.upkeep import renew

# That nothing is new is claimed only where all of the indexes answered.
UP_TO_DATE = _("Up to date: no index lists more of torch than the tables of {day} know; {version} is the newest.")
NOTHING_SEEN = _("Nothing new was seen; the newest torch that the tables of {day} know is {version}.")
_SIGNS = {"ok": "✓", "nothing": "–", "unchecked": "!"}


@click.group()
def catalog() -> None:
    """Keep the tables that plans are based on up to date."""


@catalog.command()
@click.option(
    "--index-url",
    default="",
    metavar="URL",
    callback=lambda _context, _option, url: Sources.check_index_url(url) if url else url,
    help="Ask this index instead of torch's and AMD's own.",
)
@yes_option(help="Write without asking.")
@json_option
def refresh(index_url: str, *, yes: bool, as_json: bool) -> None:
    """Update the tables from the package indexes."""
    known, host = load_catalog(), LiveHost()
    found, answers, _bytes = renew(Sources(host, index_url=index_url), known, str(host.facts("identity")["date"]))
    unchecked = [one.sentence for one in answers if one.status == "unchecked"]
    if not any(one.status == "ok" for one in answers):
        text = _("No release of torch was seen, so the tables stay as they are. {reasons}")
        hint = _("Check the network, or name an index with --index-url.")
        raise WorkFailed(text.format(reasons=sentences(unchecked)), hint=hint)
    if not as_json:
        for one in answers:
            echo(f"{_SIGNS[one.status]} {render(one.sentence)}")
        for change in found.changes:
            echo(f"+ {render(change)}")
        if not found.changes:
            echo((NOTHING_SEEN if unchecked else UP_TO_DATE).format(version=known.newest_torch, day=known.as_of))
    path = None
    if found.tables:
        if not yes and not ask(say("Write these changes?"), default=True, err=True):
            raise Cancelled(_("Nothing was written."), hint=_("The tables stay as they are."))
        path = str(write_tables(found.tables))
    if as_json:
        echo_json({"changes": found.changes, "not_checked": unchecked, "sources": answers, "written": path})
    elif path:
        echo(say("Written to {path}; plans are based on it from now on.", path=path))

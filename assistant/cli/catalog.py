"""`assistant catalog refresh`: bring the tables that plans rest on up to date with the package indexes."""

from __future__ import annotations

from collections.abc import Sequence

import click

from assistant.catalog import Catalog, load_catalog
from assistant.catalog.refresh import write_tables
from assistant.cli.terminal import ask, echo, echo_json, json_option, yes_option
from assistant.host.live import LiveHost
from assistant.i18n import Message, _, render, say, sentences
from assistant.install import Sources, check_index_url
from assistant.model.errors import Cancelled, WorkFailed
from assistant.session.upkeep import Listing, renewed


@click.group()
def catalog() -> None:
    """Keep the tables that plans are based on up to date."""


@catalog.command()
@click.option(
    "--index-url",
    default="",
    metavar="URL",
    callback=lambda _context, _option, url: check_index_url(url) if url else url,
    help="Ask this index instead of torch's and AMD's own.",
)
@yes_option(help="Write without asking.")
@json_option
def refresh(index_url: str, *, yes: bool, as_json: bool) -> None:
    """Update the tables from the package indexes."""
    known, host = load_catalog(), LiveHost()
    renewal = renewed(Sources(host, index_url=index_url), known, str(host.facts("identity")["date"]))
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

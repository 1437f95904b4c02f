"""What `assistant catalog` tells about the editions of the tables, and about the age of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

from assistant.catalog.ages import OLD_DAYS, Aged, old_rows
from assistant.catalog.editions import DISTRIBUTION, Edition, Origin, data_files, editions
from assistant.host.folders import shortened
from assistant.host.live import LiveHost
from assistant.i18n import Text, _, as_typed, ngettext


def editions_as_values() -> list[dict[str, Any]]:
    """Return every edition that can be used, with the data files that are taken from it."""
    return [
        {
            "origin": edition.origin.name.lower(),
            "version": edition.version,
            "as_of": str(edition.as_of),
            "folder": str(edition.folder),
            "in_force": files,
        }
        for edition, files in _in_force()
    ]


def edition_lines() -> Iterator[Text]:
    """Yield a line for each edition that can be used."""
    for edition, files in _in_force():
        if len(files) == len(data_files()):
            state = _("in force")
        elif files:
            state = _("in force for {count} of {total} data files", count=len(files), total=len(data_files()))
        else:
            state = _("not in force, as newer tables are there")
        where = shortened(str(edition.folder))
        yield _(
            "{origin}, as of {day}: {state} ({where})",
            origin=_name(edition),
            day=edition.as_of,
            state=state,
            where=where,
        )


def rows_of_age() -> tuple[Aged, ...]:
    """Return the rows that nobody has compared with their source for long."""
    return old_rows(date.fromisoformat(str(LiveHost().facts("identity")["date"])))


def age_lines() -> Iterator[Text]:
    """Yield a line for each table with old rows, and what to do about them."""
    old = rows_of_age()
    for row in old:
        yield ngettext(
            "! {count} row of {table} is older than {limit} days, as of {day}.",
            "! {count} rows of {table} are older than {limit} days, the oldest as of {day}.",
            row.rows,
            table=row.table,
            limit=OLD_DAYS,
            day=row.as_of,
        )
    if old:
        yield as_typed(
            _(
                "Newer ones come with `assistant catalog refresh`, with a newer {distribution}, or with a newer "
                "assistant.",
                distribution=DISTRIBUTION,
            )
        )
    else:
        yield _("No row of the tables is older than {limit} days.", limit=OLD_DAYS)


def _in_force() -> list[tuple[Edition, list[str]]]:
    """Return each edition with the data files that are taken from it."""
    now = editions()
    holders = {name: now.of(name) for name in data_files()}
    return [(edition, [name for name in holders if holders[name] is edition]) for edition in now.whole]


def _name(edition: Edition) -> Text:
    if edition.origin is Origin.INSTALLED:
        return _("Installed ({distribution} {version})", distribution=DISTRIBUTION, version=edition.version)
    return _("Refreshed by you") if edition.origin is Origin.REFRESHED else _("Shipped with the assistant")

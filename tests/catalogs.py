"""Catalogues for tests: as of a release of torch, so that literals stay right as the tables grow, or with other rows.

Tests of laws take the catalogue as it is shipped, and new rows are held to them.
"""

from __future__ import annotations

from functools import cache

from assistant.catalog import Catalog, load_catalog, number
from assistant.model.record import replace


@cache
def catalog_as_of(torch: str) -> Catalog:
    """Return the catalogue without later releases of torch, and without the builds that only those have.

    A row of AMD's for a release that was there before is a later one by its own `as_of`.
    """
    now = load_catalog()
    day, line = now.release(torch).date, number(torch)[:2]
    releases = [row for row in now.torch.releases.rows if row.date <= day]
    versions = {row.version for row in releases}
    builds = {build for row in releases for variants in row.variants.values() for build in variants}
    drivers = [row for row in now.cuda.drivers.rows if row.variant in builds]
    amd = [row for row in now.rocm.amd_releases.rows if row.torch in versions and row.as_of <= day]
    return with_tables(
        now,
        torch=with_rows(now.torch, releases=releases),
        cuda=with_rows(now.cuda, drivers=drivers, code=_code(now.cuda.code.rows, builds, line)),
        rocm=with_rows(now.rocm, amd_releases=amd, code=_code(now.rocm.code.rows, builds, line)),
    )


def _code(rows, builds, line):
    """Give the rows of these builds up to a release line; one that goes on after it ends there."""
    for row in rows:
        if row.variant in builds and number(row.first) <= line:
            yield replace(row, last=".".join(map(str, min(line, number(row.last)))))


def with_tables(catalog, **files):
    """Return a catalogue with other tables of some data files, by the names of those."""
    names = ("torch", "cuda", "rocm", "directml", "systems")
    return Catalog(*(files.get(name, getattr(catalog, name)) for name in names))


def with_rows(tables, **rows):
    """Return the tables of a data file with other rows, by the names of the tables."""
    return replace(tables, **{name: replace(getattr(tables, name), rows=tuple(rows[name])) for name in rows})


def with_release(catalog, row):
    """Return a catalogue with one more release of torch."""
    return with_tables(catalog, torch=with_rows(catalog.torch, releases=(*catalog.torch.releases.rows, row)))

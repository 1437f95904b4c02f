"""Catalogues for tests: as of a release of torch, so that literals stay right as the tables grow, or with other rows.

Tests of laws take the catalogue as it is shipped, and new rows are held to them.
"""

from __future__ import annotations

from functools import cache

from assistant.catalog import Catalog, load_catalog, number
from assistant.catalog.tables import Driver, TorchRelease
from assistant.model.record import replace


@cache
def catalog_as_of(torch: str) -> Catalog:
    """Return the catalogue without later releases of torch, and without the builds that only those have.

    A row of AMD's for a release that was there before is a later one by its own `as_of`.
    """
    now = load_catalog()
    day, line = now.release(torch).date, number(torch)[:2]
    releases = [row for row in now.table("torch.releases", TorchRelease).rows if row.date <= day]
    versions = {row.version for row in releases}
    builds = {build for row in releases for variants in row.variants.values() for build in variants}
    rows = {
        "torch.releases": releases,
        "cuda.drivers": [row for row in now.table("cuda.drivers", Driver).rows if row.variant in builds],
        "cuda.code": _code(now.cuda_code, builds, line),
        "rocm.code": _code(now.rocm_code, builds, line),
        "rocm.amd_releases": [row for row in now.amd_releases if row.torch in versions and row.as_of <= day],
    }
    return with_rows(now, rows)


def _code(rows, builds, line):
    """Give the rows of these builds up to a release line; one that goes on after it ends there."""
    for row in rows:
        if row.variant in builds and number(row.first) <= line:
            yield replace(row, last=".".join(map(str, min(line, number(row.last)))))


def with_tables(catalog, tables):
    """Return a catalogue with other tables, by their names."""
    return Catalog({**catalog.tables, **tables})


def with_rows(catalog, rows):
    """Return a catalogue with other rows of some tables, by the names of these."""
    tables = {name: replace(catalog.table(name, dict), rows=tuple(new)) for name, new in rows.items()}
    return with_tables(catalog, tables)


def with_release(catalog, row):
    """Return a catalogue with one more release of torch."""
    return with_rows(catalog, {"torch.releases": (*catalog.table("torch.releases", TorchRelease).rows, row)})

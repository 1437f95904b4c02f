"""What an environment is for: the packages that go beside torch, by purpose, and where they can be had."""

from __future__ import annotations

from collections.abc import Container
from functools import cache

from assistant.catalog.tables import Table, read_tables
from assistant.i18n import Message, _
from assistant.model.record import Record

MINIMAL = "minimal"  # the bundle without packages, which a request that names none means


class Bundle(Record, frozen=True):
    """A purpose: its packages, a title and a sentence for people (English, translated by gettext).

    `mb` is what its packages and theirs add to a download, in MB of 10**6 bytes; None is unknown.
    """

    key: str
    title: str
    lead: str
    requirements: tuple[str, ...] = ()
    mb: int | None = 0

    @property
    def name(self) -> Message:
        """The title in the language of whoever reads it."""
        return _(self.title)


class BundlePackage(Record, frozen=True):
    """A package of a bundle: the Python tags for which it and all that it needs have wheels, by platform.

    `pythons["any"]` holds for platforms that are not named.
    """

    package: str
    pythons: dict[str, tuple[str, ...]]


class BundleTables(Record, frozen=True):
    """The bundles, and their packages other than torch's own family."""

    bundles: Table[Bundle]
    packages: Table[BundlePackage]


@cache
def load_bundles() -> BundleTables:
    """Read the tables, once."""
    return read_tables("bundles", BundleTables)


def bundles() -> tuple[Bundle, ...]:
    """List the bundles, the smallest first."""
    return load_bundles().bundles.rows


def bundle_within(packages: Container[str]) -> str:
    """Return the key of the largest bundle of which nothing lacks in some packages; "" for none."""
    held = [one for one in bundles() if one.requirements and all(name in packages for name in one.requirements)]
    return max(held, key=lambda one: len(one.requirements)).key if held else ""

"""Which torch a search has to look for: bounds of the answers, and what only the tables of companions know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from assistant.catalog.companions import companion, version_ranges
from assistant.install import Need
from assistant.model.plan import Backend

Fits = Callable[[str], bool]


def within_all(bounds: Iterable[Need | SpecifierSet]) -> Fits:
    """Return the question whether a release of torch is within all bounds."""
    given = list(bounds)
    return lambda torch: all(
        one.allows(torch) if isinstance(one, Need) else one.contains(torch, prereleases=True) for one in given
    )


def within_one_of_each(bounds: Iterable[Iterable[SpecifierSet]]) -> Fits:
    """Return the question whether a release of torch is within one of each package's alternatives."""
    given = [tuple(one) for one in bounds]
    return lambda torch: all(any(one.contains(torch, prereleases=True) for one in some) for some in given)


def only_tables_know(name: str) -> bool:
    """Return whether the tables bind some versions of a package to a torch that their metadata does not name."""
    row = companion(name)
    return bool(row and any(one.only_in_table for one in row.ranges))


def computes_on(name: str, backend: Backend) -> bool:
    """Return whether a package computes on a backend, or on the CPU beside it, as far as the tables tell."""
    row = companion(name)
    return row is None or not row.backends or bool({backend.value, Backend.CPU.value}.intersection(row.backends))


def tied_by_tables(names: Iterable[str], versions: Mapping[str, str]) -> Fits:
    """Return the question whether the tables let a release of torch go with the versions that were taken."""
    return within_one_of_each(
        tuple(map(SpecifierSet, row.torch))
        for name in names
        if name in versions
        for row in version_ranges(canonicalize_name(name))
        if row.only_in_table and SpecifierSet(row.versions).contains(versions[name], prereleases=True)
    )

"""Companions of torch: which of their versions go with which torch, where their wheels lie, what they need.

The metadata of an index wins where it says more; these tables know what it leaves out. What they do not know they
leave open: unknown is neither a pair nor a refusal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from assistant.catalog.catalog import CLASH, load_catalog, runtime_builds
from assistant.catalog.tables import FAMILY, Row, SystemNeed, Trial, load_table, rows
from assistant.i18n import Message, Text, _
from assistant.model.plan import Backend
from assistant.model.record import Record, replace

Compiler = Literal["", "c++", "nvcc", "nvcc-for-cuda"]
_NEVER_BELOW = Version("0")


class VersionRange(Record, frozen=True):
    """Versions of a companion that go with the same torch, both as specifiers.

    `torch` holds alternatives, none for any torch; `evidence` is what tells so: a resolver sees "metadata", while
    "documents" (tables, notes and build files of the makers) and "seen" (public lock files) stand here alone. `cuda`
    are the CUDA majors that PyPI's wheel serves, none where it needs none or that is not known. `source` and `as_of`
    are the companion's own where they are empty.
    """

    versions: str
    torch: tuple[str, ...] = ()
    evidence: Literal["metadata", "documents", "seen"] = "metadata"
    cuda: tuple[int, ...] = ()
    source: str = ""
    as_of: str = ""
    note: str = ""

    @property
    def only_in_table(self) -> bool:
        """Whether these tables alone tie it to a torch, so that a resolver would take it beside any."""
        return self.evidence != "metadata" and bool(self.torch and self.versions)

    def goes_with(self, torch: str) -> bool:
        """Return whether it goes with a version of torch."""
        return not self.torch or any(_within(specifiers, torch) for specifiers in self.torch)

    @property
    def least(self) -> Version:
        """The oldest version that it can hold."""
        bounds = [
            bound.version.removesuffix(".*") for bound in _specifiers(self.versions) if bound.operator[0] in ">=~"
        ]
        return max(map(Version, bounds), default=_NEVER_BELOW)

    @property
    def end(self) -> str:
        """The version before which it ends, "" for none."""
        return next((bound.version for bound in _specifiers(self.versions) if bound.operator == "<"), "")


class BesideCuda(Record, frozen=True):
    """What makes a wheel for another CUDA work: packages to add, and their folders below site-packages by system."""

    requires: tuple[str, ...]
    folders: dict[str, str]


class Companion(Record, frozen=True):
    """A distribution that stands on torch or beside it.

    `call` is run to try it; `on_cpu` says whether that works without a GPU, and `ran` on which day we saw that.
    `platforms` have wheels on PyPI or torch's indexes, none with `only_source`. `backends` are those it computes on.
    `compiler` is what its source is compiled with: "nvcc" beside C++'s, for any build or for one that computes on CUDA.
    The CUDA of its wheels matters on `cuda_systems`; `extras` name the CUDA majors of an extra's libraries, and
    `beside_cuda` helps beside a torch of another major. It computes with the companions in `through`, whose needs are
    its own. `note` is for people.
    """

    name: str
    source: str
    as_of: str
    ranges: tuple[VersionRange, ...]
    call: str = ""
    on_cpu: Literal["safe", "unknown", "no"] = "unknown"
    ran: str = ""
    platforms: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    needs: tuple[SystemNeed, ...] = ()
    only_source: bool = False
    compiler: Compiler = ""
    extras: dict[str, tuple[int, ...]] = {}
    beside_cuda: dict[str, BesideCuda] = {}
    through: tuple[str, ...] = ()
    cuda_systems: tuple[str, ...] = ("linux", "windows")
    note: str = ""


class WheelSource(Record, frozen=True):
    """Where wheels lie beside PyPI and torch's indexes: a `page` to choose from, a list of `links`, or an `index`.

    `{torch}` in the address is its minor, such as "2.9", `{variant}` its build and `{version}` that of the companion.
    """

    name: str
    versions: str
    torch: str
    platforms: tuple[str, ...]
    variants: tuple[str, ...]
    url: str
    by: Literal["its makers", "others"]
    find: Literal["page", "links", "index"]
    source: str
    as_of: str
    note: str = ""


def all_companions() -> tuple[Companion, ...]:
    """Return every companion."""
    return load_table("companions.companions", Companion).rows


@lru_cache(maxsize=4096)
def find_companion(name: str) -> Companion | None:
    """Return the companion of a distribution's name, in any spelling; None if the table does not list it."""
    return _by_name().get(canonicalize_name(name))


def all_names() -> frozenset[str]:
    """Return the names of the companions and of what torch's index holds, without patterns, for spelling hints."""
    carried = {name for row in _carried() for name in row.names if not set(name) & set("*?[")}
    return frozenset({*_by_name(), *carried})


def companion_trial(name: str) -> Trial | None:
    """Return the lines of Python that try a distribution; None if the tables have none."""
    row = find_companion(name)
    return Trial(call=row.call, on_cpu={"safe": True, "no": False}.get(row.on_cpu)) if row and row.call else None


def wheel_sources(need: Requirement, torch: str, variant: str, platform: str) -> tuple[WheelSource, ...]:
    """Return where wheels for a torch lie whose versions may meet a requirement, those of its makers first.

    Their addresses are filled in; one with the companion's version in it counts only if the requirement has that with
    "==". Whether they hold a wheel for some Python is not said.
    """
    build, minor = load_catalog().build_of(torch, variant, platform), ".".join(torch.split(".")[:2])
    exact = next((bound.version for bound in need.specifier if bound.operator == "==" and "*" not in bound.version), "")
    fitting = (
        replace(row, url=row.url.format(torch=minor, variant=build, version=exact))
        for row in load_table("companions.wheel_sources", WheelSource).rows
        if row.name == canonicalize_name(need.name) and platform in row.platforms
        if _within(row.torch, torch)
        and _matches_any(build, row.variants)
        and can_overlap(row.versions, str(need.specifier))
        if exact or "{version}" not in row.url
    )
    return tuple(sorted(fitting, key=lambda row: row.by != "its makers"))


@lru_cache(maxsize=4096)
def carried_by_torch_index(name: str, variant: str = "") -> bool:
    """Return whether torch's own index carries a distribution, so that it comes in torch's own build from there.

    That is the index of `variant`, such as "cu130", or without one any of torch's indexes.
    """
    return any(
        _matches_any(name, row.names) and (not variant or _matches_any(variant, row.variants)) for row in _carried()
    )


@lru_cache(maxsize=4096)
def is_required_by_torch(name: str) -> bool:
    """Return whether some build of torch itself requires a distribution of its own index: Triton, ROCm's libraries."""
    return any(row.by_torch and _matches_any(name, row.names) for row in _carried())


def takes_device_extra(name: str) -> bool:
    """Return whether AMD's index keeps a distribution's code for each GPU in extras, as "torch[device-gfx1100]"."""
    return any(row.device_extra and _matches_any(name, row.names) for row in _carried())


def bounds_beside(name: str, torch: str) -> SpecifierSet:
    """Return the versions of a package that go with a torch; no bounds if its metadata bind it, or it is unknown.

    If no known version goes with it, they are those before the known ones, for an older torch, or those after them.
    """
    row = find_companion(name)
    ranges = version_ranges(row.name) if row else ()
    good = [pair for pair in ranges if pair.goes_with(torch)]
    bad = [pair for pair in ranges if pair.only_in_table and not pair.goes_with(torch)]
    if good or not bad:
        newest = max(good, key=lambda pair: pair.least, default=None)
        end = newest.end if newest and newest.only_in_table and newest.end else ""  # where the next torch's begin
        return bounds_between(bad, good) & SpecifierSet(f"<{end}" if end else "")
    first, last = min(bad, key=lambda pair: pair.least), max(bad, key=lambda pair: pair.least)
    torchs = [VersionRange(versions=alternative) for pair in bad for alternative in pair.torch]
    if all(Version(torch) < pair.least for pair in torchs):
        return SpecifierSet(f"<{first.least}")
    return SpecifierSet(f">={last.end}") if last.end else SpecifierSet()


def unpaired_warnings(names: Iterable[str], torch: str) -> tuple[Message, ...]:
    """Return a warning for each distribution of which no version is known to go with a torch, in the order of `names`.

    Left out are those that the table does not list, that go with any torch, or that a resolver refuses by their
    metadata.
    """
    text = _("No version of {name} is known to work with torch {torch}: importing it may fail.")
    lost = []
    for name in dict.fromkeys(map(canonicalize_name, names)):
        pairs = [pair for pair in version_ranges(name) if pair.torch]
        only_here = any(pair.evidence != "metadata" for pair in pairs)
        if only_here and not any(pair.goes_with(torch) for pair in pairs):
            lost.append(text.format(name=name, torch=torch))
    return tuple(lost)


@lru_cache(maxsize=4096)
def version_ranges(name: str) -> tuple[VersionRange, ...]:
    """Return the ranges of a companion's versions, each with the torch that it goes with; () if it is unknown.

    For torchvision and torchaudio, those of torch's releases go first, but not for a version that the companion's own
    row covers, as that says more.
    """
    row, project = find_companion(name), canonicalize_name(name)
    own = row.ranges if row else ()
    releases = load_catalog().releases if project in FAMILY else ()
    paired = (
        VersionRange(versions=f"=={version}", torch=(f"=={release.version}",))
        for release in releases
        for version in getattr(release, project)
        if not any(_within(pair.versions, version) for pair in own)
    )
    return (*paired, *own)


@lru_cache(maxsize=4096)
def can_overlap(first: str, second: str) -> bool:
    """Return whether some version meets two specifiers."""
    return not (_specifiers(first) & _specifiers(second)).is_unsatisfiable()


def bounds_between(bad: Collection[VersionRange], good: Collection[VersionRange]) -> SpecifierSet:
    """Return bounds that exclude the bad ranges next below and above the newest good one; none if nothing is good."""
    if not good:
        return SpecifierSet()
    middle = max(pair.least for pair in good)
    below = max((pair for pair in bad if pair.least < middle and pair.end), key=lambda pair: pair.least, default=None)
    above = min((pair for pair in bad if pair.least > middle), key=lambda pair: pair.least, default=None)
    bounds = (f">={below.end}" if below else "", f"<{above.least}" if above else "")
    return SpecifierSet(",".join(filter(None, bounds)))


class Need(NamedTuple):
    """Something that must be on the system, in words; `help` is how to get it, "" where that depends on the system.

    `libraries` is what a loader says that misses its own.
    """

    key: str
    text: Message
    help: Text = ""
    libraries: str = ""


def system_needs(name: str, os: str = "", backend: Backend | None = None) -> tuple[Need, ...]:
    """Return what a distribution, and those it is built on (`through`), need of a system; () if it is not listed.

    `os` is "linux", "windows" or "macos"; "" stands for all of them together, and `backend` None for all backends.
    """
    found = (need for row in with_underlying(name) for need in describe_needs(row.name, row.needs, os, backend))
    return tuple(dict.fromkeys(found))


def describe_needs(
    name: Text, needs: Iterable[SystemNeed], os: str = "", backend: Backend | None = None
) -> tuple[Need, ...]:
    """Return in words those of the `needs` of something called `name` that matter on a system, for a backend.

    `os` and `backend` are as in `system_needs`. A need without systems, or without backends, matters on all of them.
    """
    # A row's `text` has places for a name and a version (`what`); its `help` is by system.
    by_key = {row.key: row for row in rows("needs.needs")}
    return tuple(
        Need(need.key, _(row.text, name=name, what=need.what), _(row.help[os]) if os in row.help else "", row.libraries)
        for need in needs
        for row in (by_key[need.key],)
        if os in ("", *(row.systems or (os,)))
        if backend is None or not row.backends or backend.value in row.backends
    )


def with_underlying(name: str) -> list[Companion]:
    """Return a companion and after it those that it is built on (`through`); [] for a name that is not listed."""
    row = find_companion(name)
    return [each for each in (row, *map(find_companion, row.through)) if each] if row else []


def find_clashes(versions: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the packages that write one folder, two or more of them, by the key of the clash; the last installed wins.

    `versions` are by name, "" for one that is not known yet.
    """
    found = {key: installed_of_clash(key, versions) for key in _by_clash()}
    return {key: names for key, names in found.items() if len(names) > 1}


def installed_of_clash(key: str, versions: Mapping[str, str]) -> tuple[str, ...]:
    """Return the packages of a clash that `versions` hold, a single one, too; raise `ValueError` for an unknown key."""
    packages = _by_clash()
    if key not in packages:
        raise ValueError(f"there is no clash {key!r}; there are {', '.join(packages)}")
    installed: dict[str, str] = {canonicalize_name(name): version for name, version in versions.items()}
    return tuple(
        need.name
        for need in packages[key]
        if (version := installed.get(need.name)) is not None
        and (not need.specifier or (version != "" and need.specifier.contains(version, prereleases=True)))
    )


@cache
def _by_clash() -> dict[str, tuple[Requirement, ...]]:
    runtimes = [row.requirement for row in runtime_builds().values()]
    named = {CLASH: runtimes, **{row.key: row.names for row in rows("companions.clashes")}}
    return {key: tuple(map(Requirement, names)) for key, names in named.items()}


@cache
def _by_name() -> dict[str, Companion]:
    return {row.name: row for row in all_companions()}


def _carried() -> tuple[Row, ...]:
    """Return the distributions that torch's own indexes carry, as rows.

    `names` are names or patterns of fnmatch; only indexes of variants that match the pattern `variants` carry them.
    `device_extra` marks those that AMD's index splits by GPU: each card's code is an extra, "device-gfx1100". torch
    itself requires those `by_torch`.
    """
    return rows("companions.carried")


def _matches_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@lru_cache(maxsize=4096)
def _specifiers(text: str) -> SpecifierSet:
    return SpecifierSet(text, prereleases=True)


@lru_cache(maxsize=4096)
def _within(specifiers: str, version: str) -> bool:
    return _specifiers(specifiers).contains(version)

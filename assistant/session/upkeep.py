"""The upkeep of the catalogue: what its sources list, what metadata there tell, and the tables that follow."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Literal, NamedTuple

from packaging.utils import parse_wheel_filename

from assistant.catalog import Catalog, number
from assistant.catalog.refresh import (
    Metadata,
    Refreshed,
    Seen,
    files_of,
    kept,
    read_metadata,
    refreshed,
    source_of,
    to_read,
)
from assistant.catalog.rows import FAMILY
from assistant.host.index import Asked, Found, list_each, list_folders, read_metadata_of
from assistant.i18n import Message, Text, _
from assistant.install import Sources
from assistant.model.plan import Wheel
from assistant.model.record import Record, replace

LIST_SECONDS = 20.0  # chosen: the longest pages of an index are a few MB
READ_SECONDS = 60.0  # chosen: the metadata of a new release and of what goes with it are read in a few seconds
MOST = 100  # chosen: wheels whose metadata are read in one refresh
# The build of "torch-2.9.1+cu130-cp312-cp312-manylinux_2_28_x86_64.whl" is cu130.
_BUILD = re.compile(r"-[^-+]+\+(cpu|xpu|cu\d+|rocm\d+(?:\.\d+)*)-")
_FOLDER = re.compile(r"cpu|xpu|cu\d+|rocm\d+(?:\.\d+)*")


class Answer(Record, frozen=True):
    """How a source answered about torch: how many releases it lists, and the newest; `reason` where it could not.

    `moved` is an index of torch that holds none.
    """

    source: str
    status: Literal["ok", "nothing", "unreachable"]
    releases: int = 0
    newest: str = ""
    reason: Text = ""
    moved: bool = False


class Listing(NamedTuple):
    """The wheels that the sources list, and how each source answered."""

    seen: tuple[Seen, ...]
    answers: tuple[Answer, ...]

    @property
    def unchecked(self) -> tuple[Message, ...]:
        """A sentence for each source that could not be asked."""
        return tuple(
            _("Not checked: {source} cannot be reached ({reason}).", source=one.source, reason=one.reason)
            if one.status == "unreachable"
            else _("Not checked: {source} lists no torch; perhaps it has moved.", source=one.source)
            for one in self.answers
            if one.status == "unreachable" or one.moved
        )


class Read(NamedTuple):
    """The metadata of wheels by their file names, and a sentence for each that could not be read."""

    facts: dict[str, Metadata]
    unread: tuple[Message, ...] = ()


class Renewal(NamedTuple):
    """The tables as the sources would have them, and what was listed and read for that."""

    found: Refreshed
    listing: Listing
    read: Read


def renewed(sources: Sources, known: Catalog, today: str) -> Renewal:
    """Ask what the sources list, read the metadata that tell what is not known, and return the tables that follow."""
    tables = kept(known)
    basics = {row.package for row in tables.torch.basics.rows if row.cuda is None}
    listing = list_builds(sources, known, ("torch", *sorted({*basics, *FAMILY})))
    read = read_wheels(sources, to_read(tables, listing.seen))
    return Renewal(refreshed(tables, listing.seen, read.facts, today), listing, read)


def list_builds(sources: Sources, known: Catalog, projects: Iterable[str]) -> Listing:
    """List the wheels of projects: torch and its family on its own index, or the one named, and all on pip's.

    AMD's own indexes are asked for torch, unless an index is named.
    """
    projects, own = tuple(projects), sources.index_url or known.index_url("") or ""
    family = [name for name in projects if name in {"torch", *FAMILY}]
    lists = partial(list_each, timeout=LIST_SECONDS, network=sources.settings.network)
    on_own = lists(family, index_urls=filter(sources.may_ask, [own]))
    if all(not found.wheels for found in on_own.values()):
        on_own |= _by_folder(own, family, sources)
    on_pips, mixed = lists(projects, index_urls=filter(sources.may_ask, sources.indexes())), own in sources.indexes()
    on_pips = {(name, url): found for (name, url), found in on_pips.items() if url != own or name not in family}
    seen = [_seen(wheel, pypi=mixed) for found in on_own.values() for wheel in found.wheels]
    seen += [_seen(wheel, pypi=True) for found in on_pips.values() for wheel in found.wheels]
    amds = {source_of(row.key): row.url for row in known.rocm.amd_indexes.rows if row.key != "nightly"}
    on_amds = {} if sources.index_url else lists(["torch"], index_urls=filter(sources.may_ask, amds.values()))
    names = {url: name for name, url in amds.items()}
    wheels = ((names[url], wheel) for (_name, url), found in on_amds.items() for wheel in found.wheels)
    seen += [Seen(name, wheel.filename, wheel.size, wheel.url) for name, wheel in wheels]
    bare = all(not found.wheels for found in on_own.values())
    answers = _answers(on_own.values(), bare=bare) + _answers(on_amds.values(), bare=True) + _answers(on_pips.values())
    return Listing(tuple(dict.fromkeys(filter(None, seen))), answers)


def _by_folder(index: str, projects: Iterable[str], sources: Sources) -> dict[tuple[str, str], Found]:
    """List what the folders of single variants hold, where an index has no page for all builds."""
    if not sources.may_ask(index):
        return {}
    network = sources.settings.network
    folders = [name for name in list_folders(index, timeout=LIST_SECONDS, network=network) if _FOLDER.fullmatch(name)]
    addresses = [f"{index.rstrip('/')}/{name}" for name in folders]
    return list_each(projects, index_urls=addresses, timeout=LIST_SECONDS, network=network)


def _seen(wheel: Wheel, *, pypi: bool) -> Seen | None:
    """Read the build off the version's local part, as on an index of all builds; one without is PyPI's.

    On torch's own index that holds for macOS alone: there, too, the build is no other than PyPI's.
    """
    build = _BUILD.search(wheel.filename)
    if build:
        return Seen(build[1], wheel.filename, wheel.size, wheel.url)
    plain = "+" not in wheel.filename and (
        pypi or "-macosx" in wheel.filename or not wheel.filename.startswith("torch-")
    )
    return Seen("pypi", wheel.filename, wheel.size, wheel.url) if plain else None


def _answers(found: Iterable[Found], *, bare: bool = False) -> tuple[Answer, ...]:
    """Sum up by source what was said of torch; a source that failed once could not be asked.

    `bare` are sources that should hold torch, and do not.
    """
    torchs: dict[str, set[str]] = {}
    failed: dict[str, Asked] = {}
    for one in found:
        for asked in one.asked:
            held = torchs.setdefault(asked.source, set())
            held |= {
                file.version
                for file in files_of(Seen("", wheel.filename) for wheel in one.wheels)
                if file.package == "torch"
            }
            if asked.status == "unreachable":
                failed.setdefault(asked.source, asked)
    answers = (_answer(source, versions, failed.get(source)) for source, versions in torchs.items())
    return tuple(replace(one, moved=bare and one.status == "nothing") for one in answers)


def _answer(source: str, versions: set[str], failed: Asked | None) -> Answer:
    newest = max(versions, key=number, default="")
    status: Literal["ok", "nothing", "unreachable"] = "unreachable" if failed else "ok" if versions else "nothing"
    reason = failed.reason if failed else ""
    return Answer(source=source, status=status, releases=len(versions), newest=newest, reason=reason)


def read_wheels(sources: Sources, wanted: tuple[Seen, ...]) -> Read:
    """Read the metadata of wheels, all at once; no wheel is downloaded."""
    indexes = [*sources.indexes(), *filter(None, [sources.index_url])]
    chosen = {one.filename: one for one in wanted if sources.may_ask(one.url)}
    urls = [one.url for one in chosen.values()][:MOST]
    texts = read_metadata_of(urls, index_urls=indexes, timeout=READ_SECONDS, network=sources.settings.network)
    facts: dict[str, Metadata] = {}
    unread = []
    for file, one in chosen.items():
        text = texts.get(one.url)
        found = read_metadata(text) if isinstance(text, bytes) else None
        name, version, _build, _tags = parse_wheel_filename(file)
        if found and (name, version.public) == (found.name, found.version.partition("+")[0]):
            facts[file] = found
        elif text is not None:
            reason = _("it is not what its name says") if isinstance(text, bytes) else text
            sentence = _("Not read: {file} ({reason}). What it would tell stays unknown until the next refresh.")
            unread.append(sentence.format(file=file, reason=reason))
    return Read(facts, tuple(unread))

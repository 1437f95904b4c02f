"""Looks into package indexes for variants of wheels: which labels have a wheel, and the file that explains them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from assistant.host.index import DEFAULT_INDEX, DIRECT, Network, local_path, platform_tags, reason_of, web_client
from assistant.host.index_page import File, files_of_page
from assistant.i18n import _
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.machine import Machine
from assistant.privacy import Policy, redact

if TYPE_CHECKING:
    from unearth.fetchers import PyPIClient

LIMIT = 1 << 20  # bytes of a file of variants; chosen: a thousand variants take a tenth of it
# demo-1.0-cp312-cp312-linux_x86_64-cu130.whl; a build number begins with a digit and stands third
_LABELLED = re.compile(r"^([^-]+-[^-]+(?:-\d[^-]*)?-[^-]+-[^-]+-[^-]+)-([0-9a-z_.]{1,16})\.whl$")


class Published(NamedTuple):
    """A version of a package that has wheels for a machine; `labels` are those of these wheels, "" for a plain one.

    `text` is that of the version's file of variants, "" where the index has none.
    """

    version: str
    labels: frozenset[str]
    text: str


class _Wheel(NamedTuple):
    version: Version
    label: str
    tags: frozenset[Tag]


def find_variants(  # noqa: PLR0913 - what is looked for, where, and how
    wanted: Requirement,
    machine: Machine,
    python: str,
    taken: Callable[[Published], bool],
    *,
    index_urls: Iterable[str],
    find_links: Iterable[str],
    timeout: float,
    network: Network = DIRECT,
) -> Published | None:
    """Find the newest version of a package with a wheel for a machine, in folders and in the first index that has it.

    `python` like "3.12" or "3.13t". Versions are offered to `taken`, newest first; where it wants none, the newest is
    returned, and None where nobody has a wheel. Raises `WorkFailed` for an index that cannot be asked, `BadInput` for
    a file of variants of over a megabyte.
    """
    name = canonicalize_name(wanted.name)
    urls = [url if url != DEFAULT_INDEX else _pypi() for url in index_urls]
    with web_client(network, timeout, urls) as client:
        places = (*(_folder(folder) for folder in find_links), *(_index(url, name, client) for url in urls))
        for files in places:
            listed = {file.filename: file for file in files}
            found = (
                Published(version, labels, _text(listed.get(_about(name, version)), client))
                for version, labels in _versions(listed, name, wanted.specifier, _tags(machine, python))
            )
            if newest := next(found, None):
                return newest if taken(newest) else next(filter(taken, found), newest)
    return None


def _about(name: str, version: str) -> str:
    return f"{name.replace('-', '_')}-{version}-variants.json"


def _versions(
    listed: Collection[str], name: str, specifier: SpecifierSet, fitting: frozenset[Tag]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Give each version that has a wheel with one of these tags, newest first, and the labels of those wheels.

    A variant counts only where the index has the file that explains it; pre-releases do where nothing else is there.
    """
    found: dict[Version, set[str]] = defaultdict(set)
    for wheel in filter(None, (_wheel(filename, name) for filename in listed)):
        if wheel.tags & fitting and (not wheel.label or _about(name, str(wheel.version)) in listed):
            found[wheel.version].add(wheel.label)
    for version in sorted(specifier.filter(found), reverse=True):
        yield str(version), frozenset(found[version])


def _pypi() -> str:
    from unearth import PackageFinder  # noqa: PLC0415 - a third of a second that only a look needs

    return str(PackageFinder().sources[0]["url"])


def _tags(machine: Machine, python: str) -> frozenset[Tag]:
    major, minor = (int(number) for number in re.findall(r"\d+", python)[:2])
    abi = f"cp{major}{minor}{'t' if python.endswith('t') else ''}"
    platforms = platform_tags(machine)
    version = (major, minor)
    return frozenset((
        *cpython_tags(version, [abi], platforms),
        *compatible_tags(version, f"cp{major}{minor}", platforms),
    ))  # fmt: skip


def _wheel(filename: str, name: str) -> _Wheel | None:
    labelled = _LABELLED.match(filename)
    bare, label = (f"{labelled[1]}.whl", labelled[2]) if labelled else (filename, "")
    if labelled and _reads(filename):  # a build number takes the place of a label
        bare, label = filename, ""
    read = _reads(bare)
    return _Wheel(read[0], label, read[1]) if read and canonicalize_name(bare.partition("-")[0]) == name else None


def _reads(filename: str) -> tuple[Version, frozenset[Tag]] | None:
    try:
        _name, version, _build, tags = parse_wheel_filename(filename)
    except (InvalidWheelFilename, InvalidVersion):
        return None
    return version, tags


def _folder(folder: str) -> Iterator[File]:
    path = local_path(folder)
    if path and path.is_dir():
        yield from (File(one.name, str(one)) for one in sorted(path.iterdir()))


def _index(url: str, name: str, client: PyPIClient) -> Iterator[File]:
    folder = local_path(url)
    if folder:
        yield from _folder(str(folder / name))
        return
    try:
        yield from files_of_page(url, name, client)
    except Exception as error:
        raise _unreachable(url, error) from error


def _text(file: File | None, client: PyPIClient) -> str:
    if file is None:
        return ""
    path = local_path(file.url)
    try:
        if path:
            content = Path(path).read_bytes()
        else:
            answer = client.get(file.url)
            answer.raise_for_status()
            content = answer.content
    except Exception as error:
        raise _unreachable(file.url, error) from error
    if len(content) > LIMIT:
        raise BadInput(_("{file} is longer than {limit} MB.", file=file.filename, limit=LIMIT >> 20))
    return content.decode("utf-8", "replace")


def _unreachable(url: str, error: Exception) -> WorkFailed:
    return WorkFailed(
        _("{source} cannot be reached ({reason}).", source=redact(url, Policy.USABLE), reason=reason_of(error)),
        hint=_("Check the network, or choose another index.", option="--index-url"),
    )

"""Finds the addresses of package indexes in a text, and judges them: known, misspelt, a page for people, anybody's."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from typing import Literal, NamedTuple

from assistant.catalog import load_catalog, number
from assistant.catalog.catalog import is_pypi, is_pypi_mirror
from assistant.diagnose.rules import table
from assistant.model.record import Record

Kind = Literal["pypi", "torch", "wrong", "mirror", "unknown"]
MOST = 40  # addresses of one text that are looked at
NEAR = 0.8  # chosen: how alike the letters of two hosts or tags must be to be the same with a slip of the pen
PYPI = "PyPI"  # in place of its address: where installers look by default
_PYPI_PAGE = re.compile(r"(?:www\.)?pypi\.(?:python\.)?org")


class NamedAddress(NamedTuple):
    """An address that a text names: its position, and what the installer says of it ("", "404", "page").

    `links` tells that it is used as a list of files, `asked` that an installer was told to search there.
    """

    url: str
    at: int
    state: str = ""
    links: bool = False
    asked: bool = True


class Address(NamedTuple):
    """What an address is.

    "torch" is an index of torch's builds, here `variant` ("" for all of them); "wrong" is none at all, and `right` the
    one that was meant, where that can be told; "mirror" looks like somebody's copy of torch's or PyPI's index.
    """

    kind: Kind
    variant: str = ""
    right: str = ""


class InstallerTables(Record, frozen=True):
    """The shipped file of names, systems and addresses (installers.toml)."""

    as_of: str
    source: str
    earlier_pythons: tuple[tuple[str, str, str], ...]
    older_tags: tuple[str, ...]
    pages: tuple[str, ...]
    names: dict[str, str]
    systems: dict[str, tuple[str, ...]]


def installer_tables() -> InstallerTables:
    """Return the shipped names, systems and addresses of installers.toml, read once."""
    return table("installers.toml", InstallerTables)


@cache
def published_variants() -> frozenset[str]:
    """Return every build that some release was published in, such as "cu130", "rocm7.2", "xpu" and "cpu"."""
    rows = load_catalog().releases
    return frozenset(
        variant for row in rows for variants_there in row.variants.values() for variant in variants_there
    ) - {"pypi"}


@cache
def _index_bases() -> dict[str, bool]:
    """Return for each address that torch's index or a mirror has before the tag whether it is a list of files."""
    catalog = load_catalog()
    flat_by_url = {mirror.url: mirror.flat for mirror in catalog.mirrors if "{variant}" in mirror.url}
    return {url.partition("{variant}")[0]: flat for url, flat in flat_by_url.items()}


def classify_address(url: str, *, links: bool = False) -> Address:
    """Return what an address is; it is in lower case and without a final slash.

    `links` tells that it is used as a list of files, which some mirrors are.
    """
    catalog = load_catalog()
    if is_pypi(url) or is_pypi_mirror(url, catalog):
        return Address("pypi")
    if url in {index.rstrip("/").lower() for index in catalog.amd_indexes.values()}:
        return Address("torch", "amd-index")
    base = next((base for base in _index_bases() if f"{url}/".startswith(base)), "")
    return (
        _classify_path(base, url[len(base) :], listed=_index_bases()[base] and not links)
        if base
        else _classify_host(url)
    )


def _classify_host(url: str) -> Address:
    """Return what an address is that is not below a known one: by its host, exact or slightly misspelt."""
    host, path = _host_of(url), url.partition("://")[2].partition("/")[2]
    hosts = {_host_of(base): base for base in reversed(_index_bases())}
    likely_host = host if host in hosts else next(iter(get_close_matches(host, hosts, n=1, cutoff=NEAR)), "")
    tag, torch_base = tag_in(path), next(iter(_index_bases()))  # torch's own comes first
    pypi_mirrors = {_host_of(mirror.url): mirror.url for mirror in load_catalog().mirrors if mirror.serves == "pypi"}
    if likely_host:
        right = _tagged_address(hosts[likely_host], tag or nearest_tag(path.rpartition("/")[2]))
    elif host in installer_tables().pages or _PYPI_PAGE.fullmatch(host):
        right = PYPI if host.startswith("pypi.") and not tag else _tagged_address(torch_base, tag)
    elif host in pypi_mirrors:
        right = pypi_mirrors[host]
    else:
        looks_like_copy = tag or re.search(r"mirror|proxy|nexus|artifactory|devpi|pypi|/whl\b|/simple\b", url)
        return Address("mirror" if looks_like_copy else "unknown", tag)
    return Address("wrong", right=right)


def _host_of(url: str) -> str:
    """Return the host of an address, without a user and a port."""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]


def _classify_path(base: str, rest: str, *, listed: bool) -> Address:
    """Return what an address below torch's index or a mirror is, by the path `rest`: a tag, a wrong one, or more.

    `listed` tells that the base is a list of files, in which an installer finds no index.
    """
    channel, tag = ("nightly/", rest.removeprefix("nightly/")) if rest.startswith("nightly/") else ("", rest)
    tag, _slash, further = tag.removeprefix("test/").partition("/")
    if listed:
        return Address("wrong", right=_tagged_address(next(iter(_index_bases())), tag))
    if not tag:
        return Address("torch")
    if tag in published_variants() or tag in installer_tables().older_tags:
        return (
            Address("wrong", right=_tagged_address(base, channel + tag)) if further else Address("torch", channel + tag)
        )
    return Address("wrong", right=_tagged_address(base + channel, nearest_tag(tag)))


def _tagged_address(base: str, tag: str) -> str:
    """Return a base with a tag; "" without a tag, since an index of all builds is none that was meant."""
    return base + tag if tag else ""


def tag_in(path: str) -> str:
    """Return the first folder of a path that is the tag of a build; "" if none is."""
    return next((part for part in path.split("/") if part in published_variants()), "")


def nearest_tag(text: str) -> str:
    """Return the tag that a misspelt one means: cu126 for "cuda12.6", rocm6.4 for "rocm64"; "" if none is near.

    A version that was never built for becomes the next lower one, since newer drivers and tools run it.
    """
    match = re.match(r"(cu|rocm|hip)[a-z]{0,4}[-_ ]?v?(\d[\d.]{0,5})", text)
    if not match:
        return next(iter(get_close_matches(text, sorted(published_variants()), n=1, cutoff=NEAR)), "")
    family = "cu" if match[1] == "cu" else "rocm"
    digits = match[2].strip(".")
    tags = sorted((tag for tag in published_variants() if tag.startswith(family)), key=number)
    if beginning_so := [tag for tag in tags if tag.startswith(family + digits)]:  # a major alone means its newest
        return beginning_so[-1]
    if family == "cu":
        major, _dot, minor = digits.partition(".")
        exact = f"cu{major}{minor[:1]}"
    else:
        exact = f"rocm{digits}" if "." in digits else f"rocm{digits[0]}.{digits[1:] or '0'}"
    lower = [tag for tag in tags if number(tag) <= number(exact)]
    return exact if exact in tags else (lower or tags)[-1 if lower else 0]


# Looking in indexes: https://pypi.example/simple, https://download.pytorch.org/whl/cu126
# pip install torch --index-url=https://download.pytorch.org/whl/cu126
# [[tool.uv.index]] … url = "https://download.pytorch.org/whl/cu126"
_URL = r"((?:https?|file)://[^\s,;`'\"<>()\]]{3,300})"
_LOOKING = re.compile(r"looking in (indexes|links): ([^\n]{3,1000})")
_GIVEN = re.compile(
    rf"(?:(?:--|\b)(?:extra-|default-)?index(?:[-_]url)?[ \t=:\"']{{1,6}}|\s-i[ \t=]|^[ \t]{{0,8}}url ?= ?[\"']){_URL}",
    re.MULTILINE,
)
_LINKS = re.compile(rf"(?:--find-links|\s-f|find-links)[ \t=:\[\"']{{1,6}}{_URL}")
# WARNING: Skipping page https://… because the GET request got Content-Type: application/octet-stream.
# error: Unsupported `Content-Type` "text/plain" for `https://…/torch/`. Expected JSON or HTML.
_PAGE = re.compile(
    rf"(?:skipping page {_URL} because the get request got content-type"
    rf"|unsupported `content-type` \"?[^\s\"]{{1,60}}\"? for `?{_URL})"
)
# hint: An index URL (https://…) could not be queried due to a lack of valid authentication credentials (403 Forbidden).
# hint: An index (https://…) returned a 403 Forbidden error.
# ERROR: HTTP error 404 while getting https://…/torch-2.15.0%2Bcu130-cp312-cp312-win_amd64.whl
# 404 Client Error: Not Found for url: https://…
# HTTP status client error (404 Not Found) for url (https://…)
_DENIED = re.compile(rf"an index(?: url)? \({_URL}\)[^()]{{4,90}}(?:\(|returned an? )(\d{{3}})\b")
_STATUS = (
    re.compile(rf"\b(\d{{3}}) client error:[^:\n]{{0,40}} for url: ?{_URL}"),
    re.compile(
        r"http (?:status client |status server )?error:? ?\(?(\d{3})\b[^\n]{0,40}?(?:url|getting) ?\(?(\S{4,300})"
    ),
)


def addresses(text: str) -> tuple[NamedAddress, ...]:
    """Return the addresses of indexes and files that a text names, each once, and at most `MOST` of them."""
    mentions = [
        NamedAddress(url, line.start(), links=line[1] == "links")
        for line in _LOOKING.finditer(text)
        for url in re.findall(_URL, line[2])
    ]
    mentions += [NamedAddress(match[1], match.start()) for match in _GIVEN.finditer(text)]
    mentions += [NamedAddress(match[1], match.start(), links=True) for match in _LINKS.finditer(text)]
    mentions += [NamedAddress(match[1] or match[2], match.start(), "page") for match in _PAGE.finditer(text)]
    mentions += [NamedAddress(match[1], match.start(), match[2]) for match in _DENIED.finditer(text)]
    mentions += [
        NamedAddress(match[2], match.start(), match[1], asked=False)
        for form in _STATUS
        for match in form.finditer(text)
    ]
    address_of: dict[str, NamedAddress] = {}
    for address in mentions:
        url = address.url.rstrip("/.)`")
        earlier = address_of.get(url)
        address_of[url] = (
            earlier._replace(state=earlier.state or address.state) if earlier else address._replace(url=url)
        )
    return tuple(address_of.values())[:MOST]

"""Finds the addresses of package indexes in a text, and judges them: known, misspelt, a page for people, anybody's."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from typing import Literal, NamedTuple

from assistant.catalog import load_catalog, number
from assistant.catalog.catalog import is_pypi, mirrors_pypi
from assistant.diagnose.rules import table
from assistant.model.record import Record

Kind = Literal["pypi", "torch", "wrong", "mirror", "unknown"]
MOST = 40  # addresses of one text that are looked at
NEAR = 0.8  # chosen: how alike the letters of two hosts or tags must be to be the same with a slip of the pen
PYPI = "PyPI"  # in place of its address: where installers look by default
_PYPI_PAGE = re.compile(r"(?:www\.)?pypi\.(?:python\.)?org")


class Named(NamedTuple):
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


def tables() -> InstallerTables:
    """Read the shipped tables, once."""
    return table("installers.toml", InstallerTables)


@cache
def variants() -> frozenset[str]:
    """Name every build that some release was published in: "cu130", "rocm7.2", "xpu", "cpu"."""
    rows = load_catalog().releases
    return frozenset(one for row in rows for each in row.variants.values() for one in each) - {"pypi"}


@cache
def _bases() -> dict[str, bool]:
    """Return what stands before the tag in the addresses of torch's index and its mirrors; True for lists of files."""
    catalog = load_catalog()
    mirrors = {mirror.url: mirror.flat for mirror in catalog.mirrors if "{variant}" in mirror.url}
    return {url.partition("{variant}")[0]: flat for url, flat in mirrors.items()}


def judge(url: str, *, links: bool = False) -> Address:
    """Say what an address is, in lower case and without a final slash; `links` where it is used as a list of files."""
    catalog = load_catalog()
    if is_pypi(url) or mirrors_pypi(url, catalog):
        return Address("pypi")
    if url in {one.rstrip("/").lower() for one in catalog.amd_indexes.values()}:
        return Address("torch", "amd-index")
    base = next((base for base in _bases() if f"{url}/".startswith(base)), "")
    return _below(base, url[len(base) :], listed=_bases()[base] and not links) if base else _by_host(url)


def _by_host(url: str) -> Address:
    """Judge an address that is not below a known one: by its host, exact or with a slip of the pen."""
    host, path = _host(url), url.partition("://")[2].partition("/")[2]
    hosts = {_host(base): base for base in reversed(_bases())}
    meant = host if host in hosts else next(iter(get_close_matches(host, hosts, n=1, cutoff=NEAR)), "")
    tag, own = tag_in(path), next(iter(_bases()))  # torch's own comes first
    pypis = {_host(mirror.url): mirror.url for mirror in load_catalog().mirrors if mirror.serves == "pypi"}
    if meant:
        right = _address(hosts[meant], tag or nearest_tag(path.rpartition("/")[2]))
    elif host in tables().pages or _PYPI_PAGE.fullmatch(host):
        right = PYPI if host.startswith("pypi.") and not tag else _address(own, tag)
    elif host in pypis:
        right = pypis[host]
    else:
        copy = tag or re.search(r"mirror|proxy|nexus|artifactory|devpi|pypi|/whl\b|/simple\b", url)
        return Address("mirror" if copy else "unknown", tag)
    return Address("wrong", right=right)


def _host(url: str) -> str:
    """Return the name of an address's server, without a user and a port."""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]


def _below(base: str, rest: str, *, listed: bool) -> Address:
    """Judge what follows the address of torch's index: a tag, a tag that never was, or more than a tag."""
    kind, tag = ("nightly/", rest.removeprefix("nightly/")) if rest.startswith("nightly/") else ("", rest)
    tag, _slash, more = tag.removeprefix("test/").partition("/")
    if listed:
        return Address("wrong", right=_address(next(iter(_bases())), tag))
    if not tag:
        return Address("torch")
    if tag in variants() or tag in tables().older_tags:
        return Address("wrong", right=_address(base, kind + tag)) if more else Address("torch", kind + tag)
    return Address("wrong", right=_address(base + kind, nearest_tag(tag)))


def _address(base: str, tag: str) -> str:
    """Join a base and a tag; "" without a tag, since an index of all builds is none that was meant."""
    return base + tag if tag else ""


def tag_in(path: str) -> str:
    """Return the tag of a build that a path names as a folder; "" for none."""
    return next((part for part in path.split("/") if part in variants()), "")


def nearest_tag(text: str) -> str:
    """Return the tag that a misspelt one means: cu126 for "cuda12.6", rocm6.4 for "rocm64"; "" where nothing is near.

    A version that was never built for becomes the next lower one, since newer drivers and tools run it.
    """
    spelt = re.match(r"(cu|rocm|hip)[a-z]{0,4}[-_ ]?v?(\d[\d.]{0,5})", text)
    if not spelt:
        return next(iter(get_close_matches(text, sorted(variants()), n=1, cutoff=NEAR)), "")
    family = "cu" if spelt[1] == "cu" else "rocm"
    digits = spelt[2].strip(".")
    known = sorted((one for one in variants() if one.startswith(family)), key=number)
    if alike := [one for one in known if one.startswith(family + digits)]:  # a major alone means its newest
        return alike[-1]
    if family == "cu":
        major, _dot, minor = digits.partition(".")
        wanted = f"cu{major}{minor[:1]}"
    else:
        wanted = f"rocm{digits}" if "." in digits else f"rocm{digits[0]}.{digits[1:] or '0'}"
    lower = [one for one in known if number(one) <= number(wanted)]
    return wanted if wanted in known else (lower or known)[-1 if lower else 0]


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


def addresses(text: str) -> tuple[Named, ...]:
    """Return the addresses that a text names, each once; `state` is the HTTP status or "page" where one is told."""
    named = [
        Named(url, line.start(), links=line[1] == "links")
        for line in _LOOKING.finditer(text)
        for url in re.findall(_URL, line[2])
    ]
    named += [Named(one[1], one.start()) for one in _GIVEN.finditer(text)]
    named += [Named(one[1], one.start(), links=True) for one in _LINKS.finditer(text)]
    named += [Named(one[1] or one[2], one.start(), "page") for one in _PAGE.finditer(text)]
    named += [Named(one[1], one.start(), one[2]) for one in _DENIED.finditer(text)]
    named += [Named(one[2], one.start(), one[1], asked=False) for form in _STATUS for one in form.finditer(text)]
    known: dict[str, Named] = {}
    for each in named:
        url = each.url.rstrip("/.)`")
        before = known.get(url)
        known[url] = before._replace(state=before.state or each.state) if before else each._replace(url=url)
    return tuple(known.values())[:MOST]

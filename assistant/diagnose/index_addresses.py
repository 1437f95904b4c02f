"""Judges the address of a package index: a known one, a known one misspelt, a page for people, or anybody's."""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from assistant.catalog import load_catalog, number
from assistant.catalog.indexes import is_pypi, mirrors_pypi
from assistant.diagnose.installer_output import addresses
from assistant.model.record import Record, from_plain

Kind = Literal["pypi", "torch", "wrong", "mirror", "unknown"]
NEAR = 0.8  # chosen: how alike the letters of two hosts or tags must be to be the same with a slip of the pen


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
    older_tags: tuple[str, ...]
    pages: tuple[str, ...]
    last_conda_torch: str
    names: dict[str, str]
    systems: dict[str, tuple[str, ...]]
    libraries: dict[str, tuple[str, str]]


@cache
def tables() -> InstallerTables:
    """Read the shipped tables, once."""
    text = files("assistant.diagnose").joinpath("installers.toml").read_text("utf-8")
    return from_plain(tomllib.loads(text), InstallerTables, "installers.toml")


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
    if url.rstrip("/") in {one.rstrip("/").lower() for one in catalog.amd_indexes.values()}:
        return Address("torch", "amd-index")
    for base, flat in _bases().items():
        if f"{url}/".startswith(base):
            return _below(base, url[len(base) :], listed=flat and not links)
    host, path = urlsplit(url).hostname or "", urlsplit(url).path
    own = next(iter(_bases()))  # torch's own comes first
    hosts = {urlsplit(base).hostname or "": base for base in reversed(_bases())}
    if host not in hosts and (meant := get_close_matches(host, hosts, n=1, cutoff=NEAR)):
        return _slip(hosts[meant[0]], path)
    if host in hosts:
        return _slip(hosts[host], path)
    if host in tables().pages:
        tag = tag_in(path)
        right = "https://pypi.org/simple" if host.startswith("pypi") and not tag else own + tag
        return Address("wrong", right=right)
    if re.search(r"mirror|proxy|nexus|artifactory|devpi|pypi|/whl\b|/simple\b", url) or tag_in(path):
        return Address("mirror", tag_in(path))
    return Address("unknown")


def _below(base: str, rest: str, *, listed: bool) -> Address:
    """Judge what follows the address of torch's index: a tag, a tag that never was, or more than a tag."""
    kind, tag = ("nightly/", rest.removeprefix("nightly/")) if rest.startswith("nightly/") else ("", rest)
    tag, _slash, more = tag.removeprefix("test/").partition("/")
    if listed:
        return Address("wrong", right=next(iter(_bases())) + tag)
    if not tag:
        return Address("torch")
    if tag in variants() or tag in tables().older_tags:
        return Address("wrong", right=f"{base}{kind}{tag}") if more else Address("torch", kind + tag)
    return Address("wrong", right=f"{base}{kind}{nearest_tag(tag)}")


def _slip(base: str, path: str) -> Address:
    """Take what a misspelt address says for the host that was meant."""
    return Address("wrong", right=base + (tag_in(path) or nearest_tag(path.rstrip("/").rpartition("/")[2])))


def tag_in(path: str) -> str:
    """Return the tag of a build that a path names as a folder; "" for none."""
    return next((part for part in path.split("/") if part in variants()), "")


def nearest_tag(text: str) -> str:
    """Return the tag that a misspelt one means: cu126 for "cuda12.6", rocm6.4 for "rocm64"; "" where nothing is near.

    A version that was never built for becomes the next lower one, since newer drivers and tools run it.
    """
    spelt = re.match(r"(cu|rocm|hip)[a-z]{0,4}[-_ ]?v?(\d[\d.]{0,5})", text)
    if not spelt:
        return next(iter(get_close_matches(text, sorted(variants()), n=1, cutoff=0.6)), "")
    family = "cu" if spelt[1] == "cu" else "rocm"
    digits = spelt[2].strip(".")
    if family == "cu":
        major, _dot, minor = digits.partition(".")
        wanted = f"cu{major}{minor[:1] or '0'}" if minor else f"cu{digits}" if len(digits) > 2 else f"cu{digits}0"  # noqa: PLR2004 - "12" is a major
    else:
        wanted = f"rocm{digits}" if "." in digits else f"rocm{digits[0]}.{digits[1:] or '0'}"
    known = sorted((one for one in variants() if one.startswith(family)), key=number)
    lower = [one for one in known if number(one) <= number(wanted)]
    return wanted if wanted in known else (lower or known)[-1 if lower else 0]


def addresses_of(text: str) -> tuple[str, ...]:
    """Return the addresses of indexes that a text names."""
    return tuple(one.url for one in addresses(text) if not one.links)

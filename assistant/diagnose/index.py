"""Package indexes: which addresses a text names and what each is, and the builds that the catalogue knows there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from functools import cache
from typing import Literal, NamedTuple

from assistant.catalog import Number, TorchWheel, load_catalog, number
from assistant.catalog.catalog import is_pypi, is_pypi_mirror
from assistant.catalog.companions import find_companion
from assistant.catalog.tables import FAMILY
from assistant.diagnose.log import Log
from assistant.diagnose.rules import compiled, plain_table
from assistant.model.machine import Machine

MOST = 40  # addresses of one text that are looked at
NEAR = 0.8  # chosen: how alike the letters of two hosts or tags must be to be the same with a slip of the pen
PYPI = "PyPI"  # in place of its address: where installers look by default
_URL = r"(?P<url>(?:https?|file)://[^\s,;`'\"<>()\]]{3,300})"


class NamedAddress(NamedTuple):
    """An address that a text names: its position, and what the installer says of it ("", "404", "content-type").

    `asked` tells that an installer was told to search there.
    """

    url: str
    at: int
    state: str = ""
    asked: bool = True


class Address(NamedTuple):
    """What an address is.

    "torch" is an index of torch's builds, here `variant` ("" for all of them); "wrong" is none at all, and `right` the
    one that was meant, where that can be told; "mirror" looks like somebody's copy of torch's or PyPI's index.
    """

    kind: Literal["pypi", "torch", "wrong", "mirror", "unknown"]
    variant: str = ""
    right: str = ""


def pattern_of(name: str) -> re.Pattern[str]:
    """Return a named pattern of installers.toml, for texts in lower case."""
    return compiled("(?m)" + "|".join(plain_table("installers.toml")["patterns"][name]))


def addresses(log: Log) -> tuple[NamedAddress, ...]:
    """Return the addresses of indexes and files that a log names, each once, and at most `MOST` of them."""
    # Without the joined lines at the end, where an address may run into the next word.
    text = "\n".join(log.text.split("\n")[: len(log.lines)])
    address_of: dict[str, NamedAddress] = {}
    for row in plain_table("installers.toml")["address"]:
        for match in compiled("(?m)" + row["pattern"].replace("(URL)", _URL)).finditer(text):
            said = match.groupdict()
            for url in re.findall(_URL, said["urls"]) if "urls" in said else [said["url"]]:
                address = NamedAddress(url.rstrip("/.)`"), match.start(), said.get("state", ""), row.get("asked", True))
                first = address_of.get(address.url, address)
                address_of[address.url] = first._replace(state=first.state or address.state)
    return tuple(address_of.values())[:MOST]


@cache
def published_variants() -> frozenset[str]:
    """Return every build that some release was published in, such as "cu130", "rocm7.2", "xpu" and "cpu"."""
    rows = load_catalog().releases
    return frozenset(tag for row in rows for tags in row.variants.values() for tag in tags) - {"pypi"}


def classify_address(url: str) -> Address:
    """Return what an address is; it is in lower case and without a final slash."""
    catalog, tables, tags = load_catalog(), plain_table("installers.toml"), published_variants()
    if is_pypi(url) or is_pypi_mirror(url, catalog):
        return Address("pypi")
    if url in {index.rstrip("/").lower() for index in catalog.amd_indexes.values()}:
        return Address("torch", "amd-index")
    # What the addresses of torch's index and its mirrors begin with before a tag, torch's own first.
    mirrors = {row.url.partition("{variant}")[0]: row for row in catalog.mirrors if "{variant}" in row.url}
    own = next(iter(mirrors))
    host, path = _host_of(url), url.partition("://")[2].partition("/")[2]
    tag = next((part for part in path.split("/") if part in tags), "")
    hosts = {_host_of(base): base for base in reversed(mirrors)}
    if base := next((base for base in mirrors if f"{url}/".startswith(base)), ""):
        rest = url[len(base) :]
        channel = "nightly/" if rest.startswith("nightly/") else ""
        tag, _slash, further = rest.removeprefix("nightly/").removeprefix("test/").partition("/")
        is_known = tag in tags or tag in tables["older_tags"]
        if not mirrors[base].flat and (not tag or (is_known and not further)):
            return Address("torch", channel + tag if tag else "")
        # A flat one is a list of files, in which an installer finds no index.
        base, tag = (own, tag) if mirrors[base].flat else (base + channel, tag if is_known else nearest_tag(tag))
    elif likely_host := next(iter(get_close_matches(host, hosts, n=1, cutoff=NEAR)), ""):
        base, tag = hosts[likely_host], tag or nearest_tag(path.rpartition("/")[2])
    elif host in tables["pages"] or re.fullmatch(r"(?:www\.)?pypi\.(?:python\.)?org", host):
        base, tag = ("", PYPI) if host.startswith("pypi.") and not tag else (own, tag)
    else:
        is_copy = tag or re.search(r"mirror|proxy|nexus|artifactory|devpi|pypi|/whl\b|/simple\b", url)
        return Address("mirror" if is_copy else "unknown", tag)
    return Address("wrong", right=(base + tag).rstrip("/") if tag else "")


def _host_of(url: str) -> str:
    """Return the host of an address, without a user and a port."""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]


def nearest_tag(text: str) -> str:
    """Return the tag that a misspelt one means: cu126 for "cuda12.6", rocm6.4 for "rocm64"; "" if none is near.

    A version that was never built for becomes the next lower one, since newer drivers and tools run it.
    """
    match = re.match(r"(cu|rocm|hip)[a-z]{0,4}[-_ ]?v?(\d[\d.]{0,5})", text)
    if not match:
        return next(iter(get_close_matches(text, sorted(published_variants()), n=1, cutoff=NEAR)), "")
    digits = match[2].strip(".")
    major, _dot, minor = digits.partition(".")
    rocm = digits if "." in digits or len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    tag = f"cu{major}{minor[:1]}" if match[1] == "cu" else f"rocm{rocm}"
    if tag not in published_variants():  # a major alone means its newest
        alike = (known for known in published_variants() if known.startswith(tag))
        tag = max(alike, key=number, default=tag)
    return variant_near(tag, published_variants())


def variant_near(variant: str, candidates: Collection[str]) -> str:
    """Return the candidate nearest to a variant; "" if there is none of the same kind.

    That is the variant itself, else the next lower one of the same major CUDA or ROCm, else of another major, else the
    lowest.
    """
    if variant in candidates:
        return variant
    for kind in (r"cu\d\d|rocm\d|xpu|cpu", "cu|rocm"):
        family = re.match(kind, variant)
        alike = sorted((each for each in candidates if family and each.startswith(family[0])), key=number)
        lower = [each for each in alike if number(each) <= number(variant)]
        if alike:
            return lower[-1] if lower else alike[0]
    return ""


USUAL = ("linux_x86_64", "windows_amd64", "macos_arm64")  # where nothing is known of a machine


class Build(NamedTuple):
    """Wheels of a release: `version` "" stands for any, `pythons` () for Pythons that the catalogue does not know."""

    version: str
    variant: str
    platform: str
    pythons: tuple[str, ...]
    glibc: Number = ()

    def serves(self, python: str) -> bool:
        """Return whether it is for a Python ("312"), or may be since its Pythons are unknown."""
        return not self.pythons or python in self.pythons


def platforms_of(os: str | None, arch: str | None) -> tuple[str, ...]:
    """Return the platforms that a machine may be, such as "linux_x86_64": several if system or processor is unknown.

    A processor that no wheel is for gives a platform that no build has.
    """
    if os not in {"linux", "windows", "macos"}:
        return USUAL
    if not arch:
        return tuple(name for name in (*USUAL, "linux_aarch64", "macos_x86_64") if name.startswith(os))
    names = {"x86_64": "amd64"} if os == "windows" else {}
    names |= {"arm64": "aarch64"} if os == "linux" else {"aarch64": "arm64"}
    return (f"{os}_{names.get(arch, arch)}",)


def platform_of_tag(tag: str) -> tuple[str, str]:
    """Return the system and the processor of a wheel's platform tag, such as ("windows", "x86_64"); "" for no such."""
    system = {"win": "windows", "mac": "macos", "man": "linux", "mus": "linux", "lin": "linux"}.get(tag[:3], "")
    arch = re.sub(r"^[a-z]+(?:\d{4}|_\d{1,2}_\d{1,2})?_?", "", tag) if system else ""
    return system, {"amd64": "x86_64", "32": "x86"}.get(arch, arch)


def tag_of(machine: Machine) -> str:
    """Return the tag of a machine's Python, such as "312" or "313t"; "" if it is unknown."""
    match = re.match(r"3\.(\d{1,2})(?:\.\d{1,2})?(?:[a-z]{1,2}\d{0,2})?(t)?", machine.python or "")
    return f"3{match[1]}{match[2] or ''}" if match else ""


@cache
def builds(package: str) -> tuple[Build, ...]:
    """Return the builds of a package that the catalogue or the tables know; () if they know none."""
    catalog = load_catalog()
    if package == "torch" or package in FAMILY:
        platforms = sorted({platform for row in catalog.releases for platform in row.variants})
        return tuple(
            Build(version, wheel.variant, platform, wheel.pythons, wheel.glibc)
            for platform in platforms
            for wheel in catalog.wheels(platform, None)
            for version in ((wheel.version,) if package == "torch" else getattr(wheel.release, package))
        )
    if package == "torch-directml":
        rows = reversed(catalog.rows("directml.releases"))
        return tuple(Build(row.version, "", name, row.pythons) for row in rows for name in USUAL[:2])
    if tags_by_platform := [row.pythons for row in catalog.rows("torch.basics") if row.package == package]:
        return tuple(Build("", "", platform, tags) for row in tags_by_platform for platform, tags in row.items())
    row = find_companion(package)
    return tuple(Build("", "", platform, ()) for platform in row.platforms) if row and not row.only_source else ()


def newest_python(tags: Iterable[str]) -> str:
    """Return the newest Python among tags such as "312", as "3.12"; "" if there is none. None is free-threaded."""
    return max((f"3.{tag[1:]}" for tag in tags if tag.isdigit()), key=number, default="")


def torch_install(wheel: TorchWheel) -> str:
    """Return the command that installs a build of PyTorch from its index, with its companions that are there."""
    catalog, build = load_catalog(), (wheel.variant, wheel.platform, "")
    pairs = ((name, version) for name in FAMILY for version in getattr(wheel.release, name)[:1])
    companions = [
        f"{name}=={version}" for name, version in pairs if catalog.has_companion(name, version, wheel.version, build)
    ]
    index = catalog.index_url(wheel.variant)
    return " ".join(("python -m pip install", f"torch=={wheel.version}", *companions, "--index-url", str(index)))

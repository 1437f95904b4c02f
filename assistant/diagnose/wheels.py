"""Ready wheels of packages that lie on no index, which torch a package was built for, and names that went away."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from assistant.catalog import load_catalog
from assistant.catalog.companions import carried_by_torch_index, wheel_sources
from assistant.diagnose.attempts import platforms_of, torch_install
from assistant.diagnose.kits import kits
from assistant.diagnose.rules import table
from assistant.diagnose.surroundings import Surroundings, known, pip_install
from assistant.model.record import Record

PYG = ("torch-scatter", "torch-sparse", "torch-cluster", "torch-spline-conv", "pyg-lib")


# The name of torch's page there, which the shell asks torch itself for.
_OWN_TAG = (
    '$(python -c "import torch; v, c = torch.__version__, torch.version.cuda; '
    "print('.'.join(v.split('.')[:2]) + '.0+' + ('cu' + c.replace('.', '') if c else 'cpu'))\")"
)


class File(Record, frozen=True):
    """A wheel with the address that its name makes; `told` are the versions whose own number is kept."""

    package: str
    version: str
    torch: tuple[str, ...]
    variants: tuple[str, ...]
    systems: tuple[str, ...]
    url: str
    source: str
    told: str = ""


class Pair(Record, frozen=True):
    """Versions of a package that were compiled for one torch."""

    package: str
    versions: str
    torch: str
    source: str


class Gone(Record, frozen=True):
    """A name (a pattern) that a package no longer has since a release, and what no longer asks for it."""

    package: str
    name: str
    since: str
    source: str
    newer: dict[str, str] = {}


class _File(Record, frozen=True):
    as_of: str
    new_abi_since: str
    file: tuple[File, ...]
    pair: tuple[Pair, ...]
    gone: tuple[Gone, ...]


def _tables() -> _File:
    return table("wheels.toml", _File)


def wheel_names(case: Surroundings, package: str) -> dict[str, str]:
    """Name the ready wheel of a package for this torch, Python and system, and the torch that its own is for."""
    row = known(package)
    names = {"wheel_url": _url(case, package), **_page(case, package), **_for_its_torch(case, package)}
    names["wheel_page"] = "" if names["wheel_url"] else _pages(case, package)
    carried = row and not row.only_source and carried_by_torch_index(row.name, case.build)
    names["ready"] = pip_install(package, case.torch) if carried else ""
    return {name: value for name, value in names.items() if value}


def _pages(case: Surroundings, package: str) -> str:
    """Return the page to choose a ready wheel of a package from, for this torch and system; "" where none is known."""
    torch, variant = case.torch.partition("+")[0], _variant(case)
    platform = next(iter(platforms_of(case.machine.os, case.machine.arch)), "") if case.machine.os else ""
    if not package or not torch or not variant or not platform:
        return ""
    found = wheel_sources(Requirement(package), torch, variant, platform)
    return next((one.url for one in found if one.find == "page"), "")


def _variant(case: Surroundings) -> str:
    """Return the build of torch: as it is told, as NVIDIA's packages tell it, else that of PyPI's wheel for Linux."""
    if case.build:
        return case.build
    public = case.torch.partition("+")[0]
    on_pypi = load_catalog().build_of(public, "pypi", "linux_x86_64") if case.machine.os == "linux" else ""
    told = re.search(r"nvidia-\w{3,20}-cu(1\d)\b", case.text)
    return on_pypi if on_pypi and (not told or on_pypi.startswith(f"cu{told[1]}")) else f"cu{told[1]}0" if told else ""


def _url(case: Surroundings, package: str) -> str:
    torch, variant = case.torch.partition("+")[0], _variant(case)
    system = {"windows": "win_amd64", "linux": "linux_x86_64"}.get(case.machine.os or "", "")
    python = "cp" + "".join((case.machine.python or "").split(".")[:2])
    if not torch or not variant or python == "cp" or case.machine.arch in {"aarch64", "arm64"}:
        return ""
    for row in _tables().file:
        fits = row.package == package and system in row.systems and any(_within(one, torch) for one in row.torch)
        if fits and any(fnmatchcase(variant, one) for one in row.variants):
            return row.url.format(
                torch=".".join(torch.split(".")[:2]),
                major=variant[2:4],
                abi="TRUE" if Version(torch) >= Version(_tables().new_abi_since) else "FALSE",
                python=python,
                system=system,
                version=_told_version(case, row) or row.version,
            )
    return ""


def _told_version(case: Surroundings, row: File) -> str:
    """Return the version of a package that a log names, where the table says that its wheels are named alike."""
    name = row.package.replace("-", "[-_]")
    found = re.search(rf"(?<![\w.]){name}[-= ]{{1,3}}v?(\d[\d.]{{1,12}}\d)", case.text) if row.told else None
    return found[1] if found and _within(row.told, found[1]) else ""


def _for_its_torch(case: Surroundings, package: str) -> dict[str, str]:
    """Return the torch that the installed version of a package was compiled for, with the command that installs it."""
    name = package.replace("-", "[-_]")
    found = re.search(rf"(?<![\w.]){name}[^\n\d]{{1,40}}(?:\bto )?(\d[\d.]{{1,12}}\d)", case.text) if package else None
    told = case.versions.get(package, "") or _shown(case, package) or (found[1] if found else "")
    changed = re.search(
        r"(?:bumped|upgraded|updated|went|升级|升|更新)[^\n\d]{0,30}(?:to |到 ?)(\d[\d.]{1,12}\d)", case.text
    )
    versions = [
        changed[1] if changed else "",
        told,
        *re.findall(rf"(?<![\w.]){name}[- ](\d[\d.]{{1,12}}\d)", case.text),
    ]
    pair = next(
        (
            one
            for version in versions
            for one in _tables().pair
            if one.package == package and _within(one.versions, version)
        ),
        None,
    )
    if pair is None or _within(pair.torch, case.torch.partition("+")[0]):
        return {}
    tag = re.search(r"whl/(cu1\d\d)\b|\b(cu1\d\d)\b", case.text)
    variant = case.build or (tag[1] or tag[2] if tag else "")
    rows = [one for one in load_catalog().wheels("linux_x86_64", None, "cu") if _within(pair.torch, one.version)]
    own = [one for one in rows if one.variant == variant] or [
        one for one in rows if one.variant <= (variant or kits().steady["12"])
    ]
    best = max(own, key=lambda one: (Version(one.version), one.variant), default=None)
    if best is None:
        return {}
    return {"its_torch": best.version, "torch_command": torch_install(best)}


def _shown(case: Surroundings, package: str) -> str:
    """Return the version that `pip show` prints of a package."""
    found = re.search(rf"name: {re.escape(package)}\nversion: (\d[\w.]{{1,20}})", case.text)
    return found[1] if found else ""


def _page(case: Surroundings, package: str) -> dict[str, str]:
    """Return PyTorch Geometric's packages that a log names, and the page of their wheels for this torch."""
    if package not in PYG:
        return {}
    there = [one for one in PYG if one in case.text or one.replace("-", "_") in case.text]
    torch, variant = case.torch.partition("+")[0], case.build
    minor = ".".join(torch.split(".")[:2])
    if case.machine.os == "windows" and not (minor and variant):
        return {}
    tail = f"{minor}.0+{variant}" if minor and variant else _OWN_TAG
    return {"pyg": " ".join(there), "pyg_page": f"https://data.pyg.org/whl/torch-{tail}.html"}


def gone_names(case: Surroundings, package: str, name: str) -> dict[str, str]:
    """Return the release in which a name went away from a package, and what no longer asks for it."""
    row = next((one for one in _tables().gone if one.package == package and re.fullmatch(one.name, name)), None)
    if row is None:
        return {}
    newer = next((one for words, one in row.newer.items() if re.search(words, case.text)), "")
    return {"since": row.since, **({"newer": newer} if newer else {})}


def _within(specifier: str, version: str) -> bool:
    try:
        return bool(version) and SpecifierSet(specifier).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False

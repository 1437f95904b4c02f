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
from assistant.diagnose.context import LogContext, companion_row, pip_install
from assistant.diagnose.kits import kit_tables
from assistant.diagnose.rules import table
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


class New(Record, frozen=True):
    """A name (a pattern) that PyTorch has since a release."""

    name: str
    since: str
    source: str


class _File(Record, frozen=True):
    as_of: str
    new_abi_since: str
    file: tuple[File, ...]
    pair: tuple[Pair, ...]
    gone: tuple[Gone, ...]
    new: tuple[New, ...]


def _wheel_tables() -> _File:
    """Return the shipped tables of wheels.toml, read once."""
    return table("wheels.toml", _File)


def wheel_names(context: LogContext, package: str) -> dict[str, str]:
    """Return the placeholders of a package's wheels for this torch, Python and system, without those unknown.

    `wheel_url` is a wheel's address, `wheel_page` a page to choose one from, `ready` the command if torch's index has
    it, `pyg` and `pyg_page` those of PyTorch Geometric; `its_torch` is the torch of the installed version, and
    `torch_command` installs that.
    """
    row = companion_row(package)
    names = {
        "wheel_url": _wheel_url(context, package),
        **_pyg_names(context, package),
        **_matching_torch_names(context, package),
    }
    names["wheel_page"] = "" if names["wheel_url"] else _wheel_page(context, package)
    is_on_torch_index = row and not row.only_source and carried_by_torch_index(row.name, context.build)
    names["ready"] = pip_install(package, context.torch) if is_on_torch_index else ""
    return {name: value for name, value in names.items() if value}


def _wheel_page(context: LogContext, package: str) -> str:
    """Return the page to choose a wheel of a package from, for this torch and system; "" if none is known."""
    torch, variant = context.torch.partition("+")[0], _torch_variant(context)
    platform = next(iter(platforms_of(context.machine.os, context.machine.arch)), "") if context.machine.os else ""
    if not torch or not variant or not platform:
        return ""
    sources = wheel_sources(Requirement(package), torch, variant, platform)
    return next((source.url for source in sources if source.find == "page"), "")


def _torch_variant(context: LogContext) -> str:
    """Return torch's build, such as "cu130": as its version or NVIDIA's packages tell it, else PyPI's; "" if unknown.

    PyPI's is assumed on Linux alone.
    """
    if context.build:
        return context.build
    version = context.torch.partition("+")[0]
    on_pypi = load_catalog().build_of(version, "pypi", "linux_x86_64") if context.machine.os == "linux" else ""
    nvidia_package = re.search(r"nvidia-\w{3,20}-cu(1\d)\b", context.text)
    return (
        on_pypi
        if on_pypi and (not nvidia_package or on_pypi.startswith(f"cu{nvidia_package[1]}"))
        else f"cu{nvidia_package[1]}0"
        if nvidia_package
        else ""
    )


def _wheel_url(context: LogContext, package: str) -> str:
    """Return the address of a package's wheel for this torch, Python and system; "" if the table has none."""
    torch, variant = context.torch.partition("+")[0], _torch_variant(context)
    system = {"windows": "win_amd64", "linux": "linux_x86_64"}.get(context.machine.os or "", "")
    python = "cp" + "".join((context.machine.python or "").split(".")[:2])
    if not torch or not variant or python == "cp" or context.machine.arch in {"aarch64", "arm64"}:
        return ""
    for row in _wheel_tables().file:
        fits = (
            row.package == package
            and system in row.systems
            and any(_is_within(specifier, torch) for specifier in row.torch)
        )
        if fits and any(fnmatchcase(variant, specifier) for specifier in row.variants):
            return row.url.format(
                torch=".".join(torch.split(".")[:2]),
                major=variant[2:4],
                abi="TRUE" if Version(torch) >= Version(_wheel_tables().new_abi_since) else "FALSE",
                python=python,
                system=system,
                version=_version_of_file(context, row) or row.version,
            )
    return ""


def _version_of_file(context: LogContext, row: File) -> str:
    """Return the version of a package in the text, if the row's wheels are named alike for it; "" else."""
    name = row.package.replace("-", "[-_]")
    match = re.search(rf"(?<![\w.]){name}[-= ]{{1,3}}v?(\d[\d.]{{1,12}}\d)", context.text) if row.told else None
    return match[1] if match and _is_within(row.told, match[1]) else ""


def _matching_torch_names(context: LogContext, package: str) -> dict[str, str]:
    """Return the placeholders `its_torch` and `torch_command`: the torch that a package's version was compiled for.

    {} if that is unknown, is the torch that is installed, or the installed one is not a CUDA build. `torch_command`
    installs it.
    """
    name = package.replace("-", "[-_]")
    match = re.search(rf"(?<![\w.]){name}[^\n\d]{{1,40}}(?:\bto )?(\d[\d.]{{1,12}}\d)", context.text)
    version_here = (
        context.versions.get(package, "") or _version_shown_by_pip(context, package) or (match[1] if match else "")
    )
    upgrade = re.search(
        r"(?:bumped|upgraded|updated|went|升级|升|更新)[^\n\d]{0,30}(?:to |到 ?)(\d[\d.]{1,12}\d)", context.text
    )
    versions = [
        upgrade[1] if upgrade else "",
        version_here,
        *re.findall(rf"(?<![\w.]){name}[- ](\d[\d.]{{1,12}}\d)", context.text),
    ]
    pair = next(
        (
            candidate
            for version in versions
            for candidate in _wheel_tables().pair
            if candidate.package == package and _is_within(candidate.versions, version)
        ),
        None,
    )
    if pair is None or _is_within(pair.torch, context.torch.partition("+")[0]):
        return {}
    tag = re.search(r"whl/(cu1\d\d)\b|\b(cu1\d\d)\b", context.text)
    variant = context.build or (tag[1] or tag[2] if tag else "")
    if variant and not variant.startswith("cu"):
        return {}
    platform = platforms_of(context.machine.os, context.machine.arch)[0]
    wheels = [
        candidate
        for candidate in load_catalog().wheels(platform, None, "cu")
        if _is_within(pair.torch, candidate.version)
    ]
    fitting = [candidate for candidate in wheels if candidate.variant == variant] or [
        candidate for candidate in wheels if candidate.variant <= (variant or kit_tables().steady["12"])
    ]
    newest = max(fitting, key=lambda candidate: (Version(candidate.version), candidate.variant), default=None)
    if newest is None:
        return {}
    return {"its_torch": newest.version, "torch_command": torch_install(newest)}


def _version_shown_by_pip(context: LogContext, package: str) -> str:
    """Return the version that `pip show` prints of a package; "" if it prints none."""
    match = re.search(rf"name: {re.escape(package)}\nversion: (\d[\w.]{{1,20}})", context.text)
    return match[1] if match else ""


def _pyg_names(context: LogContext, package: str) -> dict[str, str]:
    """Return the placeholders `pyg` and `pyg_page` if a package is of PyTorch Geometric; {} for any other one.

    They are its packages that a log names, and the page of their wheels for this torch; {} on Windows, too, if torch's
    version or build is unknown, as its shell cannot ask for it.
    """
    if package not in PYG:
        return {}
    named_packages = [name for name in PYG if name in context.text or name.replace("-", "_") in context.text]
    torch, variant = context.torch.partition("+")[0], context.build
    minor = ".".join(torch.split(".")[:2])
    if context.machine.os == "windows" and not (minor and variant):
        return {}
    tail = f"{minor}.0+{variant}" if minor and variant else _OWN_TAG
    return {"pyg": " ".join(named_packages), "pyg_page": f"https://data.pyg.org/whl/torch-{tail}.html"}


def removal_of_name(context: LogContext, package: str, name: str) -> dict[str, str]:
    """Return `since`, the release in which a package lost a name, and perhaps `newer`; {} if the table lacks it.

    `newer` is what no longer asks for the name, if the text shows who does.
    """
    row = next(
        (
            candidate
            for candidate in _wheel_tables().gone
            if candidate.package == package and re.fullmatch(candidate.name, name)
        ),
        None,
    )
    if row is None:
        return {}
    newer = next((candidate for words, candidate in row.newer.items() if re.search(words, context.text)), "")
    return {"since": row.since, **({"newer": newer} if newer else {})}


def first_torch_with(name: str) -> str:
    """Return the first release of PyTorch that has a name; "" if the table lacks it."""
    rows = (row for row in _wheel_tables().new if re.fullmatch(row.name, name))
    return next((row.since for row in rows), "")


def _is_within(specifier: str, version: str) -> bool:
    """Return whether a version is within a specifier; False if it is none."""
    try:
        return bool(version) and SpecifierSet(specifier).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False

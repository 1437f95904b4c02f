"""Ready wheels of packages that lie on no index, which torch a package was built for, and names that went away."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from assistant.catalog import has_code, load_catalog, number
from assistant.catalog.companions import carried_by_torch_index, wheel_sources
from assistant.diagnose.attempts import platforms_of, tag_of, torch_install
from assistant.diagnose.facts import LogContext, companion_row, pip_install
from assistant.diagnose.kits import kit_tables
from assistant.diagnose.rules import table
from assistant.model.machine import Vendor
from assistant.model.record import Record

PYG = ("torch-scatter", "torch-sparse", "torch-cluster", "torch-spline-conv", "pyg-lib")


# The name of torch's page there, which the shell asks torch itself for.
_OWN_TAG = (
    '$(python -c "import torch; v, c = torch.__version__, torch.version.cuda; '
    "print('.'.join(v.split('.')[:2]) + '.0+' + ('cu' + c.replace('.', '') if c else 'cpu'))\")"
)


class File(Record, frozen=True):
    """A wheel with the address that its name makes; `told` are the versions whose own number is kept.

    `pythons` are those that it is known to be there for, () where it is for all that its torch takes.

    Of the rows that fit a torch, that of the version in a log is taken, else the first.
    """

    package: str
    version: str
    torch: tuple[str, ...]
    variants: tuple[str, ...]
    systems: tuple[str, ...]
    url: str
    source: str
    told: str = ""
    pythons: tuple[str, ...] = ()


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
    new_abi_before: dict[str, str]
    releases: dict[str, str]
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
    if (
        not torch
        or Version(torch).is_devrelease
        or not variant
        or python == "cp"
        or context.machine.arch in {"aarch64", "arm64"}
    ):
        return ""
    if url := _url_of_named_file(context, package, torch, variant, python):
        return url
    rows = [row for row in _wheel_tables().file if row.package == package and _row_fits(row, torch, variant, system)]
    rows = [row for row in rows if not row.pythons or python in row.pythons]
    version = _version_in_log(context, package)
    row = next((row for row in rows if row.told and _is_within(row.told, version)), None)
    return _file_url(row or rows[0], torch, variant, python, system, version if row else "") if rows else ""


def _row_fits(row: File, torch: str, variant: str, system: str) -> bool:
    """Return whether a row's wheels are for a torch, its build and a system."""
    return (
        system in row.systems
        and any(_is_within(specifier, torch) for specifier in row.torch)
        and any(fnmatchcase(variant, specifier) for specifier in row.variants)
    )


def _file_url(row: File, torch: str, variant: str, python: str, system: str, version: str = "") -> str:
    """Return the address of a row's wheel; `version` is the package's own, the row's if it is ""."""
    return row.url.format(
        torch=".".join(torch.split(".")[:2]),
        major=variant[2:4],
        abi=_abi_of(torch, variant),
        python=python,
        system=system,
        version=version or row.version,
    )


def _abi_of(torch: str, variant: str) -> str:
    """Return "TRUE" if a torch's wheels for Linux have C++11's ABI, else "FALSE"."""
    since = _wheel_tables().new_abi_before.get(variant, _wheel_tables().new_abi_since)
    return "TRUE" if Version(torch) >= Version(since) else "FALSE"


# flash_attn-2.7.4.post1+cu12torch2.4cxx11abiTRUE-cp310-cp310-linux_x86_64.whl
_NAMED_FILE = re.compile(
    r"(?<![\w.])([a-z]\w{2,30})-(\d[\w.]{2,16})(?:\+|%2b)(cu1\d{1,2})torch(\d\.\d{1,2})cxx11abi(?:true|false)"
    r"-(cp3\d{1,2})-cp3\d{1,2}-linux_x86_64\.whl"
)


def _url_of_named_file(context: LogContext, package: str, torch: str, variant: str, python: str) -> str:
    """Return the address of the wheel that a log names for this torch and Python, with this torch's C++ ABI; "" else.

    A package's makers build each wheel for both ABIs.
    """
    base = _wheel_tables().releases.get(package, "")
    minor = ".".join(torch.split(".")[:2])
    for match in _NAMED_FILE.finditer(context.text) if base else ():
        name, version, cuda, of_torch, of_python = match.groups()
        if name.replace("_", "-") == package and (of_torch, of_python) == (minor, python):
            built_for = f"{cuda}torch{minor}cxx11abi{_abi_of(torch, variant)}"
            file = f"{name}-{version}+{built_for}-{python}-{python}-linux_x86_64.whl"
            return f"{base.format(version=version)}{file}"
    return ""


def _version_in_log(context: LogContext, package: str) -> str:
    """Return the version of a package that a log names or that is installed; "" if neither tells it."""
    name = package.replace("-", "[-_]")
    match = re.search(rf"(?<![\w.]){name}[-= @`v]{{1,4}}(\d[\d.]{{1,12}}\d(?:\.post\d{{1,2}})?)", context.text)
    return match[1] if match else context.versions.get(package, "")


def ready_pair_names(context: LogContext, package: str) -> dict[str, str]:
    """Return placeholders of a torch that a package has a ready wheel for, where no torch is installed; {} if unknown.

    `torch_first` installs that torch, whose build any driver of its CUDA's major runs, and `wheel_then` is the wheel.
    """
    tag, version = tag_of(context.machine), _version_in_log(context, package)
    if context.torch or not tag or context.machine.os != "linux" or context.machine.arch not in {None, "x86_64"}:
        return {}
    cards = [number(gpu.compute_capability) for gpu in context.machine.gpus if gpu.vendor is Vendor.NVIDIA]
    variant = kit_tables().steady["12"]
    wheels = [
        wheel
        for wheel in load_catalog().wheels("linux_x86_64", tag, variant)
        if wheel.variant == variant and all(has_code(wheel.sm, wheel.ptx, card, alone=False) for card in cards if card)
    ]
    rows = [row for row in _wheel_tables().file if row.package == package and row.told]
    rows = [row for row in rows if _is_within(row.told, version)] or rows[: not version]
    for row in rows:
        fitting = [wheel for wheel in wheels if _row_fits(row, wheel.version, variant, "linux_x86_64")]
        if fitting:
            torch = max(fitting, key=lambda wheel: Version(wheel.version))
            url = _file_url(row, torch.version, variant, f"cp{tag}", "linux_x86_64", version)
            return {"torch_first": torch_install(torch), "wheel_then": url, "torch_of_wheel": torch.version}
    return {}


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

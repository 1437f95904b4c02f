"""What the catalogue knows to be on offer of a package: its builds, for which Pythons, platforms and variants."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from assistant.catalog import Number, TorchWheel, load_catalog, number
from assistant.catalog.companions import companion
from assistant.catalog.rows import FAMILY

USUAL = ("linux_x86_64", "windows_amd64", "macos_arm64")  # where nothing is known of a machine
_PLATFORMS = {
    "linux": {"x86_64": "linux_x86_64", "aarch64": "linux_aarch64", "arm64": "linux_aarch64"},
    "windows": {"x86_64": "windows_amd64", "arm64": "windows_arm64", "aarch64": "windows_arm64"},
    "macos": {"arm64": "macos_arm64", "aarch64": "macos_arm64", "x86_64": "macos_x86_64"},
}


class Build(NamedTuple):
    """Wheels of a release: `version` "" stands for any, `pythons` () for Pythons that the catalogue does not know.

    It is not `confirmed` where no index has been seen to hold it.
    """

    version: str
    variant: str
    platform: str
    pythons: tuple[str, ...]
    glibc: Number = ()
    confirmed: bool = True


def platforms_of(os: str | None, arch: str | None) -> tuple[str, ...]:
    """Return the platforms that a machine may be, the usual ones where its system or its processor is unknown."""
    rows = _PLATFORMS.get(os or "")
    if rows is None:
        return USUAL
    known = rows.get(arch or "")
    if known or arch:
        return (known,) if known else (f"{os}_{arch}",)
    return tuple(name for name in dict.fromkeys(rows.values()) if name != "windows_arm64")


@cache
def builds(package: str) -> tuple[Build, ...]:
    """Return what is known to be published of a package, the newest release first; () for an unknown package."""
    catalog = load_catalog()
    if package == "torch" or package in FAMILY:
        platforms = sorted({platform for row in catalog.releases for platform in row.variants})
        return tuple(
            Build(version, wheel.variant, platform, wheel.pythons, wheel.glibc, wheel.confirmed)
            for platform in platforms
            for wheel in catalog.wheels(platform, None)
            for version in ((wheel.version,) if package == "torch" else getattr(wheel.release, package))
        )
    if package == "torch-directml":
        return tuple(
            Build(row.version, "", platform, row.pythons)
            for row in reversed(catalog.directml.releases.rows)
            for platform in ("windows_amd64", "linux_x86_64")
        )
    served = [row.pythons for row in catalog.torch.basics.rows if row.package == package]
    if served:
        return tuple(Build("", "", platform, tags) for row in served for platform, tags in row.items())
    row = companion(package)
    return tuple(Build("", "", platform, ()) for platform in row.platforms) if row and not row.only_source else ()


def meeting(rows: Iterable[Build], wanted: str) -> tuple[Build, ...]:
    """Return the builds of the releases that a specifier takes; its local part ("+cu130") is left aside."""
    try:
        takes = SpecifierSet(wanted.partition("+")[0].replace("===", "=="), prereleases=True)
    except InvalidSpecifier:
        return tuple(rows)
    return tuple(row for row in rows if not row.version or takes.contains(row.version))


def of_variant(rows: Iterable[Build], variant: str) -> tuple[Build, ...]:
    """Return the builds of a variant; for "" those of every variant."""
    return tuple(row for row in rows if not variant or not row.variant or row.variant == variant)


def variant_near(asked: str, fitting: set[str]) -> str:
    """Return the variant nearest to one that was asked for: of the same major CUDA or ROCm, the next lower first."""
    family = re.match(r"cu\d\d|rocm\d|xpu|cpu", asked)
    wider = re.match(r"cu|rocm", asked)
    same = sorted((one for one in fitting if family and one.startswith(family[0])), key=number)
    alike = same or sorted((one for one in fitting if wider and one.startswith(wider[0])), key=number)
    lower = [one for one in alike if number(one) <= number(asked)]
    return asked if asked in fitting else (lower or alike or [""])[-1 if lower else 0]


def torch_install(wheel: TorchWheel) -> str:
    """Return the command that installs a build of PyTorch from its index, with its torchvision and torchaudio."""
    catalog, build = load_catalog(), (wheel.variant, wheel.platform, "")
    pairs = ((name, one) for name in FAMILY for one in getattr(wheel.release, name)[:1])
    beside = [f"{name}=={one}" for name, one in pairs if catalog.has_companion(name, one, wheel.version, build)]
    index = catalog.index_url(wheel.variant)
    return " ".join(("python -m pip install", f"torch=={wheel.version}", *beside, "--index-url", str(index)))


def newest_python(rows: Iterable[Build]) -> str:
    """Return the newest Python that builds serve, as "3.12"; free-threaded ones are left out."""
    tags = {tag for row in rows for tag in row.pythons if tag.isdigit()}
    return max(({"3." + tag[1:] for tag in tags}), key=number, default="")


def serve(rows: Iterable[Build], python: str) -> bool:
    """Return whether some build is for a Python ("312"), or might be: nobody knows its Pythons."""
    return any(not row.pythons or python in row.pythons for row in rows)


def starting_at(rows: Iterable[Build], offered: tuple[str, ...]) -> str:
    """Return the Python for which builds begin with the oldest release that an installer was offered; "" for none.

    No index drops a release of a build that it keeps, so the oldest on offer tells the Python that nobody named.
    """
    first = min((number(one) for one in offered if _is_final(one)), default=())
    begins: dict[tuple[str, str], Number] = {}
    for row in rows:
        for tag in filter(str.isdigit, row.pythons if row.version else ()):
            begun = begins.get((tag, row.platform), number(row.version))
            begins[tag, row.platform] = min(begun, number(row.version))
    oldest = min(begins.values(), default=())
    found = {tag for (tag, _platform), begun in begins.items() if begun == first != oldest}
    return max(found, key=lambda tag: number("3." + tag[1:]), default="")


def _is_final(version: str) -> bool:
    try:
        return not Version(version).is_prerelease
    except InvalidVersion:
        return False

"""A package that could not be had, with what surrounds it: machine, Python, indexes, the builds that are on offer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from assistant.catalog import Number, TorchWheel, load_catalog, number
from assistant.catalog.companions import companion
from assistant.catalog.rows import CORE, FAMILY
from assistant.diagnose.index_addresses import PYPI, Address, addresses, classify_address
from assistant.diagnose.installer_output import Failure
from assistant.diagnose.log import Log
from assistant.diagnose.rules import Cause
from assistant.model.machine import Machine, Vendor
from assistant.model.record import replace

# https://conda.anaconda.org/pytorch/osx-64
_SUBDIR = re.compile(r"conda\.anaconda\.org/[\w-]{1,40}/(linux-64|linux-aarch64|osx-64|osx-arm64|win-64)")
_SUBDIRS = {
    "linux-64": ("linux", "x86_64"),
    "linux-aarch64": ("linux", "aarch64"),
    "osx-64": ("macos", "x86_64"),
    "osx-arm64": ("macos", "arm64"),
    "win-64": ("windows", "x86_64"),
}


class Attempt(NamedTuple):
    """A failure with all that is known around it: the machine, its platforms and Python, the indexes that were asked.

    `rows` are the builds of the package that the catalogue knows, `asked` those that the request takes. `glibc` is the
    system's own, while the one in `machine` is that which the installer names, if it names one.
    """

    failure: Failure
    text: str
    line: int
    machine: Machine
    platforms: tuple[str, ...]
    python: str
    indexes: tuple[tuple[str, Address], ...]
    rows: tuple[Build, ...]
    asked: tuple[Build, ...]
    glibc: str = ""

    @property
    def package(self) -> str:
        """The package's name."""
        return self.failure.package

    @property
    def may_offer_nothing(self) -> bool:
        """Whether the installer saw no version at all, or does not say what it saw and what was lacking."""
        return self.failure.offered == () or (self.failure.offered is None and not self.failure.lacks)

    @property
    def for_platform(self) -> tuple[Build, ...]:
        """The builds that the request takes and that are for this platform."""
        return tuple(row for row in self.asked if row.platform in self.platforms)

    @property
    def variant(self) -> str:
        """The tag of the build that was asked for, by version, index or offer; "" if it is not one alone."""
        index_variants = {judged.variant for _url, judged in self.indexes if judged.kind in {"torch", "mirror"}} - {""}
        offered_variants = {version.partition("+")[2] for version in self.failure.offered or ()}
        return self.failure.local or (
            index_variants.pop()
            if len(index_variants) == 1
            else offered_variants.pop()
            if len(offered_variants) == 1
            else ""
        )

    def cause(self, key: str, basis: str = "installer", unknown: tuple[str, ...] = (), **names: str) -> Cause:
        """Return a cause at the failure's line; its names are those that any rule of installers may need, and `names`.

        Names without a value are left out.
        """
        specifier = self.failure.wanted if self.failure.wanted[:2] != "==" or self.failure.wanted[2:] else ""
        values = {
            "package": self.package,
            "requirement": f"{self.package}{specifier}",
            "release": f"{self.package}{specifier.partition('+')[0]}",
            "version": re.sub(r"^[=<>!~ ]+", "", specifier),
            "python": f"3.{self.python[1:]}" if self.python else "",
            "best_python": newest_tagged_python(self.failure) or newest_python(self.for_platform),
            "by": self.failure.by,
            "local": self.failure.local,
            "tag_index": f"https://download.pytorch.org/whl/{self.failure.local}"
            if self.failure.local[:2] == "cu"
            else "",
            **lock_commands(self.text, self.package),
            **names,
        }
        if values.get("right") == PYPI:
            values |= {"right": "", "pypi": PYPI}
        given_names = {name: value for name, value in values.items() if value}
        known_facts = tuple(
            name
            for name, value in (("os", self.machine.os), ("python", self.machine.python))
            if value and name not in unknown
        )
        return Cause(key, basis, (self.line,), given_names, known_facts, unknown)


def attempt_of(failure: Failure, log: Log, machine: Machine) -> Attempt:
    """Return a failure with the facts around it; the installer's own tags go before the machine's facts."""
    described = _with_installer_facts(failure, log.text, machine)
    text = log.text
    # Where a page failed, the address is that of the package's own page in the index.
    package_page = f"/{failure.package}"
    requested = (address for address in addresses(unjoined_text(log)) if address.asked and not address.links)
    urls = [address.url.removesuffix(package_page) if address.state else address.url for address in requested]
    urls = [failure.index_url.rstrip("/")] if failure.index_url else urls
    indexes = tuple((url, classify_address(url)) for url in dict.fromkeys(urls))
    rows = builds(failure.package)
    line = log.index_at(failure.at)
    python = tag_of(described)
    platforms = platforms_of(described.os, described.arch)
    attempt = Attempt(failure, text, line, described, platforms, python, indexes, rows, (), machine.glibc or "")
    if failure.package in CORE:
        variant = attempt.variant.removeprefix("nightly/")
        rows_asked = builds_of_variant(
            builds_within(rows, failure.wanted), variant if variant[:2] in {"cu", "ro", "xp"} else ""
        )
        return attempt._replace(asked=rows_asked)
    return attempt._replace(asked=builds_within(rows, failure.wanted))


def _with_installer_facts(failure: Failure, text: str, machine: Machine) -> Machine:
    """Return the machine with what the installer's own tags, and what is on offer, tell of it."""
    changes: dict[str, object] = {}
    tag = failure.running
    if match := re.fullmatch(r"manylinux_(\d)_(\d{1,2})_(\w{3,12})|(musl)?linux_(?:\d_\d_)?(\w{3,12})", tag):
        changes = {"os": "linux", "arch": match[3] or match[5]}
        changes |= {"glibc": f"{match[1]}.{match[2]}"} if match[1] else {"libc": "musl"} if match[4] else {}
    elif match := re.fullmatch(r"macosx_\d{2}_\d{1,2}_(\w{3,12})", tag):
        changes = {"os": "macos", "arch": match[1]}
    elif tag.startswith("win"):
        changes = {"os": "windows", "arch": {"win_amd64": "x86_64", "win_arm64": "arm64"}.get(tag, "x86")}
    elif match := re.fullmatch(r"cp3(\d{1,2})t?", tag):
        changes = {"python": f"3.{match[1]}"}
    if failure.conda and (match := _SUBDIR.search(text)):
        changes = dict(zip(("os", "arch"), _SUBDIRS[match[1]], strict=True))
    if not machine.os and not changes.get("os") and any(gpu.vendor is Vendor.APPLE for gpu in machine.gpus):
        changes["os"] = "macos"
    if (changes.get("os") or machine.os) == "macos" and not changes.get("arch") and machine.arch != "x86_64":
        changes |= _mac_arch(machine, failure, text)
    is_mac = (changes.get("os") or machine.os) == "macos"
    if (
        is_mac
        and (changes.get("arch") or machine.arch) == "x86_64"
        and any(gpu.vendor is Vendor.APPLE for gpu in machine.gpus)
    ):
        changes["rosetta"] = True
    return replace(machine, **changes)


# macbook pro 2019     2019 imac     an intel mac     (2018 mbp, i7): all Macs until 2019 are Intel's
_INTEL_MAC = re.compile(
    r"\bintel[ -](?:mac|based)|\bmac\w{0,4} ?(?:pro|air|mini)?[ ,(]{0,3}20(?:0\d|1\d)\b"
    r"|\b20(?:0\d|1\d) (?:intel )?(?:imac|mac|mbp)|\bmacosx_\d{2}_\d{1,2}_x86_64\b"
)


def _mac_arch(machine: Machine, failure: Failure, text: str) -> dict[str, object]:
    """Return {"arch": …} of a Mac, by its GPU, its year, or the newest torch on offer, the last for Intel; else {}."""
    names = " ".join((gpu.name or "").lower() for gpu in machine.gpus)
    vendors = {gpu.vendor for gpu in machine.gpus}
    last_intel_torch = max(
        (number(row.version) for row in builds("torch") if row.platform == "macos_x86_64"), default=()
    )
    versions = [number(version) for version in failure.offered or ()]
    offers_intel_torch = failure.package == "torch" and bool(versions) and max(versions) == last_intel_torch
    if Vendor.APPLE in vendors or re.search(r"\bapple\b|\bm[1-9]\b", names):
        return {"arch": "x86_64" if offers_intel_torch else "arm64"}
    is_intel = (
        offers_intel_torch
        or _INTEL_MAC.search(text)
        or vendors & {Vendor.AMD, Vendor.INTEL, Vendor.NVIDIA}
        or "intel" in names
    )
    return {"arch": "x86_64"} if is_intel else {}


def lock_commands(text: str, package: str = "") -> dict[str, str]:
    """Return the commands of a project's tool as placeholders `lock`, `relock` and `locked`; {} for an unknown tool.

    `lock` writes the lock file, `relock` does so for one package, and `locked` checks it.
    """
    rows = (
        (r"poetry", "poetry lock", f"poetry update --lock {package}", "poetry check --lock"),
        (r"\bpdm\b|^warning: lock file hash", "pdm lock", f"pdm update --no-sync {package}", "pdm lock --check"),
        (
            r"\buv(?:\.lock| sync| lock| add| run)\b",
            "uv lock",
            f"uv lock --upgrade-package {package}",
            "uv lock --check",
        ),
    )
    row = next((row for row in rows if re.search(row[0], text)), None)
    return {"lock": row[1], "locked": row[3], **({"relock": row[2]} if package else {})} if row else {}


def unjoined_text(log: Log) -> str:
    """Return a log's text without the joined lines at its end, where an address may run into the next word."""
    return "\n".join(log.text.split("\n")[: len(log.lines)])


def tag_of(machine: Machine) -> str:
    """Return the tag of a machine's Python, such as "312" or "313t"; "" if it is unknown."""
    match = re.match(r"3\.(\d{1,2})(?:\.\d{1,2})?(?:[a-z]{1,2}\d{0,2})?(t)?", machine.python or "")
    return f"3{match[1]}{match[2] or ''}" if match else ""


def newest_tagged_python(failure: Failure) -> str:
    """Return the newest Python, such as "3.12", for which the installer found wheels; "" if it tells none."""
    minors = {match[1] for tag in failure.tags if (match := re.fullmatch(r"cp3(\d{1,2})", tag))}
    return max((f"3.{minor}" for minor in minors), key=number, default="")


USUAL = ("linux_x86_64", "windows_amd64", "macos_arm64")  # where nothing is known of a machine
_PLATFORMS = {
    "linux": {"x86_64": "linux_x86_64", "aarch64": "linux_aarch64", "arm64": "linux_aarch64"},
    "windows": {"x86_64": "windows_amd64", "arm64": "windows_arm64", "aarch64": "windows_arm64"},
    "macos": {"arm64": "macos_arm64", "aarch64": "macos_arm64", "x86_64": "macos_x86_64"},
}


class Build(NamedTuple):
    """Wheels of a release: `version` "" stands for any, `pythons` () for Pythons that the catalogue does not know.

    It is not `confirmed` if no index has been seen to hold it.
    """

    version: str
    variant: str
    platform: str
    pythons: tuple[str, ...]
    glibc: Number = ()
    confirmed: bool = True


def platforms_of(os: str | None, arch: str | None) -> tuple[str, ...]:
    """Return the platforms that a machine may be, such as "linux_x86_64": several if system or processor is unknown.

    A processor that no wheel is for gives a platform that no build has.
    """
    rows = _PLATFORMS.get(os or "")
    if rows is None:
        return USUAL
    platform = rows.get(arch or "")
    if platform or arch:
        return (platform,) if platform else (f"{os}_{arch}",)
    return tuple(name for name in dict.fromkeys(rows.values()) if name != "windows_arm64")


@cache
def builds(package: str) -> tuple[Build, ...]:
    """Return the builds of a package that the catalogue or the tables know; () if they know none."""
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
            for row in reversed(catalog.rows("directml.releases"))
            for platform in ("windows_amd64", "linux_x86_64")
        )
    tags_by_platform = [row.pythons for row in catalog.rows("torch.basics") if row.package == package]
    if tags_by_platform:
        return tuple(Build("", "", platform, tags) for row in tags_by_platform for platform, tags in row.items())
    row = companion(package)
    return tuple(Build("", "", platform, ()) for platform in row.platforms) if row and not row.only_source else ()


def builds_within(rows: Iterable[Build], specifier_text: str) -> tuple[Build, ...]:
    """Return the builds whose release a specifier admits, without its local part ("+cu130"); all if it is none.

    A build of an unknown release is returned, too.
    """
    try:
        specifier = SpecifierSet(specifier_text.partition("+")[0].replace("===", "=="), prereleases=True)
    except InvalidSpecifier:
        return tuple(rows)
    return tuple(row for row in rows if not row.version or specifier.contains(row.version))


def builds_of_variant(rows: Iterable[Build], variant: str) -> tuple[Build, ...]:
    """Return the builds of a variant and those whose variant is unknown; all for ""."""
    return tuple(row for row in rows if not variant or not row.variant or row.variant == variant)


def variant_near(variant: str, candidates: set[str]) -> str:
    """Return the candidate nearest to a variant; "" if there is none of the same kind.

    That is the variant itself, else the next lower one of the same major CUDA or ROCm, else of another major, else the
    lowest.
    """
    family = re.match(r"cu\d\d|rocm\d|xpu|cpu", variant)
    wider = re.match(r"cu|rocm", variant)
    same_major = sorted(
        (candidate for candidate in candidates if family and candidate.startswith(family[0])), key=number
    )
    ordered = same_major or sorted(
        (candidate for candidate in candidates if wider and candidate.startswith(wider[0])), key=number
    )
    lower = [candidate for candidate in ordered if number(candidate) <= number(variant)]
    return variant if variant in candidates else (lower or ordered or [""])[-1 if lower else 0]


def torch_install(wheel: TorchWheel) -> str:
    """Return the command that installs a build of PyTorch from its index, with its torchvision and torchaudio."""
    catalog, build = load_catalog(), (wheel.variant, wheel.platform, "")
    pairs = ((name, version) for name in FAMILY for version in getattr(wheel.release, name)[:1])
    companions = [
        f"{name}=={version}" for name, version in pairs if catalog.has_companion(name, version, wheel.version, build)
    ]
    index = catalog.index_url(wheel.variant)
    return " ".join(("python -m pip install", f"torch=={wheel.version}", *companions, "--index-url", str(index)))


def newest_python(rows: Iterable[Build]) -> str:
    """Return the newest Python that builds serve, as "3.12"; "" if none is known. None is free-threaded."""
    tags = {tag for row in rows for tag in row.pythons if tag.isdigit()}
    return max(({"3." + tag[1:] for tag in tags}), key=number, default="")


def any_serves(rows: Iterable[Build], python: str) -> bool:
    """Return whether some build is for a Python ("312"), or may be since its Pythons are unknown."""
    return any(not row.pythons or python in row.pythons for row in rows)


def python_by_oldest_offer(rows: Iterable[Build], offered: tuple[str, ...]) -> str:
    """Return the tag of the Python whose oldest build is the oldest release on offer, as "312"; "" if none is.

    No index drops a release of a build that it keeps, so the oldest on offer tells the Python that nobody named.
    """
    oldest_offered = min((number(version) for version in offered if _is_final(version)), default=())
    first_releases: dict[tuple[str, str], Number] = {}
    for row in rows:
        for tag in filter(str.isdigit, row.pythons if row.version else ()):
            first = first_releases.get((tag, row.platform), number(row.version))
            first_releases[tag, row.platform] = min(first, number(row.version))
    oldest = min(first_releases.values(), default=())
    tags = {tag for (tag, _platform), first in first_releases.items() if first == oldest_offered != oldest}
    return max(tags, key=lambda tag: number("3." + tag[1:]), default="")


def _is_final(version: str) -> bool:
    """Return whether a version is neither a pre-release nor invalid."""
    try:
        return not Version(version).is_prerelease
    except InvalidVersion:
        return False

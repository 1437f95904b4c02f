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
from assistant.diagnose.index_addresses import PYPI, Address, addresses, judge
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
    system's own, where the machine in `machine` has the one that the installer names.
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
    def nothing(self) -> bool:
        """Whether the installer saw no version at all, or does not say what it saw."""
        return self.failure.offered == () or (self.failure.offered is None and not self.failure.lacks)

    @property
    def here(self) -> tuple[Build, ...]:
        """The builds that the request takes and that are for this platform."""
        return tuple(row for row in self.asked if row.platform in self.platforms)

    @property
    def variant(self) -> str:
        """The tag of the build whose index was asked; "" for none or several."""
        named = {judged.variant for _url, judged in self.indexes if judged.kind in {"torch", "mirror"}} - {""}
        offered = {one.partition("+")[2] for one in self.failure.offered or ()}
        return self.failure.local or (named.pop() if len(named) == 1 else offered.pop() if len(offered) == 1 else "")

    def cause(self, key: str, basis: str = "installer", unknown: tuple[str, ...] = (), **names: str) -> Cause:
        """Return a cause with the names that every rule of installers may fill in."""
        wanted = self.failure.wanted if self.failure.wanted[:2] != "==" or self.failure.wanted[2:] else ""
        known = {
            "package": self.package,
            "requirement": f"{self.package}{wanted}",
            "release": f"{self.package}{wanted.partition('+')[0]}",
            "version": re.sub(r"^[=<>!~ ]+", "", wanted),
            "python": f"3.{self.python[1:]}" if self.python else "",
            "best_python": told_python(self.failure) or newest_python(self.here),
            "by": self.failure.by,
            "tag_index": f"https://download.pytorch.org/whl/{self.failure.local}"
            if self.failure.local[:2] == "cu"
            else "",
            **lock_commands(self.text, self.package),
            **names,
        }
        if known.get("right") == PYPI:
            known |= {"right": "", "pypi": PYPI}
        filled = {name: value for name, value in known.items() if value}
        told = tuple(
            name
            for name, value in (("os", self.machine.os), ("python", self.machine.python))
            if value and name not in unknown
        )
        return Cause(key, basis, (self.line,), filled, told, unknown)


def attempt_of(failure: Failure, log: Log, machine: Machine) -> Attempt:
    """Join a failure with the facts: the installer's own tags first, then the machine's."""
    known = _running(failure, log.text, machine)
    text = log.text
    # Where a page failed, the address is that of the package's own page in the index.
    page = f"/{failure.package}"
    asked = (one for one in addresses(own_text(log)) if one.asked and not one.links)
    named = [one.url.removesuffix(page) if one.state else one.url for one in asked]
    named = [failure.index_url.rstrip("/")] if failure.index_url else named
    indexes = tuple((url, judge(url)) for url in dict.fromkeys(named))
    rows = builds(failure.package)
    line = log.index_at(failure.at)
    python = tag_of(known)
    there = platforms_of(known.os, known.arch)
    attempt = Attempt(failure, text, line, known, there, python, indexes, rows, (), machine.glibc or "")
    if failure.package in CORE:
        variant = attempt.variant.removeprefix("nightly/")
        taken = of_variant(meeting(rows, failure.wanted), variant if variant[:2] in {"cu", "ro", "xp"} else "")
        return attempt._replace(asked=taken)
    return attempt._replace(asked=meeting(rows, failure.wanted))


def _running(failure: Failure, text: str, machine: Machine) -> Machine:
    """Return the machine with what the installer's own tags, and what is on offer, tell of it."""
    changes: dict[str, object] = {}
    tag = failure.running
    if found := re.fullmatch(r"manylinux_(\d)_(\d{1,2})_(\w{3,12})|(musl)?linux_(?:\d_\d_)?(\w{3,12})", tag):
        changes = {"os": "linux", "arch": found[3] or found[5]}
        changes |= {"glibc": f"{found[1]}.{found[2]}"} if found[1] else {"libc": "musl"} if found[4] else {}
    elif found := re.fullmatch(r"macosx_\d{2}_\d{1,2}_(\w{3,12})", tag):
        changes = {"os": "macos", "arch": found[1]}
    elif tag.startswith("win"):
        changes = {"os": "windows", "arch": {"win_amd64": "x86_64", "win_arm64": "arm64"}.get(tag, "x86")}
    elif found := re.fullmatch(r"cp3(\d{1,2})t?", tag):
        changes = {"python": f"3.{found[1]}"}
    if failure.conda and (found := _SUBDIR.search(text)):
        changes = dict(zip(("os", "arch"), _SUBDIRS[found[1]], strict=True))
    if (changes.get("os") or machine.os) == "macos" and not changes.get("arch") and machine.arch != "x86_64":
        changes |= _mac_arch(machine, failure)
    if changes.get("arch") == "x86_64" and any(gpu.vendor is Vendor.APPLE for gpu in machine.gpus):
        changes["rosetta"] = True
    return replace(machine, **changes)


def _mac_arch(machine: Machine, failure: Failure) -> dict[str, object]:
    """Tell an Intel Mac by its GPU, or by what the index offers: no torch after the last one for Intel's Python."""
    names = " ".join((gpu.name or "").lower() for gpu in machine.gpus)
    vendors = {gpu.vendor for gpu in machine.gpus}
    last = max((number(row.version) for row in builds("torch") if row.platform == "macos_x86_64"), default=())
    offered = [number(one) for one in failure.offered or ()]
    intel = failure.package == "torch" and bool(offered) and max(offered) == last
    if Vendor.APPLE in vendors or re.search(r"\bapple\b|\bm[1-9]\b", names):
        return {"arch": "x86_64" if intel else "arm64"}
    of_intel = intel or vendors & {Vendor.AMD, Vendor.INTEL, Vendor.NVIDIA} or "intel" in names
    return {"arch": "x86_64"} if of_intel else {}


def lock_commands(text: str, package: str = "") -> dict[str, str]:
    """Return the commands that write a lock file, write it for one package, and check it; {} for an unknown tool."""
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
    found = next((row for row in rows if re.search(row[0], text)), None)
    return {"lock": found[1], "relock": found[2], "locked": found[3]} if found else {}


def own_text(log: Log) -> str:
    """Return a log's text without the joined lines at its end, in which an address may run into the next word."""
    return "\n".join(log.text.split("\n")[: len(log.lines)])


def tag_of(machine: Machine) -> str:
    """Return the tag of a machine's Python, such as "312" or "313t"; "" where it is unknown."""
    found = re.match(r"3\.(\d{1,2})(?:\.\d{1,2})?(?:[a-z]{1,2}\d{0,2})?(t)?", machine.python or "")
    return f"3{found[1]}{found[2] or ''}" if found else ""


def told_python(failure: Failure) -> str:
    """Return the newest Python that the installer says there are wheels for."""
    found = {found[1] for tag in failure.tags if (found := re.fullmatch(r"cp3(\d{1,2})", tag))}
    return max((f"3.{minor}" for minor in found), key=number, default="")


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
            for row in reversed(catalog.rows("directml.releases"))
            for platform in ("windows_amd64", "linux_x86_64")
        )
    served = [row.pythons for row in catalog.rows("torch.basics") if row.package == package]
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

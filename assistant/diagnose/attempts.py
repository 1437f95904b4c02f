"""A package that could not be had, with all that is known around it: machine, Python, indexes, builds on offer."""

from __future__ import annotations

import re
from typing import NamedTuple

from assistant.catalog import number
from assistant.catalog.rows import CORE
from assistant.diagnose.causes import Cause
from assistant.diagnose.index_addresses import PYPI, Address, addresses, judge
from assistant.diagnose.installer_output import Failure
from assistant.diagnose.log import Log
from assistant.diagnose.offers import Build, builds, meeting, newest_python, of_variant, platforms_of
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

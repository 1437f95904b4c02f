"""Works out why an installer could not have a package: from its own words, and what the catalogue knows to be there."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name

from assistant.catalog import carried_by_torch_index, load_catalog, number
from assistant.catalog.catalog import is_pypi_mirror
from assistant.catalog.companions import all_names
from assistant.catalog.tables import CORE
from assistant.diagnose.index import (
    PYPI,
    Address,
    addresses,
    builds,
    classify_address,
    newest_python,
    pattern_of,
    platform_of_tag,
    platforms_of,
    tag_of,
    variant_near,
)
from assistant.diagnose.log import Log
from assistant.diagnose.rules import Cause, is_within, literals, plain_table
from assistant.model.machine import Machine, Vendor
from assistant.model.record import replace

JUDGED = 6  # chosen: failures of one text that are judged: the rest follow from the first
NEWEST = 3  # chosen: a package's newest Pythons, which an index, a mirror or an old log may not have yet
PROSE = 1500  # characters of a text that may be somebody's own words
SHORTEST_NAME = 4  # characters of a name that is taken for a misspelt one
UNNAMED = "the package"  # where an installer refuses a Python and does not say for what
OTHERS = frozenset({"tensorflow", "intel-extension-for-pytorch", "triton", "bitsandbytes", "flash-attn", "xformers"})

# The parts of the messages' patterns: a name with its extras and uv's markers, as in triton{sys_platform == 'linux'},
# its specifier, the package that requires it with its own, and the end of either.
_MARKERS = r"(?:\[[^\]\n]{0,80}\])?(?:\{[^{}]{0,300}\})?`?"
_SPECIFIER = r"(?:===?|[<>!~]=?) ?[^\s`;()]{1,80}?"
_PARTS = {
    "(NAME)": rf"`?(?P<name>[a-z0-9][\w.-]{{0,60}}){_MARKERS}",
    "(SPEC)": rf"(?P<spec>{_SPECIFIER})?",
    "(BY)": rf"`?(?P<by>[a-z0-9][\w.-]{{0,60}}){_MARKERS} ?(?:{_SPECIFIER})?",
    "(END)": r"(?=[`;,.)]{0,2}(?:\s|$))",
    "«": "",
    "»": "",
    " ?": r"[\s│|]{0,20}",
    " ": r"[\s│|]{1,20}",
}


class Failure(NamedTuple):
    """A package that an installer could not have, at a position of the text.

    `wanted` is the specifier ("==2.6.0+cu130"), `by` the package that requires it. `offered` are the versions that the
    installer saw, () for none at all, None if it does not say. `lacks` is what nothing on offer matched, if the
    installer tells Pythons, platforms and versions apart, `tags` those on offer, `running` the tag that would have.
    `index_url` was asked, and `better_index` has it. `python` is refused, as only `bounds` are admitted. `locked` tells
    that the version comes from a lock file, `conda` that conda was asked.
    """

    package: str
    at: int
    wanted: str = ""
    by: str = ""
    offered: tuple[str, ...] | None = None
    lacks: str = ""
    tags: tuple[str, ...] = ()
    running: str = ""
    index_url: str = ""
    better_index: str = ""
    python: str = ""
    bounds: str = ""
    locked: bool = False
    conda: bool = False

    @property
    def local(self) -> str:
        """The tag of the build that was asked for: "cu130" of "==2.9.0+cu130"."""
        return self.wanted.partition("+")[2]

    @property
    def release(self) -> str:
        """The one release that was asked for, such as "2.9.0"; else the specifier."""
        return self.wanted.removeprefix("==").partition("+")[0]

    @property
    def newest_python(self) -> str:
        """The newest Python, such as "3.12", for which the installer found wheels; "" if it tells none."""
        return newest_python(tag.removeprefix("cp") for tag in self.tags)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of a message with its parts, compiled."""
    for part, meaning in _PARTS.items():
        text = text.replace(part, meaning)
    return re.compile(text, re.ASCII)


def failures(text: str) -> tuple[Failure, ...]:
    """Return the packages that an installer says it could not have, in the order of the text, each once.

    What a later message about a package adds is in its first one.
    """
    found = [
        _failure_of(match, message)
        for message in plain_table("installers.toml")["message"]
        if any(all(word in text for word in mark.split()) for mark in literals(message["pattern"]))
        for match in _pattern(message["pattern"]).finditer(text)
    ]
    failure_of: dict[str, Failure] = {}
    for failure in sorted(found, key=lambda failure: failure.at):
        first = failure_of.get(failure.package, failure)
        additions = {name: value for name, value in failure._asdict().items() if not getattr(first, name)}
        if first.offered is not None:
            additions["offered"] = first.offered
        failure_of[failure.package] = first._replace(**additions)
    return tuple(failure_of.values())


def _failure_of(match: re.Match[str], message: Mapping[str, Any]) -> Failure:
    """Return the failure that a message tells by its pattern's groups and its row in installers.toml."""
    said = defaultdict(str, {name: text for name, text in match.groupdict().items() if text is not None})
    package, by = (str(canonicalize_name(said[name].strip("`.-"))) for name in ("name", "by"))
    tags = re.findall(r"\b(?:cp|pp|py|none|abi|many|musl|mac|win|linux)[\w.]*", said["tags"])
    by_tags = "python" if re.match(r"cp|pp|py|none|abi", "".join(tags[:1])) else "platform"
    lacks = message.get("lacks", "")
    has_offers = message.get("nothing") or "offered" in said
    return Failure(
        package or UNNAMED,
        match.start(),
        _specifier(said["spec"] or said["version"]),
        by="" if by == package else by,
        offered=tuple(re.findall(r"\d[^\s,]{0,60}", said["offered"])) if has_offers else None,
        lacks=by_tags if lacks == "tags" else said["lacks"] or lacks,
        tags=tuple(dict.fromkeys(tags)),
        running=said["running"],
        index_url=said["index_url"].rstrip("/"),
        better_index=said["better_index"],
        python=said["python"],
        bounds=said["bounds"].rstrip(",.") or (f"<{said['python']}" if said["python"] else ""),
        locked=message.get("locked", False),
        conda=message.get("conda", False),
    )


def _specifier(text: str) -> str:
    """Return an installer's words for a version as a specifier: "==2.6" for 2.6, "==2.6.*" for conda's =2.6."""
    text = re.sub(r"\s", "", text).rstrip("`,.)").replace("^", ">=")
    return f"={text}.*" if re.match(r"=\d", text) else f"=={text}" if text[:1].isdigit() else text.removeprefix("*")


class Attempt:
    """A failure with what is known around it: the machine, its platforms and Python, the indexes that were asked.

    The installer's own tags go before the machine's facts. `rows` are the builds of the package that the catalogue
    knows, `taken` those of the release, `asked` those of the variant, too, `for_platform` those of them that are for
    this platform. `glibc` is the system's own, that in `machine` the one which the installer names, if it names one.
    """

    def __init__(self, failure: Failure, log: Log, machine: Machine) -> None:
        self.failure, self.package, self.text = failure, failure.package, log.text
        self.line, self.glibc = log.index_at(failure.at), machine.glibc
        self.machine = _with_installer_facts(failure, log.text, machine)
        self.python = tag_of(self.machine)
        self.platforms = platforms_of(self.machine.os, self.machine.arch)
        # Where a page failed, the address is that of the package's own page in the index.
        page = f"/{failure.package}"
        requested = (named for named in addresses(log) if named.asked)
        urls = [named.url.removesuffix(page) if named.state else named.url for named in requested]
        urls = [failure.index_url] if failure.index_url else urls
        self.indexes: dict[str, Address] = {url: classify_address(url) for url in urls}
        # The tag of the build that was asked for, by version, index or offer; "" if it is not one alone.
        of_indexes = {index.variant for index in self.indexes.values() if index.kind in {"torch", "mirror"}} - {""}
        of_offers = {version.partition("+")[2] for version in failure.offered or ()}
        self.variant = failure.local or next((min(tags) for tags in (of_indexes, of_offers) if len(tags) == 1), "")
        variant = self.variant.removeprefix("nightly/")
        is_tagged = self.package in CORE and variant[:2] in {"cu", "ro", "xp"}
        self.rows = builds(failure.package)
        public = failure.wanted.partition("+")[0].replace("===", "==")
        self.taken = tuple(row for row in self.rows if not row.version or is_within(row.version, public) is not False)
        self.asked = tuple(row for row in self.taken if not is_tagged or row.variant in {"", variant})
        self.for_platform = tuple(row for row in self.asked if row.platform in self.platforms)
        # Whether one of these is for the Python, if that is known.
        self.is_served = any(not self.python or row.serves(self.python) for row in self.for_platform)
        # Whether the installer saw no version at all, or does not say what it saw and what was lacking.
        self.may_offer_nothing = failure.offered == () or (failure.offered is None and not failure.lacks)
        # Whether one of torch's family is pinned to less than the oldest release in the catalogue.
        oldest = min((number(row.version) for row in self.rows), default=())
        self.is_pin = self.package in CORE and failure.wanted.startswith("==")
        self.is_ancient = self.is_pin and number(failure.wanted) < oldest

    def index(self, *kinds: str) -> str:
        """Return the first index that was asked and is of one of some kinds; "" if none is."""
        return next((url for kind in kinds for url, index in self.indexes.items() if index.kind == kind), "")

    @property
    def on_pypi(self) -> bool:
        """Whether PyPI alone, which has no tagged builds, was asked for a package that the catalogue knows."""
        is_known = bool(self.rows) or self.package in OTHERS or self.package in all_names()
        is_tagged = any("+" in version for version in self.failure.offered or ())
        return is_known and not is_tagged and {index.kind for index in self.indexes.values()} <= {"pypi"}

    def cause(self, key: str, basis: str = "installer", unknown: str = "", **names: str) -> Cause:
        """Return a cause at the failure's line; its names are those that any rule of installers may need, and `names`.

        Names without a value are left out; a `right` index that is PyPI becomes the name `pypi`. `unknown` is the fact
        ("os" or "python") that decides and was not found; known facts are those of the two that the machine has.
        """
        wanted, local = self.failure.wanted, self.failure.local
        of_builds = newest_python(tag for row in self.for_platform for tag in row.pythons)
        values = {
            "package": self.package,
            "requirement": f"{self.package}{wanted}",
            "release": f"{self.package}{wanted.partition('+')[0]}",
            "best_python": self.failure.newest_python or of_builds,
            "by": self.failure.by,
            "local": local,
            "tag_index": f"https://download.pytorch.org/whl/{local}" if local[:2] == "cu" else "",
            **names,
        }
        if values.get("right") == PYPI:
            values |= {"right": "", "pypi": PYPI}
        given_names = {name: value for name, value in values.items() if value}
        facts = (("os", self.machine.os), ("python", self.machine.python))
        known = tuple(name for name, value in facts if value and name != unknown)
        return Cause(key, basis, (self.line,), given_names, known, (unknown,) if unknown else ())


def _with_installer_facts(failure: Failure, text: str, machine: Machine) -> Machine:
    """Return the machine with what the installer's own tags, and what is on offer, tell of it."""
    tag = failure.running
    system, arch = platform_of_tag(tag)
    changes: dict[str, object] = {"os": system, "arch": arch} if system else {}
    if glibc := re.match(r"manylinux_(\d_\d{1,2})_", tag):
        changes["glibc"] = glibc[1].replace("_", ".")
    elif tag.startswith("musl"):
        changes["libc"] = "musl"
    elif cpython := re.fullmatch(r"cp3(\d{1,2})t?", tag):
        changes["python"] = f"3.{cpython[1]}"
    elif failure.python:
        changes["python"] = failure.python
    machine = replace(machine, **changes)
    if machine.os != "macos":
        return machine
    if machine.arch != "x86_64" and "arch" not in changes and (arch := _mac_arch(machine, failure, text)):
        machine = replace(machine, arch=arch)
    is_translated = machine.arch == "x86_64" and any(gpu.vendor is Vendor.APPLE for gpu in machine.gpus)
    return replace(machine, rosetta=True) if is_translated else machine


def _mac_arch(machine: Machine, failure: Failure, text: str) -> str:
    """Return the processor of a Mac by its GPU, its year, or the newest torch on offer, the last for Intel; else ""."""
    names = " ".join((gpu.name or "").lower() for gpu in machine.gpus)
    vendors = {gpu.vendor for gpu in machine.gpus}
    last_for_intel = max(number(row.version) for row in builds("torch") if row.platform == "macos_x86_64")
    newest_offer = max(map(number, failure.offered or ()), default=())
    is_intel = failure.package == "torch" and newest_offer == last_for_intel
    if Vendor.APPLE in vendors or re.search(r"\bapple\b|\bm[1-9]\b", names):
        return "x86_64" if is_intel else "arm64"
    has_other_gpu = vendors & {Vendor.AMD, Vendor.INTEL, Vendor.NVIDIA} or "intel" in names
    return "x86_64" if is_intel or has_other_gpu or pattern_of("intel_mac").search(text) else ""


def installer_causes(log: Log, machine: Machine) -> Iterable[Cause]:
    """Return the cause why an installer could not have a package, of the first failure with one; () if none has."""
    found = failures(log.text)
    judged = sorted(found, key=lambda failure: not failure.bounds)[:JUDGED]
    attempts = (Attempt(failure, log, machine) for failure in judged)
    causes = (cause for attempt in attempts for find in _FINDERS for cause in find(attempt))
    cause = next(causes, None) or next(_missing_file_causes(log, machine), None)
    if not cause and not found and len(log.text) <= PROSE:
        cause = next(_prose_causes(log, machine), None)
    return (cause,) if cause else ()


# The finders: each yields the causes that one kind of reason gives why a package could not be had, the likeliest first.


def _machine_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause if a package of PyTorch's or ONNX's is asked for by a 32-bit Python, or on a system with musl."""
    machine, package = attempt.machine, attempt.package
    if attempt.rows or package in OTHERS or re.match(r"torch|onnx|nvidia-", package):
        has_32_bits = re.search(r"32.?bit|-32\b|\bx86\b(?!.64)|\bwin32\b", (machine.python or "").lower())
        if machine.python_bits == 32 or machine.arch == "x86" or has_32_bits:  # noqa: PLR2004 - bits
            yield attempt.cause("python-32bit")
        names_musl = machine.os in {None, "linux"} and pattern_of("musl").search(attempt.text)
        if names_musl or (machine.libc or "").startswith("musl"):
            yield attempt.cause("musl-system")


def _cache_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause if a cache gave an old answer: without it all is well, or with another; or glibc is newer."""
    lacks = attempt.failure.lacks
    is_outdated = lacks == "platform" and number(attempt.glibc) > number(attempt.machine.glibc) > ()
    is_wrong = lacks in {"python", "platform"} and attempt.is_served
    file = re.escape(f"{attempt.package}-{attempt.failure.release}")
    is_taken = lacks == "platform" and re.search(rf"successfully installed [^\n]{{0,900}}\b{file}(?!\d)", attempt.text)
    if is_taken or is_outdated or (is_wrong and pattern_of("works_without_cache").search(attempt.text)):
        yield attempt.cause("stale-installer-cache")


def _name_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause with the right name if a package was renamed or is misspelt."""
    package, known = attempt.package, all_names() | CORE
    right = plain_table("installers.toml")["names"].get(package, "")
    if attempt.may_offer_nothing and package not in known and not attempt.rows and len(package) >= SHORTEST_NAME:
        right = right or next(iter(get_close_matches(package, known, n=1, cutoff=0.84)), "")
    if right and not attempt.failure.conda:  # which has names of its own
        yield attempt.cause("obsolete-package-name", "installer-open", right=right)


def _unasked_index_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield causes if the installer did not ask an index, for the package, that a setting or a message names.

    For torch and its family that is also an index in pip's settings alone, which another installer does not read.
    """
    failure, text, is_torch = attempt.failure, attempt.text, attempt.package in CORE
    if failure.index_url and not failure.locked:  # uv says itself that it stops at the first index that knows a name
        names = {"index": failure.index_url, "right": failure.better_index}
        yield attempt.cause("index-not-applied", foreign="" if is_torch else attempt.package, **names)
    # Another index stands where this tool does not look: pip's settings, or those of `uv pip` alone.
    is_pip_s = pattern_of("uv").search(text) and pattern_of("pip_settings").search(text)
    is_uv_pip_s = pattern_of("uv_in_a_project").search(text) and pattern_of("uv_pip_settings").search(text)
    right = right_index(attempt) if is_torch and (is_pip_s or is_uv_pip_s) else ""
    if right not in {"", PYPI}:
        yield attempt.cause("index-not-applied", right=right, unread=right)


def _index_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause if an index that was asked is wrong, lacks the package, or another one was not asked for it."""
    failure, package = attempt.failure, attempt.package
    has_pypi, wrong, torch = attempt.index("pypi"), attempt.index("wrong"), attempt.index("torch")
    is_carried, nothing = carried_by_torch_index(package), attempt.may_offer_nothing
    lacks_build = bool(failure.local) and not any(failure.local in version for version in failure.offered or ())
    if wrong and (lacks_build or (nothing and not has_pypi)):
        right = attempt.indexes[wrong].right
        variant = classify_address(right.lower()).variant
        if variant and package in CORE and variant not in {row.variant for row in attempt.taken}:
            right = right_index(attempt, variant) or right  # that of the nearest variant with the release
        yield attempt.cause("index-wrong", index=wrong, right=right)
    if package in CORE:
        return
    if torch and not has_pypi and not is_carried and (nothing or failure.lacks):
        is_unasked = failure.by or failure.locked or failure.lacks
        names = {"index": torch, "right": PYPI, "foreign": package}
        yield attempt.cause("index-not-applied" if is_unasked else "index-wrong", **names)
    if is_carried and failure.by in CORE and (not torch or pattern_of("explicit_index").search(attempt.text)):
        yield attempt.cause("index-not-applied", right=right_index(attempt))


def _platform_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause if the package has no build for this system, by the wheels' tags in the log or the catalogue."""
    failure, machine, package = attempt.failure, attempt.machine, attempt.package
    is_torch, is_mac = package in CORE, machine.os == "macos"
    is_from_lock = bool(pattern_of("locked_elsewhere").search(attempt.text))
    if package in {"onnxruntime-directml", "torch-directml"} and machine.os == "linux":
        if machine.wsl is False or package == "onnxruntime-directml":
            yield attempt.cause("directml-on-native-linux", unknown="" if machine.wsl is False else "os")
        return
    if is_mac and (
        failure.local.startswith("cu")
        or (is_torch and attempt.variant.removeprefix("nightly/").startswith("cu"))
        or re.match(r"nvidia-|cudatoolkit|cudnn|pytorch-cuda|cuda-", package)
    ):
        yield attempt.cause("lock-for-other-platform" if failure.locked and is_from_lock else "cuda-wheel-on-mac")
    if is_torch and is_mac and machine.rosetta:
        yield attempt.cause("mps-x86-python-rosetta")
    rows = plain_table("installers.toml")["systems"].items()
    systems = next((systems for name, systems in rows if package.startswith(name)), ())
    if systems and machine.os and machine.os not in systems:
        yield attempt.cause("lock-for-other-platform")
    system, arch = next(filter(any, map(platform_of_tag, failure.tags)), (machine.os, machine.arch))
    suits_arch = arch in {"universal2", machine.arch} or {arch, machine.arch} <= {"arm64", "aarch64", None}
    has_no_wheel = (
        failure.lacks == "platform"
        or (machine.os and not (system == machine.os and (suits_arch or not machine.arch)))
        or (machine.os and attempt.asked and not attempt.for_platform)
        or (is_torch and is_mac and failure.local)
    )
    if has_no_wheel and is_from_lock:
        yield attempt.cause("lock-for-other-platform")
    served = {row.platform for row in attempt.for_platform}
    is_for_arm = not machine.arch and failure.wanted and attempt.is_served and "macos_x86_64" not in served
    if is_torch and is_mac and machine.arch in {"x86_64", None} and (has_no_wheel or is_for_arm):
        yield attempt.cause("torch-no-intel-mac-wheel", unknown="" if machine.arch else "arch")
    tags = [match for tag in failure.tags if (match := re.fullmatch(r"manylinux_(\d_\d{1,2})_(\w+)", tag))]
    by_tags = [number(match[1]) for match in tags if match[2] == machine.arch]
    oldest = min(by_tags or [row.glibc for row in attempt.for_platform if row.glibc], default=())
    if oldest > number(machine.glibc) > ():
        yield attempt.cause("glibc-too-old")
    if has_no_wheel:
        yield attempt.cause("wheel-not-for-platform")


def _python_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause if the Python does not suit the package: by the installer's words, else by the catalogue."""
    failure, python = attempt.failure, attempt.python
    # ERROR: Ignored the following versions that require a different python version: 1.26.0 Requires-Python <3.13,>=3.9
    release = re.escape(failure.release or "-")
    ignored = re.search(rf"(?<![\w.]){release} requires-python ([<>=!~][^;\n]{{1,60}})", attempt.text)
    if bounds := failure.bounds or (ignored[1] if ignored else ""):
        # A late patch stands for a minor release: <=3.11 admits 3.11.0 alone.
        fitting = [minor for minor in range(7, 30) if is_within(f"3.{minor}.30", bounds)]
        best = f"3.{fitting[-1]}" if fitting and "<" in bounds else ""
        is_too_new = best and (not python or number(f"3.{python[1:]}") > number(best))
        # A project that admits more Pythons than the package supports gets other bounds, and no other Python.
        names = {"best_python": best} if best or (failure.bounds and not failure.python) else {}
        yield attempt.cause("python-too-new-for-wheel" if is_too_new else "python-unsupported-for-wheel", **names)
        return
    oldest_offer = min(map(number, failure.offered or ()), default=())
    if failure.lacks == "python" or "".join(failure.tags[:1]).startswith("cp"):
        if failure.lacks == "python" or not python or failure.newest_python != f"3.{python[1:]}":
            yield _unserved_python(attempt, "" if python else "python")
    elif failure.lacks == "version" or (failure.local and failure.release in (failure.offered or ())):
        return
    elif python:
        # PyPI offers those releases alone that have files for this Python: older ones are for older Pythons.
        is_too_old = attempt.failure.wanted.startswith("==") and number(failure.wanted) < oldest_offer
        if attempt.is_ancient or (attempt.for_platform and not attempt.is_served) or (is_too_old and attempt.on_pypi):
            yield _unserved_python(attempt)
    elif attempt.is_pin and attempt.for_platform and number(failure.wanted) < oldest_offer:
        # No index drops a release of a build that it keeps: what is older than all on offer is for older Pythons.
        yield _unserved_python(attempt, "python")


def _unserved_python(attempt: Attempt, unknown: str = "", basis: str = "installer", best: str = "") -> Cause:
    """Return the cause of a Python that a release does not serve: too new for it, or unsupported.

    It counts as too new from the oldest on that PyTorch's newest release serves, and if it is unknown. `best` is the
    Python to take, if it is not the newest that has wheels.
    """
    oldest_served = min(number(f"3.{tag[1:]}") for tag in load_catalog().releases[0].pythons["any"])
    is_too_new = not attempt.python or number(f"3.{attempt.python[1:]}") >= oldest_served
    names = {"best_python": best} if best else {}
    if attempt.is_ancient and not attempt.failure.newest_python:
        rows, wanted = plain_table("installers.toml")["earlier_pythons"], number(attempt.failure.wanted)
        pythons = (best for name, since, best in rows if name == attempt.package and wanted >= number(since))
        names = {"best_python": next(pythons, "")}
    key = "python-too-new-for-wheel" if is_too_new else "python-unsupported-for-wheel"
    return attempt.cause(key, basis, unknown, **names)


def _release_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause if a release is not on offer although Python and platform would suit it."""
    failure, package = attempt.failure, attempt.package
    if failure.conda:
        has_nvidia = any(gpu.vendor is Vendor.NVIDIA for gpu in attempt.machine.gpus)
        is_for_cuda = has_nvidia or re.search(r"\bpytorch-cuda\b|\bcudatoolkit\b", attempt.text)
        pin = failure.wanted.removeprefix("=").removesuffix(".*") if package == "pytorch" else ""
        gpu = f"pytorch-gpu{pin}" if is_for_cuda and attempt.machine.os != "macos" else ""
        if package in {"pytorch", "torchvision", "torchaudio", "pytorch-cuda", "cudatoolkit"}:
            yield attempt.cause(
                "release-not-on-index", channel="conda-forge", release="", requirement="", conda_gpu=gpu
            )
        return
    offered, wanted = failure.offered or (), number(failure.wanted)
    is_listed = (failure.lacks == "version" or offered) and failure.wanted and (attempt.rows or offered)
    if is_listed and not pattern_of("network").search(attempt.text):  # a page that did not come may list the release
        releases = {row.version for row in attempt.rows if row.version} or {*offered}
        if failure.release in offered:  # only its build with that tag is not here
            releases = {failure.release}
        alike = [release for release in releases if number(release)[:2] == wanted[:2]]
        nearest = (
            ""
            if attempt.taken or not wanted or package.startswith("nvidia-")
            else max(alike or releases, key=number, default="")
        )
        nearest = f"{package}=={nearest}" if nearest else ""
        right = right_index(attempt)
        right = "" if right == PYPI and attempt.on_pypi else right  # which was asked
        yield attempt.cause("release-not-on-index", "installer-open", right=right, nearest=nearest)


def right_index(attempt: Attempt, variant: str = "") -> str:
    """Return the index that has the release for this machine, of the variant nearest to the one asked for.

    "PyPI" stands for its index; "" if no index is known to have it.
    """
    package, catalog, variant = attempt.package, load_catalog(), variant or attempt.variant
    if package not in CORE:
        build = pattern_of("torch_build").search(attempt.text)
        variant = (variant if attempt.failure.by in CORE else "") or (build[1] if build else "")
        of_rocm = re.match(r"rocm\d{1,2}\.\d{1,2}", variant)  # rocm7.2 for AMD's rocm7.2.0.gita272dfa8
        is_carried = variant and carried_by_torch_index(package)
        return catalog.index_url(of_rocm[0] if of_rocm else variant) or "" if is_carried else PYPI
    here = [row for row in attempt.taken if row.platform in attempt.platforms]
    suiting = {row.variant for row in here if not attempt.python or row.serves(attempt.python)} - {"pypi"}
    nearest = variant_near(variant, suiting)
    return catalog.index_url(nearest) or "" if nearest else PYPI if attempt.taken else ""


def _other_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause if nothing was offered and nothing else explains it: a strange index, or a new Python."""
    package, python, catalog = attempt.package, attempt.python, load_catalog()
    is_known = bool(attempt.rows) or package in OTHERS or package in all_names()
    if not attempt.may_offer_nothing or not is_known or pattern_of("network").search(attempt.text):
        return
    strange = attempt.index("mirror", "unknown")
    if strange and not attempt.index("pypi"):
        key = "mirror-without-files" if attempt.index("mirror") else "index-wrong"
        yield attempt.cause(key, "installer-open", index=strange, right=right_index(attempt))
    mirror = next((url for url in attempt.indexes if is_pypi_mirror(url, catalog)), "")
    if mirror and python and any(row.serves(python) for row in attempt.rows):
        yield attempt.cause("mirror-without-files", "symptom-and-fact", index=mirror, right=PYPI)
    if python:
        tags = {tag for row in attempt.rows for tag in row.pythons} or {*catalog.releases[0].pythons["any"]}
        minors, minor = sorted({int(tag[1:].rstrip("t")) for tag in tags}), int(python[1:].rstrip("t"))
        if minor >= minors[-NEWEST:][0] or minor < 10:  # noqa: PLR2004 - no build of today serves it
            older = [f"3.{other}" for other in minors if other < minor]
            yield _unserved_python(attempt, basis="library-else", best="".join(older[-1:]))


_FINDERS: tuple[Callable[[Attempt], Iterator[Cause]], ...] = (
    _machine_causes,
    _cache_causes,
    _name_causes,
    _unasked_index_causes,
    _index_causes,
    _platform_causes,
    _python_causes,
    _release_causes,
    _other_causes,
)


def _missing_file_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield a cause for each wheel that an index lists and does not deliver: its file gives HTTP 403 or 404."""
    named_addresses = addresses(log)
    for address in named_addresses:
        # https://…/torch-2.15.0%2Bcu130-cp312-cp312-win_amd64.whl
        file = re.search(
            r"/([a-z0-9][\w.]{0,60})-(\d[\w.]{0,20})((?:%2b|\+)[\w.]{2,20})?-[^/]{5,120}\.whl", address.url
        )
        if file and address.state in {"403", "404"} and "github.com" not in address.url:
            version = f"=={file[2]}{(file[3] or '').replace('%2b', '+')}"
            attempt = Attempt(Failure(file[1].replace("_", "-"), address.at, version), log, machine)
            index = next((other.url for other in named_addresses if not other.state), address.url.rpartition("/")[0])
            right = right_index(attempt)
            key = "release-not-on-index" if right and address.url.startswith(right) else "mirror-without-files"
            yield attempt.cause(key, "installer-open", index=index, right=right)


def _prose_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield causes if a person tells that a package cannot be installed and the machine's facts exclude it."""
    text = log.text.replace("pytorch", "torch")
    if not pattern_of("cannot_install").search(text) or pattern_of("network").search(text):
        return
    told = pattern_of("python").search(text)
    if told and not machine.python:
        machine = replace(machine, python=f"3.{told[1] or told[2] or told[3]}")
    for match in pattern_of("mention").finditer(text):
        attempt = Attempt(Failure(f"{match[1]}{match[2] or ''}", 0, _specifier(match[3] or "")), log, machine)
        for find in (_machine_causes, _platform_causes, _python_causes):
            yield from (cause._replace(basis="symptom-and-fact") for cause in find(attempt))

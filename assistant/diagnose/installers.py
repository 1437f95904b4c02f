"""Works out why an installer could not have a package: from its own words, and what the catalogue knows to be there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from assistant.catalog import Number, carried_by_torch_index, load_catalog, number
from assistant.catalog.companions import known_names
from assistant.catalog.rows import CORE, FAMILY
from assistant.diagnose.attempts import (
    Attempt,
    attempt_of,
    meeting,
    newest_python,
    of_variant,
    own_text,
    serve,
    starting_at,
    tag_of,
    told_python,
    variant_near,
)
from assistant.diagnose.index_addresses import PYPI, addresses, judge, tables
from assistant.diagnose.installer_output import Failure, failures, mentions, narrower_pythons, refused_pythons
from assistant.diagnose.log import Log
from assistant.diagnose.rules import Cause
from assistant.model.machine import Machine
from assistant.model.record import replace

MOST = 6  # failures of one log that are judged: the rest follow from the first
NEWEST = 3  # chosen: a package's newest Pythons, which an index, a mirror or an old log may not have yet
PROSE = 1500  # characters of a text that may be somebody's own words
OTHERS = frozenset({"tensorflow", "intel-extension-for-pytorch", "triton", "bitsandbytes", "flash-attn", "xformers"})
# The network's own failures have rules of their own.
_NETWORK = re.compile(
    r"newconnectionerror|connection broken|certificate.verify|ssl module in python|read timed out|proxyerror|dns error"
    r"|temporary failure in name|getaddrinfo failed|cannot connect to proxy|name resolution|connecttimeout"
    r"|unknownissuer|tcp connect error"
)
_MUSL = re.compile(r"\bmusl\b|\balpine\b|musllinux-index|\bhome ?assistant os\b")
_THIRTY_TWO = re.compile(r"32.?bit|-32\b|\bx86\b(?!.64)|\bwin32\b")
# Somebody's own words: "pip says no matching distribution", "cannot install …", 装不了, 找不到版本, 没有合适的版本
_CANNOT = re.compile(
    r"no matching distribution|no (?:matching|suitable|compatible|such)? ?(?:version|wheel|distribution)"
    r"|(?:can ?not|can't|could ?n[o']t|unable to|won't|fails? to|failed to|does ?n[o']t) (?:be )?(?:pip )?install"
    r"|install\w{0,6} (?:\S{1,30} ){0,4}fail|(?:refuses|no way) to install|not installable|no wheels?\b"
    r"|装不[了上]|安装不[了上]|安装失败|无法安装|不能安装|没法装|装失败|找不到.{0,12}(?:版本|包|发行)"
    r"|没有.{0,10}(?:版本|轮子|wheel)"
)
_PYTHON_TOLD = re.compile(
    r"(?<![a-z])py(?:thon)?(?: ?(?:是|=|:|is|version|版本)){0,2} ?(3\.\d{1,2})"
    r"|(?<![\d.])(3\.\d{1,2})[ 的]{0,2}(?:版本?的?)? ?python"
    r"|(?<![a-z])cp3(\d{1,2})(?!\d)"
)
# uv.lock was written on a Linux server; requirements.txt exported on Windows; 锁文件是在Linux服务器上生成的
_SYSTEMS = r"(?:linux|windows|mac(?:os)?|server|ubuntu|colleague|another|other|服务器|别的|另一)"
_LOCK = re.compile(
    r"(?:\.lock|lock ?file|锁文件|requirements\S{0,20})[^\n]{0,60}(?:written|made|created|generated|locked|exported"
    rf"|from|生成|来自|导出|锁定)[^\n]{{0,40}}{_SYSTEMS}"
    rf"|(?:locked|exported|frozen|generated) (?:it )?on (?:a |my |the )?{_SYSTEMS}"
    rf"|在 ?{_SYSTEMS}[^\n]{{0,12}}(?:生成|锁定|导出)"
)
# A cache that holds an old answer: "with --no-cache the very same line works", 清了缓存就好了
_CACHE = re.compile(
    r"(?:--no-cache|--refresh|cache (?:clean|purge|clear)|clear\w{0,3} the cache|without (?:the )?cache|no cache)"
    r"[^\n]{0,90}(?:works|worked|fine|helps|solved|fixed|installs|好了|正常|可以|成功|解决)"
    r"|缓存[^\n]{0,30}(?:好了|正常|可以|成功|解决)"
    r"|(?:works|worked|fine|installs)[^\n]{0,60}(?:--no-cache|--refresh|without (?:the )?cache|cache clean)"
)
# explicit = true     (an index of uv that serves only the packages that name it)     priority = "explicit" (Poetry)
_EXPLICIT = re.compile(r"\bexplicit ?= ?true\b|priority ?= ?[\"']explicit\b")


def installer_causes(log: Log, machine: Machine) -> Iterable[Cause]:
    """Return why the packages that a log's installer could not have are not to be had; () where none is missing."""
    text = log.text
    if causes := list(bound_causes(log, machine)):
        return causes
    found = failures(text)
    for failure in found[:MOST]:
        attempt = attempt_of(failure, log, machine)
        if causes := list(_judged(attempt)):
            return causes
    if causes := list(_files(log, machine)):
        return causes
    return [] if found or len(text) > PROSE else list(_in_prose(log, machine))


def _judged(attempt: Attempt) -> Iterator[Cause]:
    """Yield the reason why a package could not be had: the first of these that holds."""
    reasons = (_of_the_machine, _cache, _name, unasked, _index, _platform, _python, _release, _unexplained)
    for ask in reasons:
        if causes := list(ask(attempt)):
            yield from causes
            return


def _of_the_machine(attempt: Attempt) -> Iterator[Cause]:
    machine, package = attempt.machine, attempt.package
    if not (attempt.rows or package in OTHERS or re.match(r"torch|onnx|nvidia-", package)):
        return
    if machine.python_bits == 32 or machine.arch == "x86" or _THIRTY_TWO.search((machine.python or "").lower()):  # noqa: PLR2004 - bits
        yield attempt.cause("python-32bit")
    elif (machine.libc or "").startswith("musl") or (machine.os in {None, "linux"} and _MUSL.search(attempt.text)):
        yield attempt.cause("musl-system")


def _cache(attempt: Attempt) -> Iterator[Cause]:
    """Judge an answer of the past: with the cache it went away, or it names an older glibc than the system has."""
    if attempt.failure.lacks == "platform" and number(attempt.glibc) > number(attempt.machine.glibc) > ():
        yield attempt.cause("stale-installer-cache")
        return
    served = bool(attempt.here) and (not attempt.python or serve(attempt.here, attempt.python))
    if attempt.failure.lacks in {"python", "platform"} and served and _CACHE.search(attempt.text):
        yield attempt.cause("stale-installer-cache")


def _name(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause with the right name for a package that was renamed, is misspelt or is another in conda."""
    package = attempt.package
    right, names = tables().names.get(package, ""), known_names() | CORE
    if attempt.failure.conda:
        right = "pytorch" if package in {"torch", "pytorch-gpu"} else ""
    elif not right and attempt.nothing and package not in names and not attempt.rows and len(package) > 3:  # noqa: PLR2004 - too short to tell
        right = next(iter(get_close_matches(package, names, n=1, cutoff=0.84)), "")
    if right:
        yield attempt.cause("obsolete-package-name", right=right)


def _index(attempt: Attempt) -> Iterator[Cause]:
    """Judge the addresses that were asked: wrong ones, torch's for a package that it does not have."""
    failure, package = attempt.failure, attempt.package
    pypi = any(judged.kind == "pypi" for _url, judged in attempt.indexes)
    wrong = next(((url, judged) for url, judged in attempt.indexes if judged.kind == "wrong"), None)
    local = bool(failure.local) and not any(failure.local in one for one in failure.offered or ())
    if wrong and (attempt.nothing or local) and (not pypi or local):
        yield attempt.cause("index-wrong", index=wrong[0], right=_with_release(attempt, wrong[1].right))
        return
    torch = next((url for url, judged in attempt.indexes if judged.kind == "torch"), "")
    foreign = package not in CORE and not carried_by_torch_index(package)
    if torch and foreign and not pypi and (attempt.nothing or failure.lacks in {"python", "platform", "version"}):
        key = "index-not-applied" if failure.by or failure.locked or failure.lacks else "index-wrong"
        yield attempt.cause(key, index=torch, right=PYPI)
    elif (
        carried_by_torch_index(package)
        and package not in CORE
        and failure.by in CORE
        and (not torch or _EXPLICIT.search(attempt.text))
    ):
        yield attempt.cause("index-not-applied", right=right_index(attempt))


def _platform(attempt: Attempt) -> Iterator[Cause]:
    """Judge the system: by the tags that the installer names, else by what the catalogue knows."""
    failure, machine, package = attempt.failure, attempt.machine, attempt.package
    if package in {"onnxruntime-directml", "torch-directml"} and machine.os == "linux":
        if machine.wsl is False or package == "onnxruntime-directml":
            yield attempt.cause("directml-on-native-linux", unknown=() if machine.wsl is False else ("os",))
        return
    if machine.os == "macos" and (causes := list(_on_a_mac(attempt))):
        yield from causes
        return
    wheel = next((tag for tag in failure.tags if re.match(r"many|musl|win|mac|linux", tag)), "")
    unseen = bool(attempt.here) and not any(row.confirmed for row in attempt.here) and bool(failure.local)
    foreign = bool(wheel) and bool(machine.os) and not _fits(wheel, machine)
    only = next((systems for name, systems in tables().systems.items() if package.startswith(name)), ())
    elsewhere = bool(attempt.asked) and not attempt.here
    if only and machine.os and machine.os not in only:
        yield attempt.cause("lock-for-other-platform")
    elif failure.lacks == "platform" or foreign or (elsewhere and machine.os):
        yield from _no_wheel_here(attempt)
    elif glibc := _glibc_needed(attempt):
        yield attempt.cause("glibc-too-old", glibc=glibc)
    elif unseen and attempt.nothing:  # no index was seen to hold it, and this one does not
        yield attempt.cause("wheel-not-for-platform", "symptom-and-fact")
    elif _half_served(attempt):
        yield attempt.cause("torch-no-intel-mac-wheel", unknown=("arch",))


def _on_a_mac(attempt: Attempt) -> Iterator[Cause]:
    """Judge what no index has for macOS: CUDA, and PyTorch with a local version, which wheels for macOS have not."""
    failure, package = attempt.failure, attempt.package
    if failure.local.startswith("cu") or re.match(r"nvidia-|cudatoolkit|cudnn|pytorch-cuda|cuda-", package):
        other = failure.locked and _LOCK.search(attempt.text)
        yield attempt.cause("lock-for-other-platform" if other else "cuda-wheel-on-mac")
    elif attempt.machine.rosetta and package in CORE:
        yield attempt.cause("mps-x86-python-rosetta")
    elif failure.local and package in CORE:
        yield from _no_wheel_here(attempt)


def _no_wheel_here(attempt: Attempt) -> Iterator[Cause]:
    failure, machine = attempt.failure, attempt.machine
    if _LOCK.search(attempt.text):
        yield attempt.cause("lock-for-other-platform")
    elif machine.os == "macos" and attempt.package in CORE and machine.arch in {None, "x86_64"}:
        yield attempt.cause("torch-no-intel-mac-wheel", unknown=() if machine.arch else ("arch",))
    elif glibc := _glibc_needed(attempt):
        yield attempt.cause("glibc-too-old", glibc=glibc)
    else:
        system = {"macos": "macOS", "windows": "Windows", "linux": "Linux"}.get(machine.os or "", "")
        yield attempt.cause("wheel-not-for-platform", system=system, tags=", ".join(failure.tags[:6]))


def _fits(tag: str, machine: Machine) -> bool:
    """Return whether a wheel's platform tag is of the machine's system, and of its processor where that is known."""
    os = {"win": "windows", "mac": "macos", "man": "linux", "mus": "linux", "lin": "linux"}[tag[:3]]
    arch = {"x86_64": ("x86_64", "amd64"), "arm64": ("arm64", "aarch64"), "aarch64": ("arm64", "aarch64")}
    return os == machine.os and (tag.endswith(("any", "universal2", *arch.get(machine.arch or "", (tag,)))))


def _glibc_needed(attempt: Attempt) -> str:
    """Return the glibc that the wheels want and the machine lacks; "" where it has it or nobody knows."""
    own = number(attempt.machine.glibc)
    if not own:
        return ""
    tags = [found for tag in attempt.failure.tags if (found := re.fullmatch(r"manylinux_(\d)_(\d{1,2})_(\w+)", tag))]
    named = [f"{one[1]}.{one[2]}" for one in tags if one[3] == attempt.machine.arch]
    wanted: list[Number] = [number(one) for one in named] or [row.glibc for row in attempt.here if row.glibc]
    least = min(wanted, default=())
    return ".".join(map(str, least)) if least and least > own else ""


def _half_served(attempt: Attempt) -> bool:
    """Return whether a Mac's processor decides, and nobody knows it: an Apple one is served, an Intel one is not."""
    if attempt.machine.os != "macos" or attempt.machine.arch or attempt.package not in CORE or not attempt.here:
        return False
    platforms = {row.platform for row in attempt.here}
    return "macos_x86_64" not in platforms and serve(attempt.here, attempt.python) and bool(attempt.failure.wanted)


def _python(attempt: Attempt) -> Iterator[Cause]:
    """Judge the Python: by what the installer says of wheels, else by what the catalogue knows to be served."""
    failure, python = attempt.failure, attempt.python
    served = bool(attempt.here) and serve(attempt.here, python)
    if failure.lacks == "python" or (failure.tags and failure.tags[0].startswith("cp")):
        tagged = told_python(failure)
        if not (tagged and tagged == f"3.{python[1:]}" and failure.tags[0].isalnum() and failure.lacks != "python"):
            yield _python_cause(attempt, python, unknown=() if python else ("python",))
        return
    release = failure.wanted.removeprefix("==").partition("+")[0]
    if bounds := ignored_bounds(release, attempt.text):
        within = newest_within(bounds)
        yield _python_cause(attempt, python, best=within) if within else attempt.cause("python-unsupported-for-wheel")
        return
    build_alone = bool(failure.local) and release in (failure.offered or ())
    if failure.lacks == "version" or build_alone:
        return
    if not python:
        alike = of_variant(
            attempt.rows, attempt.variant if attempt.variant in {row.variant for row in attempt.rows} else ""
        )
        read = starting_at((row for row in alike if row.platform in attempt.platforms), failure.offered or ())
        if read and attempt.here and not serve(attempt.here, read):
            yield _python_cause(attempt._replace(python=read), read, unknown=("python",))
        return
    if _is_older_than_catalog(attempt) or (attempt.here and not served):
        yield _python_cause(attempt, python)


def _is_older_than_catalog(attempt: Attempt) -> bool:
    """Return whether torch or one of its family is pinned with "==" to less than the oldest one in the catalogue."""
    specifier = attempt.failure.wanted
    is_pinned = attempt.package in CORE and specifier.startswith("==")
    oldest = min((number(row.version) for row in attempt.rows), default=())
    return is_pinned and not meeting(attempt.rows, specifier) and number(specifier) < oldest


def _python_cause(
    attempt: Attempt, python: str, unknown: tuple[str, ...] = (), basis: str = "installer", best: str = ""
) -> Cause:
    """Name a Python that a release does not serve: "too new" where torch still goes with it, else "unsupported"."""
    newest = load_catalog().releases[0].pythons["any"]
    bound = min(number(f"3.{tag[1:]}") for tag in newest)
    new = not python or number(f"3.{python[1:]}") >= bound
    key = "python-too-new-for-wheel" if new else "python-unsupported-for-wheel"
    best = best or _earlier_python(attempt)
    return attempt.cause(key, basis, unknown, **({"best_python": best} if best else {}))


def _earlier_python(attempt: Attempt) -> str:
    """Return the newest Python of a release that is older than all that the catalogue knows; "" for others."""
    version = number(attempt.failure.wanted)
    rows = tables().earlier_pythons if _is_older_than_catalog(attempt) and not told_python(attempt.failure) else ()
    return next((python for name, since, python in rows if name == attempt.package and version >= number(since)), "")


def _release(attempt: Attempt) -> Iterator[Cause]:
    """Judge a release that is not among those on offer although Python and platform would fit."""
    failure = attempt.failure
    if failure.conda:
        wanted = attempt.package in {"pytorch", "torchvision", "torchaudio", "pytorch-cuda", "cudatoolkit"}
        if wanted:
            yield attempt.cause("release-not-on-index", channel="conda-forge")
        return
    listed = failure.lacks == "version" or bool(failure.offered)
    if _NETWORK.search(attempt.text):  # a page that did not come may list the release
        return
    if listed and failure.wanted and (attempt.rows or failure.offered):
        yield attempt.cause("release-not-on-index", right=right_index(attempt), nearest=_nearest(attempt))


def _with_release(attempt: Attempt, right: str) -> str:
    """Return the address that was meant, or where that lacks the release, the nearest index that has it."""
    asked = judge(right.rstrip("/").lower()).variant if right else ""
    rows = meeting(attempt.rows, attempt.failure.wanted) if attempt.package in CORE and attempt.failure.wanted else ()
    fitting = {row.variant for row in rows if row.platform in attempt.platforms} - {"pypi"}
    chosen = variant_near(asked, fitting) if asked and fitting and asked not in fitting else ""
    return load_catalog().index_url(chosen) or right if chosen else right


def _nearest(attempt: Attempt) -> str:
    """Return the release nearest to one that does not exist, as a requirement; "" where it exists."""
    wanted = number(attempt.failure.wanted)
    if meeting(attempt.rows, attempt.failure.wanted) or not wanted:
        return ""
    release = attempt.failure.wanted.removeprefix("==").partition("+")[0]
    if release in (attempt.failure.offered or ()):  # only its build with that tag is not here
        return f"{attempt.package}=={release}"
    there = {row.version for row in attempt.rows if row.version} or set(attempt.failure.offered or ())
    alike = [one for one in there if number(one)[:2] == wanted[:2]]
    found = max(alike or there, key=number, default="")
    return f"{attempt.package}=={found}" if found else ""


def _unexplained(attempt: Attempt) -> Iterator[Cause]:
    """Judge what nothing known explains: a mirror or index that is nobody's, else a Python that is new everywhere."""
    package, python = attempt.package, attempt.python
    if not attempt.nothing or _NETWORK.search(attempt.text):
        return
    kinds = {judged.kind: url for url, judged in attempt.indexes}
    known = bool(attempt.rows) or package in OTHERS or package in known_names()
    if known and "pypi" not in kinds and {"mirror", "unknown"} & {*kinds}:
        key = "mirror-without-files" if "mirror" in kinds else "index-wrong"
        yield attempt.cause(key, index=kinds.get("mirror", kinds.get("unknown", "")), right=right_index(attempt))
    elif known and python.rstrip("t"):
        minors = sorted({int(tag[1:].rstrip("t")) for row in attempt.rows for tag in row.pythons})
        newest = (
            minors[-NEWEST:] or [int(tag[1:].rstrip("t")) for tag in load_catalog().releases[0].pythons["any"]][-6:]
        )
        minor = int(python[1:].rstrip("t"))
        if minor in newest[-NEWEST:] or minor > newest[-1] or minor < 10:  # noqa: PLR2004 - no build of today serves it
            yield _python_cause(attempt, python, ("index",), "symptom-told")
        else:
            yield attempt.cause("index-wrong", "symptom-told", ("index",), right=right_index(attempt))


def _files(log: Log, machine: Machine) -> Iterator[Cause]:
    """Judge a wheel that an index lists and does not have: HTTP 404 or 403 for the file itself."""
    named = addresses(own_text(log))
    for one in named:
        file = re.search(
            r"/([a-z0-9][\w.]{0,60})-(\d[\w.]{0,20})(?:(?:%2b|\+)([\w.]{2,20}))?-[^/]{5,120}\.whl", one.url
        )
        if file and one.state in {"403", "404"} and "github.com" not in one.url:
            local = f"+{file[3]}" if file[3] else ""
            failure = Failure(file[1].replace("_", "-"), one.at, f"=={file[2]}{local}")
            attempt = attempt_of(failure, log, machine)
            index = next((each.url for each in named if not each.state), one.url.rpartition("/")[0])
            right = right_index(attempt)
            own = bool(right) and one.url.startswith(right)
            yield attempt.cause("release-not-on-index" if own else "mirror-without-files", index=index, right=right)
            return


def _in_prose(log: Log, machine: Machine) -> Iterator[Cause]:
    """Judge a package that somebody says cannot be installed, where a known fact really excludes it."""
    text = log.text
    if not _CANNOT.search(text) or _NETWORK.search(text):
        return
    told = _PYTHON_TOLD.search(text)
    if told and not machine.python:
        machine = replace(machine, python=told[1] or told[2] or f"3.{told[3]}")
    names = {"torch", *FAMILY, "torch-directml", "onnxruntime", "onnxruntime-directml", "onnxruntime-gpu"}
    for failure in mentions(text.replace("pytorch", "torch"), names):
        attempt = attempt_of(failure._replace(at=0), log, machine)
        for ask in (_of_the_machine, _platform, _python):
            if causes := list(ask(attempt)):
                yield from (cause._replace(basis="symptom-and-fact") for cause in causes)
                return


# hint: `numpy` was found on https://T, but not at the requested version (numpy==2.0). A compatible version may be
# available on a subsequent index (e.g., https://P).
_FIRST_INDEX = re.compile(
    r"`([a-z0-9][\w.-]{0,60})` was found on (\S{4,200}?),\s{1,9}but not at the requested version[^)]{1,90}\)"
    r"(?:[^()]{1,160}\(e\.g\.,\s{1,9}(\S{4,200}?)\))?"
)
_TORCH_BUILD = re.compile(r"\btorch(?:\{[^{}]{0,200}\})?==\d[\w.]{0,20}\+(cu\d{2,3}|rocm[\d.]{1,6}|xpu)\b")
# Settings of an index, and the tools that do not read them:
#   extra-index-url below [tool.uv.pip]: only `uv pip` reads it
#   export PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cu130: only pip reads it
# https://docs.astral.sh/uv/reference/settings/#pip, https://docs.astral.sh/uv/pip/compatibility/, 2026-11-26
_UV_PIP_TABLE = re.compile(r"^[ \t]*\[tool\.uv\.pip\][ \t]*\n(?:[^\[\n][^\n]*\n){0,8}?[^\[\n]*index", re.MULTILINE)
_BY_PROJECT = re.compile(r"\buv (?:sync|lock|run|add|export)\b")
_PIP_SETTINGS = re.compile(
    r"\bpip_(?:extra_)?index_url ?=|pip config (?:set|list)[^\n]{0,40}(?:\n[^\n]{0,40})?index|pip\.(?:conf|ini)\b"
)
_BY_UV = re.compile(r"no solution found when resolving|\buv pip install\b|\buv (?:sync|lock|add)\b")


def unasked(attempt: Attempt) -> Iterator[Cause]:
    """Yield that an index was named and not asked for a package."""
    # uv says itself that it stops at the first index that knows a name.
    first = _FIRST_INDEX.search(attempt.text)
    if first and first[1] == attempt.package:
        yield attempt.cause("index-not-applied", index=first[2], right=first[3] or "")
    # Another index stands where this tool does not look: pip's settings, or those of `uv pip` alone.
    text, right = attempt.text, right_index(attempt) if attempt.package in CORE else ""
    of_pip = _BY_UV.search(text) and _PIP_SETTINGS.search(text)
    if right not in {"", PYPI} and (of_pip or (_BY_PROJECT.search(text) and _UV_PIP_TABLE.search(text))):
        yield attempt.cause("index-not-applied", right=right)


def right_index(attempt: Attempt) -> str:
    """Return the index that has the release for this machine, of the build nearest to the one that was asked for."""
    if attempt.package not in CORE:
        if carried_by_torch_index(attempt.package) and attempt.failure.by in CORE and attempt.variant:
            return load_catalog().index_url(_of_index(attempt.variant)) or ""
        if carried_by_torch_index(attempt.package) and (build := _TORCH_BUILD.search(attempt.text)):
            return load_catalog().index_url(build[1]) or ""
        return PYPI
    rows = meeting(attempt.rows, attempt.failure.wanted)
    fitting = {row.variant for row in rows if row.platform in attempt.platforms} - {"pypi"}
    if attempt.python:
        fitting &= {row.variant for row in rows if serve([row], attempt.python)}
    chosen = variant_near(attempt.variant, fitting)
    return load_catalog().index_url(chosen) or "" if chosen else PYPI if rows else ""


def _of_index(local: str) -> str:
    """Return the tag of the index for a local version: AMD's `rocm7.2.0.gita272dfa8` is of rocm7.2."""
    found = re.match(r"rocm\d{1,2}\.\d{1,2}", local)
    return found[0] if found else local


UNNAMED = "the package"


def bound_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield the cause of the first bound in a log that the Python fails, or that the project states too widely."""
    for version, bounds, at in refused_pythons(log.text):
        tag = f"3{version.split('.')[1]}" if version.startswith("3.") else ""
        depends = re.search(r"and ([a-z0-9][\w.-]{0,60}?)(?:==[\w.+]{1,30})? depends", log.text[at : at + 300])
        failure = Failure(depends[1] if depends else UNNAMED, at)
        attempt = attempt_of(failure, log, machine)._replace(python=tag or tag_of(machine))
        bound = re.search(r"<=? ?(\d\.\d{1,2})", bounds)
        high = bool(bound) and number(version) >= number(bound[1] if bound else "")
        key = "python-too-new-for-wheel" if high else "python-unsupported-for-wheel"
        yield attempt.cause(key, best_python=newest_within(bounds) or newest_python(attempt.here))
        return
    for package, bounds, at in narrower_pythons(log.text):
        attempt = attempt_of(Failure(package, at), log, machine)
        yield attempt.cause("python-unsupported-for-wheel", bounds=bounds, best_python="")
        return


def ignored_bounds(release: str, text: str) -> str:
    """Return the Pythons of a release that pip ignored for its own Python; "" where it ignored none.

    ERROR: Ignored the following versions that require a different python version: 1.26.0 Requires-Python <3.13,>=3.9
    """
    found = (
        re.search(rf"(?<![\w.]){re.escape(release)} requires-python ([<>=!~][^;\n]{{1,60}})", text) if release else None
    )
    return found[1] if found else ""


def newest_within(bounds: str) -> str:
    """Return the newest Python below an upper bound, such as 3.12 for `>=3.9,<3.13`; "" where there is none."""
    found = re.search(r"<(=?) ?3\.(\d{1,2})", bounds)
    return f"3.{int(found[2]) - (not found[1])}" if found else ""

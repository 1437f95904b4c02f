"""Works out why an installer could not have a package: from its own words, and what the catalogue knows to be there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from assistant.catalog import Number, carried_by_torch_index, load_catalog, number
from assistant.catalog.catalog import mirrors_pypi
from assistant.catalog.companions import known_names
from assistant.catalog.rows import CORE, FAMILY
from assistant.diagnose.attempts import (
    Attempt,
    any_serves,
    attempt_of,
    builds_of_variant,
    builds_within,
    newest_python,
    newest_tagged_python,
    python_by_oldest_offer,
    tag_of,
    unjoined_text,
    variant_near,
)
from assistant.diagnose.index_addresses import PYPI, addresses, classify_address, installer_tables
from assistant.diagnose.installer_output import Failure, failures, mentions, narrower_pythons, refused_pythons
from assistant.diagnose.log import Log
from assistant.diagnose.rules import Cause
from assistant.model.machine import Machine, Vendor
from assistant.model.record import replace

MOST = 6  # failures of one log that are judged: the rest follow from the first
NEWEST = 3  # chosen: a package's newest Pythons, which an index, a mirror or an old log may not have yet
LAST_OF_PYTORCH_CHANNEL = (2, 5)  # https://github.com/pytorch/pytorch/issues/138506
SHORTEST_NAME = 4  # characters of a name that is taken for a misspelt one
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
    r"|没有.{0,10}(?:版本|轮子|wheel)|\b3\.\d{1,2} is too new for\b|3\.\d{1,2} ?(?:版本)?太新"
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
    """Return the causes why an installer could not have a package, of the first failure with any; [] if none has."""
    text = log.text
    if causes := list(bound_causes(log, machine)):
        return causes
    failures_found = failures(text)
    for failure in failures_found[:MOST]:
        attempt = attempt_of(failure, log, machine)
        if causes := list(_causes_of_failure(attempt)):
            return causes
    if causes := list(_missing_file_causes(log, machine)):
        return causes
    return [] if failures_found or len(text) > PROSE else list(_prose_causes(log, machine))


def _causes_of_failure(attempt: Attempt) -> Iterator[Cause]:
    """Yield the causes that the first of the reasons gives why a package could not be had; nothing if none does."""
    finders = (
        _machine_causes,
        _cache_causes,
        _name_causes,
        unasked_index_causes,
        _index_causes,
        _platform_causes,
        _python_causes,
        _release_causes,
        _other_causes,
    )
    for find in finders:
        if causes := list(find(attempt)):
            yield from causes
            return


def _machine_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause if a package of PyTorch's or ONNX's is asked for by a 32-bit Python, or on a system with musl."""
    machine, package = attempt.machine, attempt.package
    if not (attempt.rows or package in OTHERS or re.match(r"torch|onnx|nvidia-", package)):
        return
    if machine.python_bits == 32 or machine.arch == "x86" or _THIRTY_TWO.search((machine.python or "").lower()):  # noqa: PLR2004 - bits
        yield attempt.cause("python-32bit")
    elif (machine.libc or "").startswith("musl") or (machine.os in {None, "linux"} and _MUSL.search(attempt.text)):
        yield attempt.cause("musl-system")


def _cache_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause if the answer is an old one from a cache: without it all is well, or it tells of an older glibc."""
    if attempt.failure.lacks == "platform" and number(attempt.glibc) > number(attempt.machine.glibc) > ():
        yield attempt.cause("stale-installer-cache")
        return
    is_served = bool(attempt.for_platform) and (not attempt.python or any_serves(attempt.for_platform, attempt.python))
    if attempt.failure.lacks in {"python", "platform"} and is_served and _CACHE.search(attempt.text):
        yield attempt.cause("stale-installer-cache")


def _name_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause with the right name if a package was renamed, is misspelt or has another one in conda."""
    package = attempt.package
    right_name, known_packages = installer_tables().names.get(package, ""), known_names() | CORE
    if attempt.failure.conda:
        right_name = "pytorch" if package in {"torch", "pytorch-gpu"} else ""
    elif (
        not right_name
        and attempt.may_offer_nothing
        and package not in known_packages
        and not attempt.rows
        and len(package) >= SHORTEST_NAME
    ):
        right_name = next(iter(get_close_matches(package, known_packages, n=1, cutoff=0.84)), "")
    if right_name:
        channel, conda_name = ("conda-forge", right_name) if attempt.failure.conda else ("", "")
        yield attempt.cause("obsolete-package-name", right=right_name, channel=channel, conda_name=conda_name)


def _index_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause if an index that was asked is wrong or lacks the package, or torch's index was not asked for it."""
    failure, package = attempt.failure, attempt.package
    has_pypi = any(judged.kind == "pypi" for _url, judged in attempt.indexes)
    wrong_index = next(((url, judged) for url, judged in attempt.indexes if judged.kind == "wrong"), None)
    lacks_build = bool(failure.local) and not any(failure.local in version for version in failure.offered or ())
    if wrong_index and (attempt.may_offer_nothing or lacks_build) and (not has_pypi or lacks_build):
        yield attempt.cause(
            "index-wrong", index=wrong_index[0], right=_index_with_release(attempt, wrong_index[1].right)
        )
        return
    torch_url = next((url for url, judged in attempt.indexes if judged.kind == "torch"), "")
    is_foreign = package not in CORE and not carried_by_torch_index(package)
    if (
        torch_url
        and is_foreign
        and not has_pypi
        and (attempt.may_offer_nothing or failure.lacks in {"python", "platform", "version"})
    ):
        key = "index-not-applied" if failure.by or failure.locked or failure.lacks else "index-wrong"
        yield attempt.cause(key, index=torch_url, right=PYPI, foreign=package)
    elif (
        carried_by_torch_index(package)
        and package not in CORE
        and failure.by in CORE
        and (not torch_url or _EXPLICIT.search(attempt.text))
    ):
        yield attempt.cause("index-not-applied", right=right_index(attempt))


def _platform_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause if the package has no build for this system, by the wheels' tags in the log or the catalogue."""
    failure, machine, package = attempt.failure, attempt.machine, attempt.package
    if package in {"onnxruntime-directml", "torch-directml"} and machine.os == "linux":
        if machine.wsl is False or package == "onnxruntime-directml":
            yield attempt.cause("directml-on-native-linux", unknown=() if machine.wsl is False else ("os",))
        return
    if machine.os == "macos" and (causes := list(_mac_causes(attempt))):
        yield from causes
        return
    wheel_tag = next((tag for tag in failure.tags if re.match(r"many|musl|win|mac|linux", tag)), "")
    is_unconfirmed = (
        bool(attempt.for_platform) and not any(row.confirmed for row in attempt.for_platform) and bool(failure.local)
    )
    is_foreign = bool(wheel_tag) and bool(machine.os) and not _wheel_suits(wheel_tag, machine)
    systems_served = next(
        (systems for name, systems in installer_tables().systems.items() if package.startswith(name)), ()
    )
    is_elsewhere = bool(attempt.asked) and not attempt.for_platform
    if systems_served and machine.os and machine.os not in systems_served:
        yield attempt.cause("lock-for-other-platform")
    elif failure.lacks == "platform" or is_foreign or (is_elsewhere and machine.os):
        yield from _missing_wheel_causes(attempt)
    elif glibc := _glibc_needed(attempt):
        yield attempt.cause("glibc-too-old", glibc=glibc)
    elif is_unconfirmed and attempt.may_offer_nothing:  # no index was seen to hold it, and this one does not
        yield attempt.cause("wheel-not-for-platform", "symptom-and-fact")
    elif _depends_on_mac_arch(attempt):
        yield attempt.cause("torch-no-intel-mac-wheel", unknown=("arch",))


def _mac_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause for what no index has for macOS: CUDA, or PyTorch with a local version; one for Rosetta, too."""
    failure, package = attempt.failure, attempt.package
    if failure.local.startswith("cu") or re.match(r"nvidia-|cudatoolkit|cudnn|pytorch-cuda|cuda-", package):
        is_from_lock = failure.locked and _LOCK.search(attempt.text)
        yield attempt.cause("lock-for-other-platform" if is_from_lock else "cuda-wheel-on-mac")
    elif attempt.machine.rosetta and package in CORE:
        yield attempt.cause("mps-x86-python-rosetta")
    elif failure.local and package in CORE:
        yield from _missing_wheel_causes(attempt)


def _missing_wheel_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield the cause why no wheel suits this system: a foreign lock, an Intel Mac, an old glibc, or none is made."""
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


def _wheel_suits(tag: str, machine: Machine) -> bool:
    """Return whether a wheel's platform tag suits the machine's system and, if that is known, its processor."""
    system = {"win": "windows", "mac": "macos", "man": "linux", "mus": "linux", "lin": "linux"}[tag[:3]]
    arch = {"x86_64": ("x86_64", "amd64"), "arm64": ("arm64", "aarch64"), "aarch64": ("arm64", "aarch64")}
    return system == machine.os and (tag.endswith(("any", "universal2", *arch.get(machine.arch or "", (tag,)))))


def _glibc_needed(attempt: Attempt) -> str:
    """Return the oldest glibc that wheels for the machine take if its own is older; "" if not, or unknown."""
    glibc_here = number(attempt.machine.glibc)
    if not glibc_here:
        return ""
    tags = [match for tag in attempt.failure.tags if (match := re.fullmatch(r"manylinux_(\d)_(\d{1,2})_(\w+)", tag))]
    tagged = [f"{match[1]}.{match[2]}" for match in tags if match[3] == attempt.machine.arch]
    versions: list[Number] = [number(match) for match in tagged] or [
        row.glibc for row in attempt.for_platform if row.glibc
    ]
    oldest = min(versions, default=())
    return ".".join(map(str, oldest)) if oldest and oldest > glibc_here else ""


def _depends_on_mac_arch(attempt: Attempt) -> bool:
    """Return whether a release is served on Apple's processors, not on Intel's, and the Mac's processor is unknown."""
    if attempt.machine.os != "macos" or attempt.machine.arch or attempt.package not in CORE or not attempt.for_platform:
        return False
    platforms = {row.platform for row in attempt.for_platform}
    return (
        "macos_x86_64" not in platforms
        and any_serves(attempt.for_platform, attempt.python)
        and bool(attempt.failure.wanted)
    )


def _python_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause if the Python does not suit the package: by the installer's words, else by the catalogue."""
    failure, python = attempt.failure, attempt.python
    is_served = bool(attempt.for_platform) and any_serves(attempt.for_platform, python)
    if failure.lacks == "python" or (failure.tags and failure.tags[0].startswith("cp")):
        tagged_python = newest_tagged_python(failure)
        if not (
            tagged_python
            and tagged_python == f"3.{python[1:]}"
            and failure.tags[0].isalnum()
            and failure.lacks != "python"
        ):
            yield _python_cause(attempt, python, unknown=() if python else ("python",))
        return
    release = failure.wanted.removeprefix("==").partition("+")[0]
    if bounds := ignored_python_bounds(release, attempt.text):
        admitted = newest_python_within(bounds)
        yield (
            _python_cause(attempt, python, best_python=admitted)
            if admitted
            else attempt.cause("python-unsupported-for-wheel")
        )
        return
    lacks_only_build = bool(failure.local) and release in (failure.offered or ())
    if failure.lacks == "version" or lacks_only_build:
        return
    if not python:
        of_same_variant = builds_of_variant(
            attempt.rows, attempt.variant if attempt.variant in {row.variant for row in attempt.rows} else ""
        )
        python_by_offer = python_by_oldest_offer(
            (row for row in of_same_variant if row.platform in attempt.platforms), failure.offered or ()
        )
        if python_by_offer and attempt.for_platform and not any_serves(attempt.for_platform, python_by_offer):
            yield _python_cause(attempt._replace(python=python_by_offer), python_by_offer, unknown=("python",))
        return
    if _is_older_than_catalog(attempt) or (attempt.for_platform and not is_served):
        yield _python_cause(attempt, python)


def _is_older_than_catalog(attempt: Attempt) -> bool:
    """Return whether torch or one of its family is pinned with "==" to less than the oldest one in the catalogue."""
    specifier = attempt.failure.wanted
    is_pinned = attempt.package in CORE and specifier.startswith("==")
    oldest = min((number(row.version) for row in attempt.rows), default=())
    return is_pinned and not builds_within(attempt.rows, specifier) and number(specifier) < oldest


def _python_cause(
    attempt: Attempt, python: str, unknown: tuple[str, ...] = (), basis: str = "installer", best_python: str = ""
) -> Cause:
    """Return the cause of a Python that a release does not serve: too new for it, or unsupported.

    It counts as too new from the oldest on that PyTorch's newest release serves, and if it is unknown.
    """
    tags_served = load_catalog().releases[0].pythons["any"]
    oldest_served = min(number(f"3.{tag[1:]}") for tag in tags_served)
    is_too_new = not python or number(f"3.{python[1:]}") >= oldest_served
    key = "python-too-new-for-wheel" if is_too_new else "python-unsupported-for-wheel"
    best_python = best_python or _earlier_python(attempt)
    return attempt.cause(key, basis, unknown, **({"best_python": best_python} if best_python else {}))


def _earlier_python(attempt: Attempt) -> str:
    """Return the newest Python of a release older than the catalogue's, as listed; "" for any other one."""
    version = number(attempt.failure.wanted)
    rows = (
        installer_tables().earlier_pythons
        if _is_older_than_catalog(attempt) and not newest_tagged_python(attempt.failure)
        else ()
    )
    return next((python for name, since, python in rows if name == attempt.package and version >= number(since)), "")


def _release_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause if a release is not on offer although Python and platform would suit it."""
    failure = attempt.failure
    if failure.conda:
        if attempt.package in {"pytorch", "torchvision", "torchaudio", "pytorch-cuda", "cudatoolkit"}:
            names = {"channel": "conda-forge", "release": "", "requirement": ""}
            yield attempt.cause("release-not-on-index", "installer", (), **names, **_conda_names(attempt))
        return
    is_listed = failure.lacks == "version" or bool(failure.offered)
    if _NETWORK.search(attempt.text):  # a page that did not come may list the release
        return
    if is_listed and failure.wanted and (attempt.rows or failure.offered):
        yield attempt.cause("release-not-on-index", right=right_index(attempt), nearest=_nearest_release(attempt))


def _conda_names(attempt: Attempt) -> dict[str, str]:
    """Return the placeholder `conda_gpu` or `conda_plain`: what conda-forge has in place of a package of torch's."""
    version = attempt.failure.wanted.removesuffix(".*") if attempt.failure.wanted.startswith("==") else ""
    asks_for_cuda = re.search(r"\bpytorch-cuda\b|\bcudatoolkit\b", attempt.text)
    has_nvidia = any(gpu.vendor is Vendor.NVIDIA for gpu in attempt.machine.gpus)
    is_older = bool(version) and attempt.package == "pytorch" and number(version) < LAST_OF_PYTORCH_CHANNEL
    if attempt.machine.os == "macos" or is_older or not (asks_for_cuda or has_nvidia):
        return {"conda_plain": f"{attempt.package}{version.replace('==', '=')}"}
    is_pinned = attempt.package == "pytorch" and version
    return {"conda_gpu": f"pytorch-gpu{version.replace('==', '=')}" if is_pinned else "pytorch-gpu"}


def _index_with_release(attempt: Attempt, right: str) -> str:
    """Return the address that was meant, or if it lacks the release, of the nearest variant's index that has it."""
    variant = classify_address(right.rstrip("/").lower()).variant if right else ""
    rows = (
        builds_within(attempt.rows, attempt.failure.wanted)
        if attempt.package in CORE and attempt.failure.wanted
        else ()
    )
    variants_there = {row.variant for row in rows if row.platform in attempt.platforms} - {"pypi"}
    nearest_variant = (
        variant_near(variant, variants_there) if variant and variants_there and variant not in variants_there else ""
    )
    return load_catalog().index_url(nearest_variant) or right if nearest_variant else right


def _nearest_release(attempt: Attempt) -> str:
    """Return the release nearest to one that does not exist, as a requirement; "" if it exists or none is known."""
    release_asked = number(attempt.failure.wanted)
    if builds_within(attempt.rows, attempt.failure.wanted) or not release_asked:
        return ""
    release = attempt.failure.wanted.removeprefix("==").partition("+")[0]
    if release in (attempt.failure.offered or ()):  # only its build with that tag is not here
        return f"{attempt.package}=={release}"
    releases = {row.version for row in attempt.rows if row.version} or set(attempt.failure.offered or ())
    same_minor = [candidate for candidate in releases if number(candidate)[:2] == release_asked[:2]]
    nearest = max(same_minor or releases, key=number, default="")
    return f"{attempt.package}=={nearest}" if nearest else ""


def _other_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause if nothing was offered and nothing else explains it: a strange index, or a new Python."""
    package, python = attempt.package, attempt.python
    if not attempt.may_offer_nothing or _NETWORK.search(attempt.text):
        return
    kinds = {judged.kind: url for url, judged in attempt.indexes}
    mirror = next((url for url, _judged in attempt.indexes if mirrors_pypi(url, load_catalog())), "")
    is_known = bool(attempt.rows) or package in OTHERS or package in known_names()
    if is_known and "pypi" not in kinds and {"mirror", "unknown"} & {*kinds}:
        key = "mirror-without-files" if "mirror" in kinds else "index-wrong"
        yield attempt.cause(key, index=kinds.get("mirror", kinds.get("unknown", "")), right=right_index(attempt))
    elif mirror and python and any_serves(attempt.rows, python) and attempt.rows:
        yield attempt.cause("mirror-without-files", "symptom-and-fact", index=mirror, right=PYPI)
    elif is_known and python.rstrip("t"):
        minors = sorted({int(tag[1:].rstrip("t")) for row in attempt.rows for tag in row.pythons})
        newest = (
            minors[-NEWEST:] or [int(tag[1:].rstrip("t")) for tag in load_catalog().releases[0].pythons["any"]][-6:]
        )
        minor = int(python[1:].rstrip("t"))
        if minor in newest[-NEWEST:] or minor > newest[-1] or minor < 10:  # noqa: PLR2004 - no build of today serves it
            yield _python_cause(attempt, python, ("index",), "symptom-told")
        else:
            yield attempt.cause("index-wrong", "symptom-told", ("index",), right=right_index(attempt))


def _missing_file_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield a cause for the first wheel that an index lists and does not deliver: its file gives HTTP 403 or 404."""
    named_addresses = addresses(unjoined_text(log))
    for address in named_addresses:
        file = re.search(
            r"/([a-z0-9][\w.]{0,60})-(\d[\w.]{0,20})(?:(?:%2b|\+)([\w.]{2,20}))?-[^/]{5,120}\.whl", address.url
        )
        if file and address.state in {"403", "404"} and "github.com" not in address.url:
            local = f"+{file[3]}" if file[3] else ""
            failure = Failure(file[1].replace("_", "-"), address.at, f"=={file[2]}{local}")
            attempt = attempt_of(failure, log, machine)
            index = next((other.url for other in named_addresses if not other.state), address.url.rpartition("/")[0])
            right_url = right_index(attempt)
            is_right = bool(right_url) and address.url.startswith(right_url)
            yield attempt.cause(
                "release-not-on-index" if is_right else "mirror-without-files", index=index, right=right_url
            )
            return


# when I sync all the groups uv complains that my python 3.14 is too new for onnxruntime
_TOO_NEW = re.compile(r"\bpython ?3\.(\d{1,2}) is too new for ([a-z][\w-]{2,30})")


def _prose_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield causes if a person tells that a package cannot be installed and the machine's facts exclude it."""
    text = log.text
    if not _CANNOT.search(text) or _NETWORK.search(text):
        return
    too_new = _TOO_NEW.search(text)
    if too_new and too_new[2] in known_names() | CORE:
        attempt = attempt_of(Failure(too_new[2], too_new.start()), log, machine)
        older = f"3.{int(too_new[1]) - 1}"
        yield attempt.cause("python-too-new-for-wheel", "symptom-and-fact", best_python=older)
        return
    python_match = _PYTHON_TOLD.search(text)
    if python_match and not machine.python:
        machine = replace(machine, python=python_match[1] or python_match[2] or f"3.{python_match[3]}")
    names = {"torch", *FAMILY, "torch-directml", "onnxruntime", "onnxruntime-directml", "onnxruntime-gpu"}
    for failure in mentions(text.replace("pytorch", "torch"), names):
        attempt = attempt_of(failure._replace(at=0), log, machine)
        for find in (_machine_causes, _platform_causes, _python_causes):
            if causes := list(find(attempt)):
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


def unasked_index_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield a cause if an index is named in a setting or a message and was not asked for the package."""
    # uv says itself that it stops at the first index that knows a name.
    first_index = _FIRST_INDEX.search(attempt.text)
    if first_index and first_index[1] == attempt.package:
        foreign = "" if attempt.package in CORE else attempt.package
        yield attempt.cause("index-not-applied", index=first_index[2], right=first_index[3] or "", foreign=foreign)
    # Another index stands where this tool does not look: pip's settings, or those of `uv pip` alone.
    text, right_url = attempt.text, right_index(attempt) if attempt.package in CORE else ""
    is_pip_setting = _BY_UV.search(text) and _PIP_SETTINGS.search(text)
    if right_url not in {"", PYPI} and (is_pip_setting or (_BY_PROJECT.search(text) and _UV_PIP_TABLE.search(text))):
        yield attempt.cause("index-not-applied", right=right_url, unread=right_url)


def right_index(attempt: Attempt) -> str:
    """Return the index that has the release for this machine, of the variant nearest to the one asked for.

    "PyPI" stands for its index; "" if no index is known to have it.
    """
    if attempt.package not in CORE:
        if carried_by_torch_index(attempt.package) and attempt.failure.by in CORE and attempt.variant:
            return load_catalog().index_url(_index_tag(attempt.variant)) or ""
        if carried_by_torch_index(attempt.package) and (build := _TORCH_BUILD.search(attempt.text)):
            return load_catalog().index_url(build[1]) or ""
        return PYPI
    rows = builds_within(attempt.rows, attempt.failure.wanted)
    variants_there = {row.variant for row in rows if row.platform in attempt.platforms} - {"pypi"}
    if attempt.python:
        variants_there &= {row.variant for row in rows if any_serves([row], attempt.python)}
    nearest_variant = variant_near(attempt.variant, variants_there)
    return load_catalog().index_url(nearest_variant) or "" if nearest_variant else PYPI if rows else ""


def _index_tag(local: str) -> str:
    """Return the tag of the index for a local version: "rocm7.2" for AMD's `rocm7.2.0.gita272dfa8`."""
    match = re.match(r"rocm\d{1,2}\.\d{1,2}", local)
    return match[0] if match else local


UNNAMED = "the package"


def bound_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield the cause of the first Python that an installer refuses, else of a project that admits too many."""
    for version, bounds, at in refused_pythons(log.text):
        tag = f"3{version.split('.')[1]}" if version.startswith("3.") else ""
        depends = re.search(r"and ([a-z0-9][\w.-]{0,60}?)(?:==[\w.+]{1,30})? depends", log.text[at : at + 300])
        failure = Failure(depends[1] if depends else UNNAMED, at)
        attempt = attempt_of(failure, log, machine)._replace(python=tag or tag_of(machine))
        if bounds.startswith(">") and re.match(r"python version \(>", log.text[at : at + 20]):  # a project's range
            yield attempt.cause("python-unsupported-for-wheel", bounds=bounds, best_python="")
            return
        bound = re.search(r"<=? ?(\d\.\d{1,2})", bounds)
        is_too_new = bool(bound) and number(version) >= number(bound[1] if bound else "")
        key = "python-too-new-for-wheel" if is_too_new else "python-unsupported-for-wheel"
        yield attempt.cause(key, best_python=newest_python_within(bounds) or newest_python(attempt.for_platform))
        return
    for package, bounds, at in narrower_pythons(log.text):
        attempt = attempt_of(Failure(package, at), log, machine)
        yield attempt.cause("python-unsupported-for-wheel", bounds=bounds, best_python="")
        return


def ignored_python_bounds(release: str, text: str) -> str:
    """Return the Pythons of a release that pip ignored for its own, as a specifier, from a log in lower case.

    "" if it ignored none.

    ERROR: Ignored the following versions that require a different python version: 1.26.0 Requires-Python <3.13,>=3.9
    """
    match = (
        re.search(rf"(?<![\w.]){re.escape(release)} requires-python ([<>=!~][^;\n]{{1,60}})", text) if release else None
    )
    return match[1] if match else ""


def newest_python_within(bounds: str) -> str:
    """Return the newest Python that an upper bound admits: 3.12 for `>=3.9,<3.13`; "" without such a bound."""
    match = re.search(r"<(=?) ?3\.(\d{1,2})", bounds)
    return f"3.{int(match[2]) - (not match[1])}" if match else ""

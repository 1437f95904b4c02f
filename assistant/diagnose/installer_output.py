"""Reads what pip, uv, Poetry, PDM, conda and mamba print when they cannot have a package.

All texts are searched in lower case, as `Log.text` holds them: quotes are plain, and a line may be broken anywhere
between two words. Samples are the tools' own output; those without a version are alike in all that were tried
(pip 20 to 26, uv 0.4 to 0.13, Poetry 1.8 and 2.5, PDM 2.25, conda 24, mamba 2).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from packaging.utils import canonicalize_name

Lacks = Literal["", "python", "platform", "version"]
MOST = 40  # failures of one text that are looked at

# Stands before a name: a pattern that may begin at each letter of a long word takes long.
_BEGINS = r"(?<![a-z0-9])"
# A name, with extras, or with uv's markers in braces: torch, jupyter[all], triton{sys_platform == 'linux'}
_NAME = r"`?([a-z0-9][\w.-]{0,60})(?:\[[^\]\n]{0,80}\])?(?:\{[^{}]{0,300}\})?"
_SPEC = r"((?:===?|[<>!~]=?) ?[^\s`;()]{1,80}?)?"
_END = r"(?=[`;,.)]{0,2}(?:\s|$))"


def _compile_form(pattern: str) -> re.Pattern[str]:
    """Return a pattern compiled in which each blank stands for any white space, line ends and frames."""
    return re.compile(pattern.replace(" ?", r"[\s│|]{0,20}").replace(" ", r"[\s│|]{1,20}"), re.ASCII)


class Failure(NamedTuple):
    """A package that an installer could not have.

    `wanted` is the specifier ("==2.6.0+cu130"), `by` the package that requires it. `offered` are the versions that the
    installer saw, () for none at all, None if it does not say. `lacks` is what nothing on offer matched, if the
    installer tells Pythons, platforms and versions apart, `tags` those on offer,
    `running` the tag that would have; `index_url` is the address that the installer names beside it. `locked` tells
    that the version comes from a lock file, `conda` that conda was asked. `at` is the position in the text.
    """

    package: str
    at: int
    wanted: str = ""
    by: str = ""
    offered: tuple[str, ...] | None = None
    lacks: Lacks = ""
    tags: tuple[str, ...] = ()
    running: str = ""
    index_url: str = ""
    locked: bool = False
    conda: bool = False

    @property
    def local(self) -> str:
        """The tag of the build that was asked for: "cu130" of "==2.9.0+cu130"."""
        return self.wanted.partition("+")[2]


# ERROR: Could not find a version that satisfies the requirement torch==2.6.0 (from conf) (from versions: 2.7.0+cu128)
# Could not find a version that satisfies the requirement torch>=2,<3 (from versions: none)
_UNSATISFIED = _compile_form(
    rf"satisfies the requirement {_NAME} ?{_SPEC}(?:;[^()\n]{{0,80}})?{_END}"
    r"(?: ?\(from (?!versions)([^()]{1,200})\))?(?: ?\(from versions: ?([^()]{0,9000})\)?)?"
)
# ERROR: No matching distribution found for torch==2.6.0 (from -r requirements.txt (line 3))
_UNMATCHED = _compile_form(rf"no matching distribution found for {_NAME} ?{_SPEC}{_END}")
# Exception: You tried to install "pytorch". The package named for PyTorch is "torch"
_RETIRED = _compile_form(r"you tried to install \"([a-z][\w.-]{0,60})\"\. the package named")
# ERROR: torch-2.9.0+cu130-cp312-cp312-win_amd64.whl is not a supported wheel on this platform.
_FILE = _compile_form(
    r"([a-z0-9][\w.]{0,60})-(\d[\w.+!]{0,40})-(?:\d[\w.]{0,10}-)?([\w.]{2,40}-[\w.]{2,40}-[\w.]{3,120})\.whl"
    r"[`'\"]? is not a supported wheel"
)
# Because onlywin==1.0 has no wheels with a matching platform tag (e.g., `manylinux_2_36_x86_64`) and …
# torch (v2.8.0+cu128) has no wheel with a matching platform tag (macosx_15_0_arm64)
_NO_WHEEL = _compile_form(
    rf"{_BEGINS}{_NAME} ?(?:{_SPEC}|\(v?(\d[^()\s]{{0,40}})\)):? has no wheels? with a matching"
    r" (python|platform)[a-z\x20]{0,24}tag(?: ?\((?:e\.g\., )?`?([\w.]{2,60})`?\))?"
)
# Whether a text has such a message at all: to begin with any name at every place takes long in long logs.
_SAYS_NO_WHEEL, _SAYS_ABSENT = _compile_form(" has no wheels? with"), _compile_form(" was not found in")
# there are no versions of torch with a matching Python tag
_NO_TAGGED = _compile_form(rf"no versions? of {_NAME} ?{_SPEC} with a matching (python|platform)")
# Because there is no version of torch==2.6.0 and you require torch==2.6.0, we can conclude …     (uv)
# Because no versions of torch match 2.6.1, version solving failed.     (Poetry)
_NO_VERSION = _compile_form(
    rf"there (?:is|are) no versions? of {_NAME} ?{_SPEC}{_END}"
    rf"(?: and (?:all versions of )?{_NAME} ?{_SPEC} depends? on)?"
)
_NO_MATCH = _compile_form(rf"no versions of {_NAME} match (\S{{1,60}}?){_END}")
# Because only torch<=2.9.0+cu128 is available and you require torch>2.9, …
_ONLY = _compile_form(
    rf"only {_NAME} ?{_SPEC} is available and (?:you require|your project depends on) {_NAME} ?{_SPEC}{_END}"
)
# Because tourch was not found in the package registry and you require tourch, …
# Because absent-dep was not found in the package registry and all versions of needs depend on absent-dep>=2, …
_ABSENT = _compile_form(
    rf"{_BEGINS}{_NAME} ?{_SPEC} was not found in the (?:package registry|provided package locations|cache)"
    rf"(?: and (?:all versions of )?{_NAME} ?{_SPEC} depends? on)?"
)
# hint: `numpy` was found on https://T, but not at the requested version (numpy==2.0). A compatible version may be
#       available on a subsequent index (e.g., https://P).
_ELSEWHERE = _compile_form(
    r"`([a-z0-9][\w.-]{0,60})` was found on \S{4,200}?, but not at the requested version \(([^()]{1,90})\)"
)
# error: Distribution `torch==2.9.1+cu130 @ registry+https://…` can't be installed because it doesn't have a source
#        distribution or wheel for the current platform
_LOCKED = _compile_form(
    rf"distribution {_NAME}=={{1}}([^\s`@]{{1,60}})(?: @ registry\+([^\s`]{{1,200}}))?`? can't be installed"
)
# hint: You're on Linux (`manylinux_2_36_x86_64`), but `winonly` (v1.0) only has wheels for the following platform: `w`
# hint: You're using CPython 3.11 (`cp311`), but `torch` (v2.9.0+cu130) only has wheels with the following Python
#       implementation tag: `cp312`
# hint: Wheels are available for `onlywin` (v1.0) on the following platform: `win_amd64`
# hint: You require CPython 3.11 (`cp311`), but we only found wheels for `newpy` (v1.0) with the following Python …
_HINT = _compile_form(
    r"(?:you(?:'re (?:on|using)|'re running| require) [^()\n]{2,40}\(`?([\w.]{2,60})`?\)\)?, but "
    rf"(?:we only found wheels for )?|wheels are available for ){_NAME}`? \(v?(\d[^()\s]{{0,40}})\)"
    r"[^:`]{2,160}: ?(`[\w.,\s`]{2,1500})"
)
# Because only vllm wheels for manylinux_2_31_x86_64 and macosx_11_0_arm64 exist and you require vllm, …
_WHEELS_FOR = _compile_form(
    rf"only {_NAME} wheels for ((?:`?(?:many|musl|mac|win|linux)\w{{2,40}}`?(?:,|,? and|,? or)? ){{1,12}})exist"
)
# hint: The wheel is compatible with CPython 3.12 (`cp312`), but you're using CPython 3.11 (`cp311`)
_COMPATIBLE = _compile_form(
    r"compatible with [^()\n]{2,40}\(`?([\w.]{2,60})`?\), but you're (using|on) [^()\n]{2,40}\(`?([\w.]{2,60})`?\)"
)
_PATH_FILE = _compile_form(r"([\w.]{1,60})-(\d[\w.+]{0,40})-[\w.]{2,40}-[\w.]{2,40}-[\w.]{3,120}\.whl\) dependency is")
# Because example depends on torch (2.6.1) which doesn't match any versions, version solving failed.     (Poetry)
_UNMATCHED_BY = _compile_form(rf"depends on {_NAME} \(([^()\n]{{1,60}})\) which doesn't match any versions")
# Unable to find installation candidates for torch (2.9.0+cu130)
#   - 24 wheel(s) were skipped as your project's environment does not support the identified abi tags
_CANDIDATES = _compile_form(
    rf"unable to find installation candidates for {_NAME} \((\d[^()\s]{{0,40}})\)"
    r"(?:[^`]{0,400}? support the identified (abi|platform|python) tags)?"
)
# CandidateNotFound: No candidate is found for `torch` that matches the environment or hashes     (PDM)
# [CandidateNotFound]: Unable to find candidates for torch. …
_CANDIDATE = _compile_form(rf"(?:no candidate is found for|unable to find candidates for) {_NAME}{_END}")
# PackagesNotFoundError: The following packages are not available from current channels:
#
#   - pytorch==1.9.0
_CHANNELS = _compile_form(
    r"packages are (?:not available|missing) from (?:current|the target) channels?:((?:\s{1,9}- [^\n]{2,80}){1,20})"
)
_LISTED = re.compile(r"- ([a-z0-9][\w.-]{0,60}) ?((?:=|<|>|\[)[^\n]{0,60})?")
#   - nothing provides requested pytorch ==1.3.1 py3.6_cuda10.0.130_cudnn7.6.3_0
#   └─ pytorch =2.3.1 py3.10* does not exist (perhaps a typo or a missing channel).
_NOTHING = re.compile(r"nothing provides requested ([a-z0-9][\w.-]{0,60}) ?([=<>][^\n]{0,60})?")
_MISSING = re.compile(r"─ ([a-z0-9][\w.-]{0,60}) ?([=<>][^\n]{0,60})? does not exist")
# Texts of which each parser's match holds one; a huge log is cut down to the lines around them.
MARKS = (
    "satisfies the requirement", "no matching distribution found for", "is not a supported wheel", "has no wheel",
    "with a matching", "no version", "is available and", "was not found in the", "can't be installed", "you're on",
    "you're using", "wheels are available", "you require", "compatible with", "doesn't match any versions",
    "installation candidates", "candidate is found", "find candidates for", "from current channels", "nothing provides",
    "does not exist", "you tried to install", "__glibc", "so it will not be", "only supports", "looking in indexes",
    "looking in links", "index-url", "extra-index-url", "no module named pip", "but not at the requested version",
    "needs to be updated", "does not satisfy", "requires a different python", "content-type", "returned a 40",
)  # fmt: skip


def failures(text: str) -> tuple[Failure, ...]:
    """Return the packages that an installer says it could not have, in the order of the text, each once.

    At most `MOST` are returned.
    """
    read = sorted((entry for read in _READERS for entry in read(text)), key=lambda entry: entry.at)
    failure_of: dict[str, Failure] = {}
    for entry in read:
        earlier = failure_of.get(entry.package)
        failure_of[entry.package] = _merge_failures(earlier, entry) if earlier else entry
    return tuple(failure_of.values())[:MOST]


def _merge_failures(earlier: Failure, later: Failure) -> Failure:
    """Return the earlier failure of a package with what a later message about it adds."""
    additions = {name: value for name, value in later._asdict().items() if not getattr(earlier, name)}
    if earlier.offered is not None:
        additions.pop("offered", None)
    return earlier._replace(**additions)


def _pip_failures(text: str) -> Iterator[Failure]:
    """Yield a failure for each message in which pip could not have a package."""
    for match in _UNSATISFIED.finditer(text):
        versions = match[4]
        offered = None if versions is None else tuple(re.findall(r"\d[^\s,]{0,60}", versions))
        by = (match[3] or "").partition("->")[0].strip()
        by = "" if by.startswith(("-r", "-c", "line")) or match[1] == by.partition("=")[0] else by
        yield Failure(
            _canonical(match[1]),
            match.start(),
            _clean_specifier(match[2]),
            by=_name_of_requirement(by),
            offered=offered,
        )
    for match in _UNMATCHED.finditer(text):
        yield Failure(_canonical(match[1]), match.start(), _clean_specifier(match[2]))
    for match in _RETIRED.finditer(text):
        yield Failure(_canonical(match[1]), match.start(), offered=())
    for match in _FILE.finditer(text):
        tag = match[3].split("-")
        yield Failure(_canonical(match[1]), match.start(), f"=={match[2]}", tags=(tag[0], tag[2]))


def _uv_failures(text: str) -> Iterator[Failure]:
    """Yield a failure for each message in which uv could not have a package."""
    for match in _NO_WHEEL.finditer(text) if _SAYS_NO_WHEEL.search(text) else ():
        specifier = _clean_specifier(match[2]) or (f"=={match[3]}" if match[3] else "")
        lacks: Lacks = "python" if match[4] == "python" else "platform"
        yield Failure(_canonical(match[1]), match.start(), specifier, lacks=lacks, running=match[5] or "")
    for match in _NO_TAGGED.finditer(text):
        yield Failure(
            _canonical(match[1]),
            match.start(),
            _clean_specifier(match[2]),
            lacks="python" if match[3] == "python" else "platform",
        )
    for match in _NO_VERSION.finditer(text):
        yield Failure(
            _canonical(match[1]),
            match.start(),
            _clean_specifier(match[2]),
            by=_canonical(match[3] or ""),
            lacks="version",
        )
    for match in _ONLY.finditer(text):
        if match[4] and _canonical(match[1]) == _canonical(match[3]):
            offered = tuple(re.findall(r"\d[^\s,]{0,60}", match[2] or ""))
            yield Failure(
                _canonical(match[1]),
                match.start(),
                _clean_specifier(match[4]),
                offered=offered or None,
                lacks="version",
            )
    for match in _ABSENT.finditer(text) if _SAYS_ABSENT.search(text) else ():
        yield Failure(
            _canonical(match[1]), match.start(), _clean_specifier(match[2]), by=_canonical(match[3] or ""), offered=()
        )
    for match in _ELSEWHERE.finditer(text):
        specifier = re.sub(r"^[\w.-]{1,60}", "", match[2])
        yield Failure(_canonical(match[1]), match.start(), _clean_specifier(specifier), lacks="version")
    for match in _LOCKED.finditer(text):
        yield Failure(_canonical(match[1]), match.start(), f"=={match[2]}", index_url=match[3] or "", locked=True)


def _uv_hint_failures(text: str) -> Iterator[Failure]:
    """Yield a failure for each hint of uv about the systems and Pythons that wheels are for."""
    for match in _HINT.finditer(text):
        tags = tuple(re.findall(r"`(\w[\w.]{1,60})`", match[4]))
        lacks: Lacks = (
            "python" if re.fullmatch(r"(?:cp|pp|py|none|abi)\w{0,8}", tags[0] if tags else "") else "platform"
        )
        specifier = f"=={match[3]}"
        yield Failure(_canonical(match[2]), match.start(), specifier, lacks=lacks, tags=tags, running=match[1] or "")
    for match in _WHEELS_FOR.finditer(text):
        tags = tuple(re.findall(r"(?:many|musl|mac|win|linux)\w{2,40}", match[2]))
        yield Failure(_canonical(match[1]), match.start(), lacks="platform", tags=tags)
    for file, match in zip(_PATH_FILE.finditer(text), _COMPATIBLE.finditer(text), strict=False):
        tags, running = (match[1],), match[3]
        lacks = "python" if match[2] == "using" else "platform"
        yield Failure(_canonical(file[1]), match.start(), f"=={file[2]}", lacks=lacks, tags=tags, running=running)


def _poetry_and_pdm_failures(text: str) -> Iterator[Failure]:
    """Yield a failure for each message in which Poetry or PDM could not have a package."""
    for match in _UNMATCHED_BY.finditer(text):
        yield Failure(_canonical(match[1]), match.start(), _poetry_specifier(match[2]), lacks="version")
    for match in _NO_MATCH.finditer(text) if "depends on both" not in text else ():  # a step of Poetry's reasoning
        yield Failure(_canonical(match[1]), match.start(), _poetry_specifier(match[2]), lacks="version")
    for match in _CANDIDATES.finditer(text):
        lacks: Lacks = "platform" if match[3] == "platform" else ""
        yield Failure(_canonical(match[1]), match.start(), f"=={match[2]}", lacks=lacks, locked=True)
    for match in _CANDIDATE.finditer(text):
        yield Failure(
            _canonical(match[1]), match.start(), locked="matches the environment" in match.string[match.end() :][:60]
        )


def _conda_failures(text: str) -> Iterator[Failure]:
    """Yield a failure for each package that conda or mamba did not find."""
    for block in _CHANNELS.finditer(text):
        for match in _LISTED.finditer(block[1]):
            yield Failure(_canonical(match[1]), block.start(), _conda_specifier(match[2]), offered=(), conda=True)
    for form in (_NOTHING, _MISSING):
        for match in form.finditer(text):
            yield Failure(_canonical(match[1]), match.start(), _conda_specifier(match[2]), offered=(), conda=True)


_READERS: tuple[Callable[[str], Iterator[Failure]], ...] = (
    _pip_failures,
    _uv_failures,
    _uv_hint_failures,
    _poetry_and_pdm_failures,
    _conda_failures,
)


def _canonical(text: str) -> str:
    """Return the canonical name of a package, without what surrounds it in a message."""
    return canonicalize_name(text.strip("`.-"))


def _name_of_requirement(text: str) -> str:
    """Return the canonical name at the beginning of a requirement; "" for ""."""
    return _canonical(re.split(r"[=<>!~\[; ]", text, maxsplit=1)[0]) if text else ""


def _clean_specifier(text: str | None) -> str:
    """Return a specifier without blanks, and without the signs that end a sentence; "" for None."""
    return re.sub(r"\s", "", (text or "").rstrip("`,.)"))


def _poetry_specifier(text: str) -> str:
    """Return Poetry's "2.6.1", "^2.6" or ">=2,<3" as a specifier; "" for "*"."""
    text = text.strip(" `,").removesuffix(".")
    return "" if text == "*" else text if text[:1] in "<>=!~" else f">={text[1:]}" if text[0] == "^" else f"=={text}"


def _conda_specifier(text: str | None) -> str:
    """Return conda's "=2.3.1=py3.10*", "[version='>=0.4.1']" or "==1.3.1 py3.6" as a specifier; "" for none."""
    spec = re.search(r"(==|=|>=|<=|>|<)[ ']{0,2}(\d[\w.]{0,20})(\*)?", text or "")
    if not spec:
        return ""
    is_prefix = spec[1] == "=" and "=" not in (text or "")[1:]  # conda's single sign means "begins with"
    return f"=={spec[2].rstrip('.')}.*" if is_prefix else f"{'==' if spec[1] == '=' else spec[1]}{spec[2].rstrip('.')}"


# Because the requested Python version (>=3.14) does not satisfy Python<3.14 and torch==2.5.1 depends on …
# the current Python version (3.8.10) does not satisfy Python>=3.9 and …
# ERROR: Package 'x' requires a different Python: 3.8.10 not in '>=3.9'
# RuntimeError: Cannot install on Python version 3.13.1; only versions >=3.9,<3.13 are supported.     (numba's setup.py)
# error: The requested interpreter resolved to Python 3.11.7, which is incompatible with the project's Python
#        requirement: `>=3.12`
_REFUSED = (
    _compile_form(
        r"python version \((?:[<>=~]{0,2})([\d.]{1,9})[^()]{0,20}\)"
        r" does not satisfy python ?([<>=!~][\d.,<>=!~*]{1,40})"
    ),
    _compile_form(r"requires a different python: ([\d.]{3,9}) not in '([^'\n]{2,40})'"),
    _compile_form(
        r"cannot install on python version ([\d.]{3,9}); only versions ([<>=!~][\d.,<>=!~*]{1,40}) are supported"
    ),
    _compile_form(r"resolved to python ([\d.]{3,9}), which is incompatible with [^`\n]{3,60}`([^`\n]{2,40})`"),
)


def refused_pythons(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the version of each Python that an installer refuses, the specifier that excludes it, and the position."""
    for form in _REFUSED:
        for match in form.finditer(text):
            yield match[1], match[2].rstrip(",."), match.start()


# - torch requires Python >=3.10, so it will not be satisfied for Python >=3.8,<3.10     (Poetry)
# hint: The `requires-python` value (>=3.8) includes Python versions that are not supported by your dependencies
#       (e.g., torch==2.9.0 only supports >=3.10).
_NARROWER = (
    _compile_form(rf"- {_NAME} requires python ([<>=!~][\d.,<>=!~*]{{1,40}}), so it will not be"),
    _compile_form(
        rf"not supported by your dependencies \(e\.g\., {_NAME} ?{_SPEC} only supports ([<>=!~][\d.,<>=!~*]{{1,40}})\)"
    ),
)


def narrower_pythons(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield each package that supports fewer Pythons than its project asks for, its specifier, and the position."""
    for form in _NARROWER:
        for match in form.finditer(text):
            yield _canonical(match[1]), match[match.re.groups].rstrip(","), match.start()


# torch==2.0.0, torch 2.0, torch-directml, torch>=2.3
def mentions(text: str, names: Iterable[str]) -> Iterator[Failure]:
    """Yield a failure for each mention of one of the packages `names` in a text; a bare version counts as "=="."""
    alternatives = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    version = r"(?:[=<>~!]=|>|<)? ?\d[\w.+]{0,30}"
    pattern = rf"(?<![a-z0-9_.+/-])({alternatives})(?![a-z0-9_/-])(?: ?({version}))?"
    for match in re.finditer(pattern, text, re.ASCII):
        words = (match[2] or "").replace(" ", "").rstrip(".")
        specifier = words if words[:1] in set("=<>~!") else f"=={words}" if words else ""
        yield Failure(_canonical(match[1]), match.start(), specifier)

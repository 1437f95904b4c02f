"""Asks the resolver whether a plan holds on some machine, by metadata alone, and reads what it says about it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from assistant.api import Record, Text, _
from assistant.api.planning import RemotePlan, Tools
from assistant.api.records import Machine, Plan

# The variable by which uv tells its resolver's steps, and nothing else, on its standard error output.
TRACE = {"RUST_LOG": "uv_resolver::resolver=debug"}


class Need(Record, frozen=True):
    """What one version of a package asks for: `on` is a package, `range` the versions as uv writes them.

    `range` is like ">=2.4.0, <2.15.0", ranges joined by " | ", "*" for any; a "+" behind a version takes in its local
    versions, so that "<2.6.0+" reaches 2.6.0+cu124.
    """

    package: str
    version: str
    on: str
    range: str

    def allows(self, version: str) -> bool:
        """Return whether a public version is in the range; a range that cannot be read excludes nothing."""
        try:
            return any(_specifiers(part).contains(version, prereleases=True) for part in self.range.split(" | "))
        except ValueError:
            return True

    @property
    def text(self) -> str:
        """The range as people write it: "2.6.0" for one version, "<2.15.0" and the like, alternatives with "or"."""
        return " or ".join(map(_written, self.range.split(" | ")))

    @property
    def line(self) -> str:
        """The requirement that it is, without versions where these are several ranges."""
        several = " | " in self.range or self.range == "*"
        return (
            self.on
            if several
            else self.on + self.text.replace(" ", "")
            if self.text[0] in "<>=!"
            else f"{self.on}=={self.text}"
        )


def _written(part: str) -> str:
    bounds = [bound.replace("+", "").removesuffix(".dev0") for bound in part.split(", ")]
    if len(bounds) == 2 and bounds[0] == f">={bounds[1][1:]}":  # noqa: PLR2004 - from and to
        return bounds[1][1:]
    return ", ".join(bounds)


@lru_cache(maxsize=4096)
def _specifiers(part: str) -> SpecifierSet:
    """Read one of uv's ranges for public versions, which come before all that is local: "<2.6.0+" is "<=2.6.0"."""
    text = re.sub(r"<=?([^,+]+)\+[^,]*", r"<=\1", re.sub(r">=?([^,+]+)\+[^,]*", r">\1", part))
    return SpecifierSet("" if text == "*" else text)


class Trace(Record, frozen=True):
    """The resolver's steps: the version of each package that it `chose` first, what each `needs`, all `names` in it."""

    chose: dict[str, str] = {}
    needs: tuple[Need, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def first_needs(self) -> tuple[Need, ...]:
        """What the versions that were chosen first ask for of torch."""
        return tuple(need for need in self.needs if need.on == "torch" and self.chose.get(need.package) == need.version)


# DEBUG Selecting: unsloth==2026.10.9 [compatible] (unsloth-2026.10.9-py3-none-any.whl)
# DEBUG Adding transitive dependency for unsloth==2026.10.9: torch>=2.4.0, <2.15.0
# DEBUG Adding transitive dependency for torch==2.14.1: triton{sys_platform == 'linux'}>=3.8, <3.9.dev0
# DEBUG Adding direct dependency: torch>=2.15.0, <2.15.0+
_STEP = re.compile(
    r"DEBUG (?:Selecting: (?P<name>[\w.-]+)==(?P<version>\S+)"
    r"|Adding transitive dependency for (?P<package>[\w.-]+)(?:\[[^]]*\])?==(?P<of>[^:\s]+): (?P<what>.+)"
    r"|Adding direct dependency: (?P<direct>.+))"
)
_WHAT = re.compile(r"(?P<name>[\w.-]+)(?:\[[^]]*\])?(?:\{.*\})?(?P<range>.*)")


def is_trace(line: str) -> bool:
    """Return whether a line is one of the resolver's steps, and no word to the user."""
    return line.startswith(("DEBUG ", "TRACE "))


def read_trace(lines: Iterable[str], on: str = "") -> Trace:
    """Read the resolver's steps; lines that are none are passed over.

    With `on` what is needed of that package alone, and no other `names`.
    """
    chose: dict[str, str] = {}
    needs: dict[Need, None] = {}
    names: dict[str, None] = {}
    if on:
        lines = (line for line in lines if "Selecting: " in line or f": {on}" in line)
    for step in filter(None, map(_STEP.match, lines)):
        if step["name"]:
            chose.setdefault(canonicalize_name(step["name"]), step["version"])
        elif what := _WHAT.match(step["what"] or step["direct"]):
            name = canonicalize_name(what["name"])
            names[name] = None
            if step["package"] and on in ("", name):
                package = canonicalize_name(step["package"])
                needs[Need(package=package, version=step["of"], on=name, range=what["range"] or "*")] = None
    return Trace(chose=chose, needs=tuple(needs), names=tuple(names))


# error: No solution found when resolving dependencies
#   cause: Because all versions of xformers depend on torch==2.6.0 and environment depends on xformers==0.0.29.post3, we
#          can conclude that environment depends on torch==2.6.0.
#          And because environment depends on torch>=2.8, we can conclude that your requirements are unsatisfiable.
#   cause: Because zzz was not found in the package registry and environment depends on zzz, we can conclude that …
#   cause: Because onlypy==1 has no wheels with a matching Python ABI tag (e.g., `cp312`) and only onlypy==1 is …
#   cause: Because winonly==1.0 has no wheels with a matching platform tag (e.g., `manylinux_2_39_x86_64`) and only …
#   cause: Because newpy==1.0 requires Python >=3.13 and only newpy==1.0 is available, we can conclude that …
_MISSING = re.compile(
    r"(?<![\w.-])([\w.-]{1,200}) was not found in the (?:package registry|provided package locations)"
)
_OTHER_PYTHON = re.compile(r"requires? Python|does not satisfy Python|(?:ABI|implementation|platform) tag")
_WORD = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?")
# hint: `torch` was found on https://mirror.example/simple, but not at the requested version (torch==2.9.1). A
#       compatible version may be available on a subsequent index (e.g., https://h.example/simple). …
_ON_FIRST_INDEX = re.compile(
    r"hint: (`[\w.-]{1,200}` was found on \S{1,2000}, but not at the requested version.*?)(?= hint:|$)"
)
# hint: You require CPython 3.12 (`cp312`), but we only found wheels for `old` (v1.0) with the following Python ABI
#       tags: `cp310`, `cp311`
_TAGS = re.compile(r"following Python (?:ABI|implementation|version) tags?:((?:,? `\w{1,20}`)+)")
# hint: An index (https://h.example/simple) returned a 403 Forbidden error. Check that the index URL is correct and …
# hint: An index URL (https://h.example/simple) could not be queried due to a lack of valid authentication … (401 …)
_LOCKED_OUT = re.compile(r"hint: An index (?:URL )?\(\S{1,2000}\) (?:returned|could not be queried)")


class Trial(Record, frozen=True):
    """How the resolver answered: `versions` by package where the plan holds, else why not, in its own `words`.

    Of a refusal, `names` are those that quarrel, `missing` those that no source has, `builds` what comes as source
    alone. `pythons` says that another Python may have what is missing; `others` are those that uv found wheels for, if
    any. `locked_out` says that an index wants a login, so that nobody knows what is missing there.
    `unchecked` is the reason where it could not answer at all, as an index was out of reach.
    """

    versions: dict[str, str] = {}
    trace: Trace = Trace()
    words: Text = ""
    names: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    pythons: bool = False
    others: tuple[str, ...] = ()
    locked_out: bool = False
    unchecked: Text = ""

    @property
    def holds(self) -> bool:
        """Whether the plan can be installed as it stands."""
        return bool(self.versions)

    @property
    def torch(self) -> str:
        """The release of torch that is taken, "" for none."""
        return self.versions.get("torch", "").partition("+")[0]


# environment depends on one of: torch>=2.7,<2.7.0+cpu torch>2.7.0+cpu,<2.7.0+cu126 torch>2.7.0+cu126,<=2.8.0 …
_ONE_OF = re.compile(r"one of:(?: (torch\w*)[<>=]\S*\+\S*)+")


def read_refusal(words: str, trace: Trace, builds: tuple[str, ...] = ()) -> Trial:
    """Read uv's proof that nothing fits, and its hints; only what is in the `trace` can be a package in it."""
    text = " ".join(words.rpartition("cause: ")[2].split())
    proof = text.partition("hint:")[0]
    rule, known = _ON_FIRST_INDEX.search(text), {*trace.names, *trace.chose}
    found = dict.fromkeys(canonicalize_name(word) for word in _WORD.findall(proof))
    return Trial(
        trace=trace,
        words=_ONE_OF.sub(r"\1", proof.strip())[:600] + (f" {rule[1]}"[:600] if rule else ""),
        names=tuple(word for word in found if word in known),
        missing=tuple(dict.fromkeys(map(canonicalize_name, _MISSING.findall(proof)))),
        builds=builds,
        pythons=_OTHER_PYTHON.search(proof) is not None,
        others=tuple(f"3.{minor}" for minor in re.findall(r"`cp3(\d+)`", " ".join(_TAGS.findall(text)))),
        locked_out=_LOCKED_OUT.search(text) is not None,
    )


def try_plan(plan: Plan, machine: Machine, tools: Tools, on: str = "torch", *, dependencies: bool = True) -> Trial:
    """Ask uv for all that a plan names, for its machine and Python; no package is built and none is downloaded.

    Of a set that holds, what is needed of the package `on` is read, or everything for "". Without `dependencies` the
    plan's own lines are asked for alone.
    Raises `Cancelled` on request, `BadInput` for an index or a requirement that is none, and `WorkFailed` where uv
    knows no such platform.
    """
    answer = RemotePlan(plan, machine).ask(tools, is_trace, dependencies=dependencies, **TRACE)
    if not answer.status:
        return Trial(versions=answer.versions, trace=read_trace(answer.steps, on=on))
    # What comes as source alone is refused; offline, or without any package index, nothing is known.
    builds = tuple(canonicalize_name(Requirement(need).name) for need in answer.only_source)
    if answer.is_refusal and not answer.unreachable and (builds or "No solution found" in answer.words):
        return read_refusal(answer.words, read_trace(answer.steps), builds)
    if answer.unreachable:
        return Trial(unchecked=_("the package index cannot be reached: {reason}", reason=answer.unreachable))
    return Trial(unchecked=_("uv could not resolve it: {reason}", reason=" ".join(answer.words.split())[:400]))

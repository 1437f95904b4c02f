"""What uv says while it resolves, as values: what each package asks for, and why nothing fits."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from assistant.model.record import Record

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
            return any(_within(part, Version(version)) for part in self.range.split(" | "))
        except InvalidVersion:
            return True

    @property
    def text(self) -> str:
        """The range as people write it: "2.6.0" for one version, "<2.15.0" and the like, alternatives with "or"."""
        return " or ".join(map(_written, self.range.split(" | ")))


def _written(part: str) -> str:
    bounds = [bound.replace("+", "").removesuffix(".dev0") for bound in part.split(", ")]
    if len(bounds) == 2 and bounds[0] == f">={bounds[1][1:]}":  # noqa: PLR2004 - from and to
        return bounds[1][1:]
    return ", ".join(bounds)


def _within(part: str, version: Version) -> bool:
    return all(_meets(bound, version) for bound in part.split(", ") if bound != "*")


def _meets(bound: str, version: Version) -> bool:
    sign = re.match(r"[<>=!]+", bound)
    text = bound[sign.end() if sign else 0 :]
    other, locals_too = Version(text.rstrip("+")), text.endswith("+")
    match sign[0] if sign else "==":
        case "<":
            return version < other or (locals_too and version == other)
        case "<=":
            return version <= other
        case ">":
            return version > other
        case ">=":
            return version > other or (version == other and not locals_too)
        case "!=":
            return version != other
        case _:
            return version == other


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


class Derivation(Record, frozen=True):
    """Why nothing fits, from uv's own proof: the `names` that quarrel, those that no source has (`missing`).

    `pythons` says that a package needs another Python, `wheels` names what has no wheel for this system or Python.
    """

    names: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    wheels: tuple[str, ...] = ()
    pythons: bool = False


# error: No solution found when resolving dependencies
#   cause: Because all versions of xformers depend on torch==2.6.0 and environment depends on xformers==0.0.29.post3, we
#          can conclude that environment depends on torch==2.6.0.
#          And because environment depends on torch>=2.8, we can conclude that your requirements are unsatisfiable.
#   cause: Because zzz was not found in the package registry and environment depends on zzz, we can conclude that …
#   cause: Because onlypy==1 has no wheels with a matching Python ABI tag (e.g., `cp312`) and only onlypy==1 is …
#   cause: Because winonly==1.0 has no wheels with a matching platform tag (e.g., `manylinux_2_39_x86_64`) and only …
#   cause: Because newpy==1.0 requires Python >=3.13 and only newpy==1.0 is available, we can conclude that …
#   cause: Because sd==1.0 has no usable wheels and only sd==1.0 is available, …
#   cause: Because gruut[de]==2.2.3 has no usable wheels and coqui-tts==0.24.1 depends on gruut[de]==2.2.3, …
_MISSING = re.compile(
    r"(?<![\w.-])([\w.-]{1,200}) was not found in the (?:package registry|provided package locations)"
)
_NO_FITTING = re.compile(
    r"(?<![\w.<>=!~-])([\w.-]{1,200}?)(?:\[[\w.,-]{1,200}\])?(?:[<>=!~]=?\S{1,200})?"
    r" ha(?:s|ve) no (?:usable wheels|wheels with a matching)"
)
_OTHER_PYTHON = re.compile(r"requires? Python|does not satisfy Python|Python (?:ABI|implementation) tag")
_WORD = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?")


def read_derivation(text: str, known: Iterable[str]) -> Derivation:
    """Read uv's proof that nothing fits; `known` are the names that may stand in it, canonical."""
    proof = " ".join(text.split())
    known = set(known)
    words = dict.fromkeys(canonicalize_name(word) for word in _WORD.findall(proof))
    return Derivation(
        names=tuple(word for word in words if word in known),
        missing=_names(_MISSING, proof),
        wheels=_names(_NO_FITTING, proof),
        pythons=_OTHER_PYTHON.search(proof) is not None,
    )


def _names(form: re.Pattern[str], proof: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(canonicalize_name(name) for name in form.findall(proof)))

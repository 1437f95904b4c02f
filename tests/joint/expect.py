"""Writes the right answers down, found by brute force with uv itself: `python tests/joint/expect.py OUT`.

For each case every torch release that the machine's hardware allows, as our planner judges it for that release alone,
is tried in order: accelerated builds first, the newest release first. The first that uv resolves together with the set
is the answer; but where an older torch gives an asked distribution a newer version, the newest torch is no gain: then
the newest release at which every asked distribution is as new as it gets is taken, and `walked_back` says what the
newest torch would have cost. Where nothing fits, other Pythons are tried in the same way, then the set without what
comes as source alone (`builds`), and then a refusal is right.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import msgspec
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

sys.path.insert(0, str(Path(__file__).parents[1]))
from assistant.catalog import AMD_INDEX, load_catalog
from assistant.model.errors import AssistantError
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Request
from assistant.plan import make_plans
from joint.cases import Box, Solved, Wanted, read_machines, read_sets, uv_alone
from joint.world import Indexes, read_world

CATALOG = load_catalog()
PYTHONS = ("3.12", "3.11", "3.13", "3.10", "3.9")
# uv: "Because jsonmerge==1.8.0 has no usable wheels and you require …", or over several lines "Because all of: …"
_ONLY_SOURCE = re.compile(
    r"(?:Because|and|of:?)\s+(?:all versions of )?(?!all\b)([\w-]+)(?:[^\n]*?|[^.]*?) (?:has|have) no usable wheels"
)


class Rung(NamedTuple):
    """A build that the hardware allows."""

    backend: str
    variant: str
    torch: str
    line: str


def rungs(machine: Machine, python: str, local: str, cuda: int = 0) -> tuple[Rung, ...]:
    """List the builds that the hardware allows: accelerated ones first, newest first, then the CPU's.

    With `cuda`, a release is taken in its newest build for that major where there is one, and in none for another.
    """
    found: list[Rung] = []
    for release in CATALOG.releases:
        tags = {tag for some in release.variants.values() for tag in some if tag.startswith(f"cu{cuda}")}
        builds = [local, *sorted(tags, reverse=True)] if cuda else [local]
        for_cuda = False
        for build in builds:
            pin = f"torch=={release.version}" + (f"+{build}" if build else "")
            try:
                plans = make_plans(machine, CATALOG, Request(pins=(pin,), python=python)).plans
            except AssistantError:
                continue
            for plan in plans:
                line = next(line for line in plan.requirements if canonicalize_name(Requirement(line).name) == "torch")
                fits = plan.torch == release.version and plan.backend is not Backend.DIRECTML and plan.python == python
                if cuda and plan.backend is Backend.CUDA:
                    fits = fits and not for_cuda and plan.variant in tags
                    for_cuda = for_cuda or fits
                if fits:
                    found.append(Rung(plan.backend.value, plan.variant, plan.torch, line))
    return tuple(sorted(dict.fromkeys(found), key=lambda rung: rung.backend == "cpu"))


class Oracle:
    """Tries a set on a machine against the indexes at one address."""

    def __init__(self, address: str, cache_folder: Path) -> None:
        self.address, self.cache = address, cache_folder
        self.runs = 0
        self._rungs: dict[tuple[str, str, str, int], tuple[Rung, ...]] = {}

    def index(self, variant: str) -> str | None:
        """Name a variant's index, None for plain PyPI."""
        if variant in ("pypi", "directml"):
            return None
        return f"{self.address}/amd" if variant == AMD_INDEX else f"{self.address}/whl/{variant}"

    def rungs(self, box: Box, python: str, local: str, cuda: int) -> tuple[Rung, ...]:
        """List the builds that the hardware allows, found once for each machine."""
        key = (box.name, python, local, cuda)
        if key not in self._rungs:
            self._rungs[key] = rungs(box.machine, python, local, cuda)
        return self._rungs[key]

    def uv(self, box: Box, wanted: Wanted, python: str, variant: str, *more: str) -> Solved:
        """Ask uv once."""
        self.runs += 1
        # torch's family goes last: uv prefers the newest of what stands first, and the rest is what is asked for
        lines = sorted(wanted.requires, key=lambda line: canonicalize_name(Requirement(line).name) == "torch")
        index, first = f"{self.address}/simple", self.index(variant)
        solved = uv_alone(box, (*lines, *more), index, first, self.cache, python=python, overrides=wanted.overrides)
        if "error sending request" in solved.words or "HTTP status" in solved.words:
            raise RuntimeError(solved.words)
        return solved

    def answer(self, box: Box, wanted: Wanted) -> dict[str, object]:
        """Find the right answer to a case."""
        said: dict[str, object] = {"machine": box.name, "set": wanted.name}
        bare = self.uv(box, wanted, box.python, "pypi")
        said["uv"] = bare.versions.get("torch", "no torch") if bare.holds else None
        pythons = [one for one in dict.fromkeys((box.python, *PYTHONS)) if _allowed(wanted, one)]
        for python in pythons:
            found = self.at(box, wanted, python)
            if found:
                return {**said, **found, "python": python, "offered": python != box.python}
        for python in pythons:
            built, builds = self.around(box, wanted, python)
            found = self.at(box, built, python) if builds else None
            if found:
                return {**said, **found, "python": python, "offered": python != box.python, "builds": builds}
        return {**said, "backend": None, "words": _short(bare.words)}

    def around(self, box: Box, wanted: Wanted, python: str) -> tuple[Wanted, list[str]]:
        """Leave out what comes as source alone, whoever asks for it; return its names, none where that is no way."""
        builds: list[str] = []
        for _name in range(12):  # chosen: more than any of the sets has
            bare = self.uv(box, wanted, python, "pypi")
            if bare.holds:
                return wanted, builds
            only = _ONLY_SOURCE.search(bare.words)
            name = canonicalize_name(only[1]) if only else ""
            if not name or name in builds:
                break
            builds.append(name)
            never = f"{name} ; sys_platform == 'never'"
            wanted = msgspec.structs.replace(wanted, overrides=(*wanted.overrides, never))
        return wanted, []

    def at(self, box: Box, wanted: Wanted, python: str) -> dict[str, object] | None:
        """Find the right answer with one Python."""
        local = _local(wanted)
        bare = self.uv(box, wanted, python, "pypi")
        if not (local or bare.holds or self._differs(box, wanted, python, bare)):
            return None
        for cpu in (False, True):
            those = [rung for rung in self.rungs(box, python, local, wanted.cuda) if (rung.backend == "cpu") == cpu]
            those = [rung for rung in those if SpecifierSet(wanted.torch).contains(rung.torch)]
            if found := self.best(box, wanted, python, those):
                return found
        return None

    def _differs(self, box: Box, wanted: Wanted, python: str, bare: Solved) -> bool:
        """Tell whether the set resolves with the build that needs least beside it, the CPU's, where PyPI's does not.

        Where it does not either, no other build can help: each needs all that the CPU's needs, and more. The proof that
        nothing fits holds for every index if it names none of the packages in which they differ.
        """
        matters = "nvidia-" in bare.words or "triton" in bare.words
        return matters and box.machine.os != "macos" and self.uv(box, wanted, python, "cpu").holds

    def best(self, box: Box, wanted: Wanted, python: str, those: list[Rung]) -> dict[str, object] | None:
        """Take the newest torch that costs no asked distribution a newer version."""
        dead: dict[str, bool] = {}
        fits: list[tuple[Rung, dict[str, str]]] = []
        most = self.newest(box, wanted, python, those)
        for rung in those:
            if rung.variant not in dead:
                dead[rung.variant] = not self.uv(box, wanted, python, rung.variant).holds
            if dead[rung.variant]:
                continue
            solved = self.uv(box, wanted, python, rung.variant, rung.line)
            if not solved.holds:
                continue
            fits.append((rung, solved.versions))
            if not _older(solved.versions, most):
                break
        if not fits:
            return None
        rung, versions = next((one for one in fits if not _older(one[1], most)), fits[0])
        said: dict[str, object] = rung._asdict()
        del said["line"]
        if _older(fits[0][1], most):
            said["walked_back"] = {"torch": fits[0][0].torch, **_older(fits[0][1], most)}
        asked = sorted(wanted.asked & set(versions))
        return {**said, "asked": {name: versions[name] for name in asked}}

    def newest(self, box: Box, wanted: Wanted, python: str, those: list[Rung]) -> dict[str, Version]:
        """Return how new each asked distribution gets while torch is left to uv, among the releases allowed."""
        if not those or not wanted.asked:
            return {}
        releases = [Version(rung.torch) for rung in those]
        bounds = f"torch>={min(releases)},<={max(releases)}"
        free = self.uv(box, wanted, python, "pypi", bounds).versions
        return {name: Version(free[name]) for name in wanted.asked & set(free)}


def _allowed(wanted: Wanted, python: str) -> bool:
    """Tell whether a project is for a Python."""
    return not wanted.pythons or SpecifierSet(wanted.pythons).contains(f"{python}.99")


def _older(versions: dict[str, str], most: dict[str, Version]) -> dict[str, str]:
    """Name what is older than it could be."""
    return {
        name: versions[name] for name, version in most.items() if name in versions and Version(versions[name]) < version
    }


def _local(wanted: Wanted) -> str:
    """Return the build tag that a set pins ("cu128" of torch==2.7.0+cu128)."""
    for line in wanted.requires:
        said = Requirement(line)
        if canonicalize_name(said.name) == "torch":
            for item in said.specifier:
                if "+" in item.version:
                    return item.version.partition("+")[2]
    return ""


def _short(words: str) -> str:
    return " ".join(words.split())[:400]


def main(arguments: list[str]) -> None:
    """Write one line for each case; what OUT holds already is kept."""
    parser = argparse.ArgumentParser(description="Find the right answers by brute force.")
    parser.add_argument("out", type=Path, metavar="OUT", help="the file of answers; cases that it has are kept")
    given = parser.parse_args(arguments)
    rows = map(json.loads, given.out.read_text(encoding="utf-8").splitlines() if given.out.is_file() else ())
    known = {(row["machine"], row["set"]) for row in rows}
    cases = [(box, wanted) for wanted in read_sets() for box in read_machines()]
    cases = [case for case in cases if (case[0].name, case[1].name) not in known]
    day = dt.datetime.now(tz=dt.UTC).date().isoformat()
    address = Indexes(read_world()).base
    with tempfile.TemporaryDirectory() as folder, given.out.open("a", encoding="utf-8") as file:
        oracle = Oracle(address, Path(folder))
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(oracle.answer, *case) for case in cases]
            for number, done in enumerate(as_completed(asked), 1):
                file.write(json.dumps({**done.result(), "as_of": day}, ensure_ascii=False) + "\n")
                file.flush()
                if number % 10 == 0:
                    print(f"{number} of {len(cases)} cases, {oracle.runs} runs of uv", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Judges the assistant's answers to the cases: plans are checked with uv itself, refusals by what they say."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from addons.projects.joint.cases import Box, Expected, Solved, Wanted, read_expected, read_machines, read_sets, uv_alone
from addons.projects.joint.product import Product
from addons.projects.joint.world import Indexes, read_world
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from assistant.model.plan import Backend, Plan, Planning

GOOD = ("right", "refused")


class Result(NamedTuple):
    """One case: the verdict, why, the seconds and runs that it took, and whether uv alone found anything.

    `uv` are uv's seconds for the set as it is written, `lines` those for all that our plan names (0 without a plan).
    """

    case: str
    verdict: str
    why: str
    ours: float
    uv: float
    runs: int
    uv_solved: bool
    lines: float = 0.0

    @property
    def worse(self) -> bool:
        """Whether uv alone finds packages, and we no answer that holds."""
        return self.uv_solved and self.verdict not in GOOD


class Judge:
    """The indexes, a cache of uv's own, and the product set up to use them."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache"
        self.indexes = Indexes(read_world())
        self.product = Product(self.indexes, self.cache)

    def close(self) -> None:
        """Stop serving."""
        self.indexes.close()

    def result(self, box: Box, wanted: Wanted, expected: Expected, rounds: int = 1) -> Result:
        """Plan a case, time it beside uv, and judge the answer."""
        ours, theirs, lines, runs, holds = [], [], [], 0, True
        planning = Planning()
        for _round in range(rounds + 1):  # the first fills the cache
            theirs.append(
                uv_alone(box, wanted.requires, self.indexes.url, None, self.cache, overrides=wanted.overrides)
            )
            before, start = self.product.runs, time.perf_counter()
            planning = self.product.plan(box.machine, wanted)
            ours.append(time.perf_counter() - start)
            runs = self.product.runs - before
            seconds, holds = self.product.uv_seconds(box.machine, planning.choice) if planning.choice else (0.0, True)
            lines.append(seconds)
        verdict, why = self.verdict(box, wanted, expected, planning)
        if verdict == "right" and not (holds or expected.builds):
            verdict, why = "not installable", f"the plan as it is: {why}"
        return Result(
            f"{wanted.name} on {box.name}",
            verdict,
            why,
            min(ours[1:] or ours),
            min(one.seconds for one in theirs[1:] or theirs),
            runs,
            uv_solved=theirs[0].holds,
            lines=min(lines[1:] or lines),
        )

    def verdict(self, box: Box, wanted: Wanted, expected: Expected, planning: Planning) -> tuple[str, str]:
        """Judge an answer."""
        plan = planning.choice
        if plan is None:
            words = self.product.words(planning)
            if expected.backend is not None and not expected.builds:
                return "refused wrongly", f"expected {expected.text}; said: {words[:300]}"
            return told(wanted, words, expected.builds)
        if expected.backend is None:
            return ("unknown name planned" if wanted.unknown else "planned wrongly"), described(plan)
        # what has to be built may know an older torch alone, which only the tables of companions tell
        same = plan.torch == expected.torch or expected.builds
        other_cuda = wanted.cuda and plan.backend is Backend.CUDA and not plan.variant.startswith(f"cu{wanted.cuda}")
        if not same or other_cuda or plan.backend.value != expected.backend:
            return "another build", f"expected {expected.text}, not {described(plan)}"
        if expected.python == box.python != plan.python:
            return "another Python", f"expected {expected.text}, not {described(plan)}"
        return self.checked(box, wanted, expected, plan)

    def checked(self, box: Box, wanted: Wanted, expected: Expected, plan: Plan) -> tuple[str, str]:
        """Let uv resolve all that a plan names, and compare how new what was asked for is."""
        words = self.product.remarks(plan)
        silent = [name for name in expected.builds if not names(words, name)]
        found = self.resolved(box, wanted, plan, [name for name in expected.builds if name not in silent])
        if not found.holds and silent:
            return "builds not told", f"{described(plan)}: {silent}; said: {words[:300]}"
        if not found.holds:
            return "not installable", f"{described(plan)}: {' '.join(found.words.split())[:300]}"
        older = {
            name: f"{found.versions[name]} < {version}"
            for name, version in expected.asked.items()
            if name in found.versions and Version(found.versions[name]) < Version(version)
        }
        return ("older packages", str(older)) if older else ("right", described(plan))

    def resolved(self, box: Box, wanted: Wanted, plan: Plan, builds: list[str]) -> Solved:
        """Let uv resolve a plan and all that is asked for, around what has to be built."""
        asked = [line for line in wanted.requires if canonicalize_name(Requirement(line).name) != "torch"]
        lines = (*plan.requirements, *asked)
        bounds = (*plan.overrides, *wanted.overrides, *(f"{name} ; sys_platform == 'never'" for name in builds))
        return uv_alone(box, lines, self.indexes.url, plan.index_url, self.cache, python=plan.python, overrides=bounds)


def told(wanted: Wanted, words: str, builds: tuple[str, ...]) -> tuple[str, str]:
    """Judge a refusal: it names what is in the way, or of what is asked for; a misspelt name's neighbour is named."""
    asked = [wanted.unknown] if wanted.unknown else [Requirement(line).name for line in wanted.requires]
    if not any(names(words, name) for name in builds or asked):
        return "refused without a proof", words[:300]
    if wanted.nearest and wanted.nearest not in words:
        return "nearest name missing", words[:300]
    return "refused", words[:300]


def names(words: str, name: str) -> bool:
    """Tell whether a text names a distribution, in any spelling."""
    form = re.sub(r"[-_.]+", "[-_.]+", name)
    return re.search(rf"(?<![\w-]){form}(?![\w-])", words, re.IGNORECASE) is not None


def described(plan: Plan) -> str:
    """Name a plan's build."""
    return f"{plan.backend.value} {plan.variant} torch {plan.torch} Python {plan.python}"


@contextmanager
def judge() -> Iterator[Judge]:
    """Give a judge with everything in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ):
        made = Judge(Path(folder))
        try:
            yield made
        finally:
            made.close()


def chosen(names: list[str]) -> Iterator[tuple[Box, Wanted, Expected]]:
    """Yield the cases that names of sets and machines choose; all for none."""
    expected = read_expected()
    for wanted in read_sets():
        for box in read_machines():
            if (not names or wanted.name in names or box.name in names) and (box.name, wanted.name) in expected:
                yield box, wanted, expected[box.name, wanted.name]

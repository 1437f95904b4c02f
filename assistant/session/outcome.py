"""What the resolver answers to one question of a search, and how two answers compare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from packaging.version import Version

from assistant.install import Need, Trial
from assistant.model.plan import Plan

CORE = frozenset({"torch", "torchvision", "torchaudio"})


class Outcome(NamedTuple):
    """The resolver's answer, and the plan that it proves, None where it refuses."""

    plan: Plan | None
    trial: Trial

    @property
    def given_up(self) -> tuple[Need, ...]:
        """The needs of newest versions that older ones stand in for, as they want another torch than the one taken."""
        torch = self.trial.versions.get("torch", "").partition("+")[0]
        held = self.trial.versions
        return tuple(
            need
            for need in self.trial.trace.first_needs(["torch"])
            if need.package not in CORE  # whose versions are torch's own
            if held.get(need.package) not in {None, need.version} and not need.allows(torch)
        )

    @property
    def passed_over(self) -> tuple[Need, ...]:
        """The needs of the newest versions, one a package, that only another torch than the one taken keeps out.

        They need not be the first choices: a newer one may have failed for another reason.
        """
        torch = self.trial.versions.get("torch", "").partition("+")[0]
        newest: dict[str, Need] = {}
        for need in self.trial.trace.needs:
            taken = self.trial.versions.get(need.package) if need.on == "torch" and need.package not in CORE else None
            least = newest[need.package].version if need.package in newest else taken
            if least and not need.allows(torch) and Version(need.version) > Version(least):
                newest[need.package] = need
        return tuple(newest.values())

    def is_newer(self, other: Outcome, names: Iterable[str]) -> bool:
        """Return whether some of the packages are newer than in another outcome, and none is older."""
        mine, theirs = self.trial.versions, other.trial.versions
        both = [(Version(mine[name]), Version(theirs[name])) for name in names if name in mine and name in theirs]
        return any(one > another for one, another in both) and all(one >= another for one, another in both)

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the versions that are taken need of torch."""
        held = self.trial.versions
        return tuple(
            need for need in self.trial.trace.needs if need.on == "torch" and held.get(need.package) == need.version
        )

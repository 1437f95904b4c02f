"""What the resolver answers to one question of a search, and how two answers compare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from packaging.version import Version

from assistant.catalog.rows import CORE
from assistant.install import Need, Trial
from assistant.model.plan import Backend, Plan
from assistant.plan import Ladder


class Terms(NamedTuple):
    """What the answers taught, which each further question respects.

    `apart` names what is taken from PyPI though torch's index has it; `named` what others need and torch's index serves
    only where it is named. `left_out` are ours that stood in the way, and `untied` companions that the tables alone
    would tie to another torch than can be had.
    """

    apart: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()
    untied: frozenset[str] = frozenset()


class Outcome(NamedTuple):
    """The resolver's answer, the plan that it proves, None where it refuses, and the terms on which it was asked."""

    plan: Plan | None
    trial: Trial
    terms: Terms = Terms()

    @property
    def torch(self) -> str:
        """The release of torch that was taken, "" for none."""
        return self.trial.versions.get("torch", "").partition("+")[0]

    @property
    def given_up(self) -> tuple[Need, ...]:
        """What the newest versions need of torch, where older ones were taken because of that."""
        held, torch = self.trial.versions, self.torch
        return tuple(
            need
            for need in self.trial.trace.first_needs
            if need.package not in CORE  # whose versions are torch's own
            if held.get(need.package) not in {None, need.version} and not need.allows(torch)
        )

    @property
    def passed_over(self) -> tuple[Need, ...]:
        """What newer versions need of torch, where only that kept them out; one per package.

        They need not be the first choices: a newer one may have failed for another reason.
        """
        torch = self.torch
        newest: dict[str, Need] = {}
        for need in self.trial.trace.needs:
            taken = self.trial.versions.get(need.package) if need.on == "torch" and need.package not in CORE else None
            least = newest[need.package].version if need.package in newest else taken
            if least and not need.allows(torch) and Version(need.version) > Version(least):
                newest[need.package] = need
        return tuple(newest.values())

    def beats(self, other: Outcome, asked: Iterable[str], plans: Ladder) -> bool:
        """Return whether this is the better of two that hold: on a GPU, then in versions, then in rank.

        The versions are those of what is asked for, then of what another torch held back: a newer torch is no gain if
        it makes a requested package older.
        """
        ours, theirs = self._on_cpu, other._on_cpu
        held_back = {need.package for need in (*self.given_up, *other.given_up)}
        for names in ({*asked} - CORE, held_back) if ours is theirs else ():
            if (newer := self._is_newer(other, names)) is not other._is_newer(self, names):
                return newer
        return (ours, plans.place(self.plan)) < (theirs, plans.place(other.plan))

    @property
    def _on_cpu(self) -> bool:
        return self.plan is not None and self.plan.backend is Backend.CPU

    def _is_newer(self, other: Outcome, names: Iterable[str]) -> bool:
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

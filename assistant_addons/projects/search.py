"""The way from the best build that the hardware allows down to the first with which the user's whole set holds."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from assistant.api import _, replace
from assistant.api.planning import (
    CORE,
    FAMILY,
    PlanInputs,
    Tools,
    all_companions,
    carried_by_torch_index,
    find_companion,
    is_required_by_torch,
    name_of,
    number,
    requirement,
)
from assistant.api.records import Plan, Planning, Progress, Request, Step
from assistant.api.texts import Policy, redact
from assistant_addons.projects.builds import (
    CPU,
    DIRECTML,
    GPU,
    Band,
    Builds,
    Fits,
    family_bounds,
    kind_of,
    label,
    loosened,
    own_triton,
    satisfied,
    table_bounds,
    tied,
    without_other_builds,
)
from assistant_addons.projects.companions import computes_on, ranges_for, torch_bounds
from assistant_addons.projects.trial import Need, Trial, try_plan

_MOST_QUESTIONS = 30  # chosen: one or two tell which torch is wanted, and a refusal must not take minutes
_OURS = ("onnx", "numpy")  # with onnxruntime in all its flavours: what plans bring beside torch


class Lessons(NamedTuple):
    """What the answers taught, which each further question respects.

    `apart` names what is taken from PyPI though torch's index has it; `named` what others need and torch's index serves
    only where it is named. `left_out` are ours that stood in the way, and `untied` companions that the tables alone
    would tie to another torch than can be had. `only_source` are packages of which nobody has a wheel, with the lines
    that ask for them: the rest is asked for without them.
    """

    apart: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()
    untied: frozenset[str] = frozenset()
    only_source: tuple[tuple[str, str], ...] = ()


class Outcome(NamedTuple):
    """The resolver's answer, the plan that it proves (None where it refuses), and the lessons it was asked by."""

    plan: Plan | None
    trial: Trial
    lessons: Lessons = Lessons()

    @property
    def passed_over(self) -> tuple[Need, ...]:
        """What newer versions need of torch, where only that kept them out; one per package.

        They need not be the first choices: a newer one may have failed for another reason.
        """
        newest: dict[str, Need] = {}
        for need in self.trial.trace.needs:
            taken = self.trial.versions.get(need.package) if need.on == "torch" and need.package not in CORE else None
            least = newest[need.package].version if need.package in newest else taken
            if least and not need.allows(self.trial.torch) and Version(need.version) > Version(least):
                newest[need.package] = need
        return tuple(newest.values())

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the versions that are taken need of torch."""
        held = self.trial.versions
        return tuple(
            need for need in self.trial.trace.needs if need.on == "torch" and held.get(need.package) == need.version
        )

    def is_newer(self, other: Outcome, names: Iterable[str]) -> bool:
        """Return whether some of the packages are newer than in another outcome, and none is older."""
        mine, theirs = self.trial.versions, other.trial.versions
        both = [(Version(mine[name]), Version(theirs[name])) for name in names if name in mine and name in theirs]
        return any(one > another for one, another in both) and all(one >= another for one, another in both)


def within_all(needs: Iterable[Need]) -> Fits:
    """Return the question whether all needs allow a release of torch."""
    given = list(needs)
    return lambda torch: all(need.allows(torch) for need in given)


Bounds = tuple[SpecifierSet, ...]  # alternatives


def within_one_of_each(bounds: Iterable[Bounds]) -> Fits:
    """Return the question whether a release of torch is within one of each package's alternatives."""
    given = tuple(bounds)
    return lambda torch: all(any(one.contains(torch, prereleases=True) for one in some) for some in given)


def only_tables_know(name: str) -> bool:
    """Return whether the tables bind some versions of a package to a torch that their metadata does not name."""
    row = find_companion(name)
    return bool(row and any(one.only_in_table for one in row.ranges))


def tied_by_tables(names: Iterable[str], versions: Mapping[str, str]) -> Fits:
    """Return the question whether the tables let a release of torch go with the versions that were taken."""
    return within_one_of_each(
        tuple(map(SpecifierSet, row.torch))
        for name in names
        if name in versions
        for row in ranges_for(name, f"=={versions[name]}")[0]
        if row.only_in_table
    )


@cache
def _brought_along() -> frozenset[str]:
    """Name the packages that plans add beside companions, so that they can give way where no source has them."""
    ways = (way for row in all_companions() for way in row.beside_cuda.values())
    return frozenset(canonicalize_name(Requirement(line).name) for way in ways for line in way.requires)


def is_ours(name: str, asked: set[str]) -> bool:
    """Return whether plans bring a package of themselves, beside torch, and nobody asked for it."""
    return (name in _OURS or name.startswith("onnxruntime") or name in _brought_along()) and name not in asked


class Search:
    """One search, for one Python; it learns from each refusal, and asks nothing twice.

    `requested` is what the user asks for, with canonical names, and `own_names` are these names alone. `silent` are
    addresses of torch's indexes that cannot be asked, so that the user's other sources stand in for them;
    `unreachable` are wheels by their address that cannot be asked. `spent` counts the questions of this search and of
    all that come of it. `known_needs` are those of packages that were looked at before something was left out.
    """

    def __init__(self, case: PlanInputs, tools: Tools, planning: Planning | None = None) -> None:
        self.case, self.tools = case, tools
        self.builds = Builds(case, planning, tools.sources.index_url)
        self.requested = self.builds.requested
        self.own_names = {*self.requested.values()}
        self.lessons = Lessons()
        self.silent: list[str] = []
        self.unreachable: set[str] = set()
        self.spent = [0]
        self.known_needs = set[Need]()
        self._blamed: set[str] = set()
        self._asked: set[tuple[str, str]] = set()
        self._torches: list[str] = []

    @property
    def python(self) -> str:
        """The Python that it is for."""
        return self.case.request.python or ""

    def again(self, request: Request) -> Search:
        """Return a search for a changed request, that knows already what cannot be reached and what has no wheel."""
        other = Search(self.case._replace(request=request), self.tools)
        other.silent, other.unreachable, other.spent = self.silent, self.unreachable, self.spent
        other.lessons, other.known_needs = Lessons(only_source=self.lessons.only_source), self.known_needs
        return other

    def run(self) -> Outcome | None:
        """Ask for the likeliest builds, go where the answers point, and return the best outcome; None without any."""
        band = self._start()
        best = last = None
        while band and self.may_ask:
            last = self.answer(band)
            if last.plan:
                self._torches.append(last.trial.torch)
                best = last if best is None or self._beats(last, best) else best
                band = self._better(best)
            elif last.trial.unchecked or best:
                break
            else:
                band = self._elsewhere(last.trial, band) or self._untied()
        if best:
            self.lessons = best.lessons  # later answers that are no better taught what does not count
            return best
        if last and band and not last.trial.unchecked:
            return last._replace(trial=replace(last.trial, unchecked=_("it would take too many questions")))
        return last

    @property
    def may_ask(self) -> bool:
        """Whether the resolver may be asked once more."""
        return self.spent[0] < _MOST_QUESTIONS

    # -- where to ask --------------------------------------------------------------------------------------------------

    def _start(self) -> Band | None:
        """Return the likeliest builds: with a torch that the tables pair with all that is asked for, if there is one.

        What the tables alone know trades no GPU for the CPU, gives way where it asks for different torches, and where
        the package does not compute on this machine in any case.
        """
        if self.builds.best is None:
            return None
        backend = self.builds.best.backend
        names = self.own_names - {*CORE, *self.lessons.untied}
        self._untie(name for name in names if only_tables_know(name) and not computes_on(name, backend))
        known = self._pairs(guess=True)
        visible = [one for name, one in known.items() if not only_tables_know(name)]
        for bounds in (known, self._pairs(guess=False)):
            band = self._band(within_one_of_each(bounds.values()), kinds=self._best_kinds)
            if band:
                break
        if band := band or self._band(within_one_of_each(visible)) or self._band():
            lost = (name for name, one in known.items() if not within_one_of_each([one])(band.plan.torch))
            self._untie(name for name in lost if only_tables_know(name))
        return band

    def _pairs(self, *, guess: bool) -> dict[str, Bounds]:
        """Return the torches that the tables pair with what is asked for, those of the newest versions first."""
        names = {name for need, name in self.requested.items() if not need.url} - {*CORE, *self.lessons.untied}
        return {name: bounds for name in names if (bounds := self._pairs_of(name, guess=guess))}

    def _pairs_of(self, name: str, *, guess: bool = True) -> Bounds:
        own = next((need for need, own in self.requested.items() if own == name), None)
        return torch_bounds(own or requirement(name), guess=guess) or ()

    def _untie(self, names: Iterable[str]) -> None:
        self.lessons = self.lessons._replace(untied=self.lessons.untied.union(names))

    def _untied(self) -> Band | None:
        """Start again without the tables' bounds that refusals named; None if there are none.

        The tables may know less than what is published: where they alone are in the way, the plan warns instead.
        """
        if self._blamed <= self.lessons.untied:
            return None
        self._untie(self._blamed)
        self._asked.clear()
        return self._start()

    @property
    def _best_kinds(self) -> tuple[int, ...]:
        """The kinds of builds that use the GPU, or the CPU's where nothing can."""
        best = self.builds.best
        return (CPU,) if best and kind_of(best) == CPU else (GPU, DIRECTML)

    def _band(
        self, fits: Fits = lambda _torch: True, kinds: Iterable[int] = (GPU, DIRECTML, CPU), above: Plan | None = None
    ) -> Band | None:
        """Return the best builds not asked for yet whose torch fits, of some kinds, and only what is `above` a plan."""
        rank = self.builds.rank
        plans: Iterable[Plan] = self.builds.ranked(fits, kinds)
        if above:
            plans = itertools.takewhile(lambda plan: rank(plan) < rank(above), plans)
        first = next((plan for plan in plans if (plan.variant, plan.torch) not in self._asked), None)
        if first is None:
            return None
        variant = first.variant
        least = number(above.torch) if above and above.variant == variant else ()

        def is_left(torch: str) -> bool:
            return number(torch) > least and fits(torch) and (variant, torch) not in self._asked

        return self.builds.band(first, is_left)

    def _elsewhere(self, trial: Trial, band: Band) -> Band | None:
        """Return where to ask after a "no": another torch, if it has to do with torch at all."""
        giving_way = self.giving_way(band.plan)
        own = {name_of(line) for line in self._tables(band.plan) if line not in giving_way} - CORE
        named = {*trial.names, *trial.missing}
        tied = named & own
        self._blamed |= tied
        fits = within_all(trial.trace.first_needs)
        if any(map(carried_by_torch_index, named - own)):
            return self._band(fits) or self._band(kinds=(CPU,))  # which has every release: it tells what the set wants
        if not tied:
            return None
        paired = within_one_of_each(filter(None, map(self._pairs_of, tied)))
        return self._band(lambda torch: fits(torch) and paired(torch), kinds=self._best_kinds)

    def _better(self, best: Outcome) -> Band | None:
        """Return a band that may be better than what holds: with newer packages, or with a newer torch.

        A version that was not taken beside a torch which it allows is kept out by something else.
        """
        plan = best.plan
        assert plan  # noqa: S101 - it holds
        if wanted := [need for need in best.passed_over if not any(map(need.allows, self._torches))]:
            kinds = (GPU, DIRECTML, CPU) if kind_of(plan) == CPU else (GPU, DIRECTML)
            if band := self._band(within_all(wanted), kinds):
                return band
        paired = tied_by_tables(self.own_names - {*CORE, *self.lessons.untied}, best.trial.versions)
        fits = within_all(need for need in best.needs if need.package not in CORE)
        return self._band(lambda torch: fits(torch) and paired(torch), above=plan)

    def _beats(self, one: Outcome, other: Outcome) -> bool:
        """Return whether one of two that hold is the better: on a GPU, then in versions, then in rank.

        The versions are those of what is asked for, then of what another torch held back: a newer torch is no gain if
        it makes a requested package older.
        """
        plans = [outcome.plan for outcome in (one, other) if outcome.plan]
        ours, theirs = (kind_of(plan) == CPU for plan in plans)
        held_back = {need.package for need in (*one.passed_over, *other.passed_over)}
        for names in (self.own_names - CORE, held_back) if ours is theirs else ():
            if (newer := one.is_newer(other, names)) is not other.is_newer(one, names):
                return newer
        ranks = [self.builds.rank(plan) for plan in plans]
        return (ours, ranks[0]) < (theirs, ranks[1])

    # -- what to ask ---------------------------------------------------------------------------------------------------

    def question(self, band: Band) -> Plan:
        """Return the plan to ask a resolver for: torch within the band's releases, and the user's own lines first.

        A resolver settles what comes first at its newest, so torch is fitted to the user's packages, not they to torch,
        and what we bring makes nothing older that the user asks for.
        """
        own = [str(need) for need, name in self.requested.items() if name != "torch"]
        named = self.own_names - {"torch"}
        ours = (loosened(line, band.torches) for line in band.plan.requirements if name_of(line) not in named)
        return self._as_learnt(band.plan, (*own, *ours))

    def _as_learnt(self, plan: Plan, given: Iterable[str]) -> Plan:
        """Return a plan with some lines and what was learnt: without what has no wheel, ours last, bounds in force."""
        lessons, asked = self.lessons, self.names_asked(plan)
        rest = self.without_source(replace(plan, requirements=tuple(given)))
        lines = [line for line in rest.requirements if name_of(line) not in lessons.left_out]
        ours = [line for line in lines if is_ours(name_of(line), asked)]
        theirs = [line for line in lines if line not in ours]
        of_torch = () if kind_of(plan) == CPU else (*own_triton(plan), *lessons.named)
        # Newer releases of torchvision and torchaudio, where something else brings them, name no torch that they need,
        # and on torch's own indexes some name one that is not the best.
        family = {*FAMILY} if plan.index_url else {*FAMILY} - self.own_names.union(map(name_of, lines))
        giving_way = self.giving_way(plan)
        return replace(
            rest,
            requirements=tuple(dict.fromkeys((*theirs, *ours, *of_torch))),
            constraints=(
                *plan.constraints,
                *(line for line in self._tables(plan) if line not in giving_way),
                *family_bounds(plan, self.case.catalog, family),
            ),
            apart=lessons.apart,
        )

    def without_source(self, plan: Plan) -> Plan:
        """Return a plan without what has no wheel, which nothing else may bring in either."""
        without = dict(self.lessons.only_source)
        return replace(
            plan,
            requirements=tuple(line for line in plan.requirements if name_of(line) not in without),
            overrides=(*plan.overrides, *(f"{name} ; sys_platform == 'never'" for name in without)),
            asked=tuple(name for name in plan.asked if name not in without),
        )

    def _tables(self, plan: Plan) -> tuple[str, ...]:
        """Return what the tables of companions alone know of a plan's torch, as constraints."""
        return table_bounds(plan.torch, plan.variant, self.builds.platform) if self.builds.platform else ()

    def giving_way(self, plan: Plan) -> tuple[str, ...]:
        """Return the tables' constraints that give way: no pair can be had, or the user wants another."""
        own = {name: need.specifier for need, name in self.requested.items()}

        def contradicted(name: str, line: str) -> bool:
            bounds = own.get(name) if only_tables_know(name) else None
            return bounds is not None and (bounds & requirement(line).specifier).is_unsatisfiable()

        lines = {line: name_of(line) for line in self._tables(plan) if line not in self.case.request.constraints}
        return tuple(
            line
            for line, name in lines.items()
            if name not in CORE and (name in self.lessons.untied or contradicted(name, line))
        )

    def names_asked(self, plan: Plan) -> set[str]:
        """Name what is asked for with a plan: by the user, or by a recipe for the plan's backend."""
        return self.own_names | {*plan.asked}

    # -- what the answer says ------------------------------------------------------------------------------------------

    def answer(self, band: Band) -> Outcome:
        """Ask for a band; where what comes beside torch is another release's, ask for the one release alone."""
        self._asked |= {(band.plan.variant, torch) for torch in band.torches}
        trial = self._ask(self.question(band))
        while self.may_ask and self._learns(trial, band.plan):
            trial = self._ask(self.question(band))
        if not trial.holds:
            return Outcome(None, trial)
        torch = next((one for one in band.torches if number(one) == number(trial.torch)), band.plan.torch)
        chosen = band.plan if torch == band.plan.torch else self.builds.find(torch, band.plan.variant)
        if chosen is None:  # the hardware does not run that release's build: newer ones alone
            older = band.torches[band.torches.index(torch) + 1 :]
            self._asked -= {(band.plan.variant, one) for one in older}
            return self.answer(band._replace(torches=band.torches[: band.torches.index(torch)]))
        found = self._as_found(chosen, trial)
        if found is None:
            return Outcome(None, self._not_there(band.plan, trial))
        named = self._with_brought(found, trial)
        lines = tied(named, trial.versions, local=self._is_mixed(found)).requirements
        plan = self._as_learnt(named, lines)
        alone = len(band.torches) == 1 and found.variant == band.plan.variant
        if alone or satisfied(self._for_sources(plan), trial.versions):
            return Outcome(plan, trial, self.lessons)
        return self.answer(Band(found, (found.torch,)))

    def _ask(self, plan: Plan) -> Trial:
        """Put one plan to the resolver."""
        self.spent[0] += 1
        text = _("Checking whether everything fits torch {torch} ({variant})", torch=plan.torch, variant=plan.variant)
        self.tools.sink(Progress(step=Step.PLAN, text=text))
        on = "" if self.lessons.only_source else "torch"
        return try_plan(self._for_sources(plan), self.case.machine, self.tools, on)

    def has_wheel(self, line: str) -> bool:
        """Return whether a source has a wheel of one requirement for this search's Python."""
        best = self.builds.best
        assert best  # noqa: S101 - a search without builds asks nothing
        bare = replace(best, requirements=(line,), constraints=(), overrides=(), index_url=None)
        return try_plan(bare, self.case.machine, self.tools, dependencies=False).holds

    def _learns(self, trial: Trial, plan: Plan) -> bool:
        """Learn from an answer what to ask for otherwise; return whether to ask for the same builds once more."""
        if self._learns_silence(plan, trial):
            return True
        before, missing = self.lessons, trial.missing
        own = self.names_asked(plan)
        apart, named, left_out = dict.fromkeys(before.apart), dict.fromkeys(before.named), set(before.left_out)
        for name in (*missing, *trial.names, *trial.builds):
            carried = carried_by_torch_index(name, plan.variant)
            if name in own - CORE and carried:
                apart[name] = None
            elif name in missing and name not in CORE and (carried or is_required_by_torch(name)):
                named[name] = None
            elif is_ours(name, own):
                onnx = name.startswith("onnx")  # of ONNX's packages one is of little use without the others
                named_here = map(name_of, plan.requirements)
                left_out |= {one for one in named_here if one == name or (onnx and one.startswith("onnx"))}
        if trial.builds:
            self.known_needs.update(trial.trace.needs)
        theirs = (name for name in trial.builds if not is_ours(name, own))
        without = dict(before.only_source) | {name: self._line_of(name, trial) for name in theirs}
        self.lessons = before._replace(
            apart=tuple(apart), named=tuple(named), left_out=frozenset(left_out), only_source=tuple(without.items())
        )
        return self.lessons != before

    def _line_of(self, name: str, trial: Trial) -> str:
        """Return the requirement of a package, as the user or the first package that needs it states it."""
        own = next((str(need) for need, one in self.requested.items() if one == name), "")
        return own or next((need.line for need in trial.trace.needs if need.on == name), name)

    def _with_brought(self, plan: Plan, trial: Trial) -> Plan:
        """Name what others bring and torch's own index has: it serves only what is named, and PyPI's differ."""
        if plan.index_url is None:
            return plan
        named = {name_of(line) for line in plan.requirements}
        brought = [name for name in trial.versions if name not in named and carried_by_torch_index(name, plan.variant)]
        brought = [name for name in brought if not is_required_by_torch(name)]
        lines = family_bounds(plan, self.case.catalog, brought)
        others = tuple(
            name for name in brought if name not in CORE and find_companion(name) and name not in self.lessons.apart
        )
        return replace(plan, requirements=(*plan.requirements, *lines, *others))

    # -- where the sources hold other builds, or are silent ------------------------------------------------------------

    def _for_sources(self, plan: Plan) -> Plan:
        """Return a question as the sources can be asked it: for one build of torch, and not at what is silent."""
        lines = [line for line in plan.requirements if str(requirement(line)) not in self.unreachable]
        others = without_other_builds(label(plan), self.case.catalog) if self._is_mixed(plan) else ()
        plan = replace(plan, requirements=tuple(lines), constraints=(*plan.constraints, *others))
        if not self.is_silent(plan):
            return plan
        lines = [line for line in lines if name_of(line) in CORE or not is_required_by_torch(name_of(line))]
        lines = [line.removesuffix(f"+{label(plan)}") if name_of(line) in CORE else line for line in lines]
        return replace(plan, requirements=tuple(lines), index_url=None)

    def _learns_silence(self, plan: Plan, trial: Trial) -> bool:
        """Learn what cannot be asked: a wheel by its address, or the index of a plan, which then may know no torch."""
        words, source = str(trial.unchecked), source_of(plan)
        lost_wheels = {str(need) for need in self.requested if need.url and need.url in words}
        if lost_wheels - self.unreachable:
            self.unreachable |= lost_wheels
            return True
        lost = bool(words) and ("://" not in words or source in words)
        unknown = "torch" in trial.missing
        if not plan.index_url or self.is_silent(plan) or not (lost or unknown):
            return False
        # A server that is down has the indexes of all builds, in one folder.
        self.silent.append(plan.index_url.rpartition("/")[0] if lost else plan.index_url)
        return True

    def is_silent(self, plan: Plan) -> bool:
        """Return whether the user's other sources are asked for a plan's torch, as its own index is silent."""
        return (plan.index_url or "").startswith(tuple(self.silent))

    def _is_mixed(self, plan: Plan) -> bool:
        """Return whether other builds may lie beside a plan's; each of torch's own indexes holds one."""
        return plan.index_url in (None, self.builds.index_url) or self.is_silent(plan)

    def _as_found(self, plan: Plan, trial: Trial) -> Plan | None:
        """Return a plan for the build that was found: the plan's own, or PyPI's for CUDA; None where it is neither."""
        names = CORE.intersection(map(name_of, plan.requirements)) | {"torch"}
        versions = [trial.versions[name] for name in names if name in trial.versions]

        def is_there(one: Plan) -> bool:
            return all(self.builds.is_build(version, one) for version in versions)

        silent, there = self.is_silent(plan), not self._is_mixed(plan) or is_there(plan)
        found = plan if there else self.builds.pypis_build(plan)
        if found is None or not (there or is_there(found)):
            return plan if silent else None
        if not silent:
            return replace(found, index_url=plan.index_url)
        text = _("{source} could not be asked, and another of your package sources has torch {torch} ({variant}).")
        reason = text.format(source=source_of(plan), torch=found.torch, variant=found.variant)
        return replace(found, index_url=None, reasons=(*found.reasons, reason))

    def _not_there(self, plan: Plan, trial: Trial) -> Trial:
        """Return an answer as a refusal: the source has that release of torch in other builds alone."""
        text = _("{source} holds no {variant} build of torch that fits Python {python} on this machine.")
        why = text.format(source=source_of(plan), variant=plan.variant, python=plan.python)
        return replace(trial, versions={}, names=("torch",), words=why)

    def by_its_build(self, plan: Plan) -> Plan:
        """Return a plan that nobody asked for with its build, where an index of the user's own may hold others."""
        own = plan.index_url == self.builds.index_url and label(plan)
        return tied(plan, {"torch": f"{plan.torch}+{own}"}, local=True) if own else plan


def source_of(plan: Plan) -> str:
    """Name the index that a plan takes torch from, without a password."""
    return redact(plan.index_url or "", Policy.USABLE) or "PyPI"

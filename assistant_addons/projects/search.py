"""The way from the best build that the hardware allows down to the first with which the user's whole set holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    make_plans,
    name_of,
    number,
    requested_packages,
    requirement,
)
from assistant.api.records import Backend, Plan, Planning, Progress, Request, Step
from assistant.api.texts import Policy, redact
from assistant_addons.projects.builds import (
    bands,
    for_other_cuda,
    is_build,
    label,
    pairs,
    plans_for_releases,
    pypis_build,
    question,
    satisfied,
    tied,
    with_family,
    without_other_builds,
)
from assistant_addons.projects.companions import computes_on, ranges_for, torch_bounds
from assistant_addons.projects.trial import Derivation, Need, Trial, try_plan

Band = list[Plan]  # one question covers it


class Lessons(NamedTuple):
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
    """The resolver's answer, the plan that it proves (None where it refuses), and the lessons it was asked by."""

    plan: Plan | None
    trial: Trial
    lessons: Lessons = Lessons()

    @property
    def torch(self) -> str:
        """The release of torch that was taken, "" for none."""
        return self.trial.versions.get("torch", "").partition("+")[0]

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

    def beats(self, other: Outcome, asked: Iterable[str], plans: Sequence[Plan]) -> bool:
        """Return whether this is the better of two that hold: on a GPU, then in versions, then in rank.

        The versions are those of what is asked for, then of what another torch held back: a newer torch is no gain if
        it makes a requested package older.
        """
        ours, theirs = self._on_cpu, other._on_cpu
        held_back = {need.package for need in (*self.passed_over, *other.passed_over)}
        for names in ({*asked} - CORE, held_back) if ours is theirs else ():
            if (newer := self._is_newer(other, names)) is not other._is_newer(self, names):
                return newer
        return (ours, place(self.plan, plans)) < (theirs, place(other.plan, plans))

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


def place(plan: Plan | None, plans: Sequence[Plan]) -> int:
    """Return how many of some plans are better than one."""
    same = (place for place, one in enumerate(plans) if plan and (one.variant, one.torch) == (plan.variant, plan.torch))
    return next(same, len(plans) if plan else 0)


Fits = Callable[[str], bool]


def within_all(needs: Iterable[Need]) -> Fits:
    """Return the question whether all needs allow a release of torch."""
    given = list(needs)
    return lambda torch: all(need.allows(torch) for need in given)


def within_one_of_each(bounds: Iterable[Iterable[SpecifierSet]]) -> Fits:
    """Return the question whether a release of torch is within one of each package's alternatives."""
    given = [tuple(one) for one in bounds]
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


_MOST_QUESTIONS = 30  # chosen: one or two tell which torch is wanted, and a refusal must not take minutes
_OURS = ("onnx", "numpy")  # with onnxruntime in all its flavours: what plans bring beside torch


class Search:
    """One search, for one Python; it learns from each refusal, and asks nothing twice.

    `builds` holds the plans that the hardware allows, best first, and `planning` is what the planner made of the case.
    `own_index` is the user's in place of torch's, and `silent` are addresses of torch's that cannot be asked, so that
    the user's other sources stand in for them; `unreachable` are wheels by their address that cannot be asked.
    `requested` are the user's requirements by canonical names, of which one may stand there several times. `spent`
    counts the questions of this search and of all that come of it. With `reads_all` answers tell all that each package
    needs; `unusable` are those that cannot be imported, as something is left out.
    """

    def __init__(self, case: PlanInputs, tools: Tools, planning: Planning | None = None) -> None:
        self.case, self.tools = case, tools
        self.own_index = tools.sources.index_url
        self.planning = planning or make_plans(*case)
        self.builds = plans_for_releases(*case, self.planning, self.own_index)
        self.lessons = Lessons()
        self.silent: list[str] = []
        self.unreachable: set[str] = set()
        self.requested = [(str(canonicalize_name(need.name)), need) for need in requested_packages(*case)]
        self.spent = [0]
        self.reads_all = False
        self.unusable = frozenset[str]()
        self._blamed: set[str] = set()
        self._asked: set[tuple[str, str]] = set()
        self._torches: list[str] = []

    @property
    def own_names(self) -> set[str]:
        """The canonical names of what the user asks for."""
        return {name for name, _need in self.requested}

    @property
    def python(self) -> str:
        """The Python that it is for."""
        return self.case.request.python or ""

    def again(self, request: Request) -> Search:
        """Return a search for a changed request, that knows already which index cannot be reached."""
        other = Search(self.case._replace(request=request), self.tools)
        other.silent, other.unreachable, other.spent = self.silent, self.unreachable, self.spent
        return other

    def run(self) -> Outcome | None:
        """Ask for the likeliest builds, go where the answers point, and return the best outcome; None without any."""
        band = self._start() if self.builds else None
        if band and (others := for_other_cuda(band[0], *self.case)):
            own = self.own_index
            self.builds = [*(replace(one, index_url=own or one.index_url) for one in others), *self.builds]
            band = self._start()
        best = last = None
        while band and self.may_ask:
            last = self.answer(band)
            if last.trial.unchecked or (last.plan is None and (best or last.trial.builds)):
                break
            if last.plan is None:
                band = self._elsewhere(last.trial, band) or self._untied()
                continue
            self._torches.append(last.torch)
            if best is None or last.beats(best, self.own_names, self.builds):
                best = last
            band = self._better(best, best.plan or band[0])
        if best:
            self.lessons = best.lessons  # later answers that are no better taught what does not count
            return best
        if last and band and not (last.trial.unchecked or last.trial.builds):
            return last._replace(trial=replace(last.trial, unchecked=_("it would take too many questions")))
        return last

    def _start(self) -> Band | None:
        """Return the likeliest builds: with a torch that the tables pair with all that is asked for, if there is one.

        What the tables alone know trades no GPU for the CPU, gives way where it asks for different torches, and where
        the package does not compute on this machine in any case.
        """
        backend = self.builds[0].backend
        known = self._pairs()
        if self._band(within_one_of_each(known.values())) is None:
            known = self._pairs(guess=False)
        self._untie(name for name in known if only_tables_know(name) and not computes_on(name, backend))
        known = {name: bounds for name, bounds in known.items() if name not in self.lessons.untied}
        visible = [one for name, one in known.items() if not only_tables_know(name)]
        band = self._band(within_one_of_each(known.values()))
        if band is None or not self._is_best_kind(band[0]):
            band = self._band(within_one_of_each(visible)) or self._band()
        if band:
            lost = (name for name, one in known.items() if not within_one_of_each([one])(band[0].torch))
            self._untie(name for name in lost if only_tables_know(name))
        return band

    def _untie(self, names: Iterable[str]) -> None:
        self.lessons = self.lessons._replace(untied=self.lessons.untied.union(names))

    def _is_best_kind(self, plan: Plan) -> bool:
        """Return whether a plan uses the GPU, or none can."""
        return plan.backend is not Backend.CPU or self.builds[0].backend is Backend.CPU

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
    def may_ask(self) -> bool:
        """Whether the resolver may be asked once more."""
        return self.spent[0] < _MOST_QUESTIONS

    def answer(self, band: Band, *, exact: bool = False) -> Outcome:
        """Ask for a band; where the answer names one of its releases, prove that release's own plan (`exact`)."""
        exact = exact or band[0].backend is Backend.DIRECTML
        self._asked |= {(plan.variant, plan.torch) for plan in band}
        trial = self.ask(question(band, *self.case, exact=exact))
        while self.may_ask and (self._learns_silence(band[0], trial) or self._learns(trial, band[0])):
            trial = self.ask(question(band, *self.case, exact=exact))
        if not trial.holds:
            return Outcome(None, trial)
        torch = trial.versions.get("torch", "").partition("+")[0]
        chosen = next((plan for plan in band if number(plan.torch) == number(torch)), band[0])
        plan = self._as_found(chosen, trial)
        if plan is None:
            return Outcome(None, self._not_there(band[0], trial))
        plan = self._with_brought(plan, trial)
        proven = exact and plan.variant == band[0].variant
        if proven or satisfied(self._as_learnt(question([plan], *self.case, exact=True)), trial.versions):
            return Outcome(tied(plan, trial.versions) if self._is_mixed(plan) else plan, trial, self.lessons)
        outcome = self.answer([plan], exact=True)
        if outcome.plan is None and not exact and {*outcome.trial.blamed} & {*FAMILY}:
            # The tables know a newer one than the index has: what it did give goes with this torch by its metadata.
            return Outcome(with_family(plan, trial.versions), trial, self.lessons)
        return outcome

    def _learns_silence(self, plan: Plan, trial: Trial) -> bool:
        """Learn what cannot be asked: a wheel by its address, or the index of a plan, which then may know no torch."""
        words, source = str(trial.unchecked), source_of(plan)
        lost_wheels = {str(need) for _name, need in self.requested if need.url and need.url in words}
        if lost_wheels - self.unreachable:
            self.unreachable |= lost_wheels
            return True
        lost = bool(words) and ("://" not in words or source in words)
        unknown = trial.refusal is not None and "torch" in trial.refusal.missing
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
        return plan.index_url in (None, self.own_index) or self.is_silent(plan)

    def _is_there(self, plan: Plan, trial: Trial) -> bool:
        """Return whether the torch that was found, and what a plan names of its family, are of the plan's own build."""
        names = CORE.intersection(map(name_of, plan.requirements)) | {"torch"}
        found = (trial.versions[name] for name in names if name in trial.versions)
        return all(is_build(version, plan, self.case.machine, self.case.catalog) for version in found)

    def _as_found(self, plan: Plan, trial: Trial) -> Plan | None:
        """Return a plan for the build that was found: the plan's own, or PyPI's for CUDA; None where it is neither."""
        silent, there = self.is_silent(plan), not self._is_mixed(plan) or self._is_there(plan, trial)
        found = plan if there else pypis_build(plan, *self.case)
        if found is None or not (there or self._is_there(found, trial)):
            return plan if silent else None
        if not there:
            self.builds.insert(0, found)
        if not silent:
            return replace(found, index_url=plan.index_url)
        text = _("{source} could not be asked, and another of your package sources has torch {torch} ({variant}).")
        reason = text.format(source=source_of(plan), torch=found.torch, variant=found.variant)
        return replace(found, index_url=None, reasons=(*found.reasons, reason))

    def by_its_build(self, plan: Plan) -> Plan:
        """Return a plan that nobody asked for with its build, where an index of the user's own may hold others."""
        own = plan.index_url == self.own_index and label(plan)
        return tied(plan, {"torch": f"{plan.torch}+{own}"}) if own else plan

    def _not_there(self, plan: Plan, trial: Trial) -> Trial:
        """Return an answer as a refusal: the source has that release of torch in other builds alone."""
        text = _("{source} holds no {variant} build of torch that fits Python {python} on this machine.")
        why = text.format(source=source_of(plan), variant=plan.variant, python=plan.python)
        return replace(trial, versions={}, refusal=Derivation(names=("torch",)), words=why)

    def ask(self, plan: Plan) -> Trial:
        """Put one plan to the resolver, with all that was learnt on the way."""
        self.spent[0] += 1
        text = _("Checking whether everything fits torch {torch} ({variant})", torch=plan.torch, variant=plan.variant)
        self.tools.sink(Progress(step=Step.PLAN, text=text))
        return try_plan(self._as_learnt(plan), self.case.machine, self.tools, "" if self.reads_all else "torch")

    def has_wheel(self, line: str) -> bool:
        """Return whether a source has a wheel of one requirement for this search's Python."""
        bare = replace(self.builds[0], requirements=(line,), constraints=(), overrides=(), index_url=None)
        return try_plan(bare, self.case.machine, self.tools, dependencies=False).holds

    def names_asked(self, plan: Plan) -> set[str]:
        """Name what is asked for with a plan: by the user, or by a recipe for the plan's backend."""
        return self.own_names | {*plan.asked}

    def lines_of(self, plan: Plan) -> tuple[str, ...]:
        """Return a plan's lines, those that are ours alone last, or left out where they are in the way of the user's.

        A resolver settles what comes first at its newest: what we bring makes nothing older that the user asks for.
        """
        ours = [line for line in plan.requirements if self._is_ours(name_of(line), plan)]
        theirs = [line for line in plan.requirements if line not in ours]
        return (*theirs, *(line for line in ours if name_of(line) not in self.lessons.left_out))

    def _is_ours(self, name: str, plan: Plan) -> bool:
        """Return whether a plan brings a package of itself, beside torch, and nobody asked for it."""
        ours = name in _OURS or name.startswith("onnxruntime") or name in _brought_along()
        return ours and name not in self.names_asked(plan)

    def bounds_of(self, plan: Plan) -> tuple[str, ...]:
        """Return the constraints of a question that are in force: the user's, and of the tables' those not given up."""
        giving_way = self.giving_way(plan)
        return tuple(line for line in plan.constraints if line not in giving_way)

    def giving_way(self, plan: Plan) -> tuple[str, ...]:
        """Return the tables' constraints of a question that give way: no pair can be had, or the user wants another."""
        own = {name: need.specifier for name, need in self.requested}

        def contradicted(name: str, line: str) -> bool:
            bounds = own.get(name) if only_tables_know(name) else None
            return bounds is not None and (bounds & requirement(line).specifier).is_unsatisfiable()

        return tuple(
            line
            for line in plan.constraints
            if line not in self.case.request.constraints and (name := name_of(line)) not in CORE
            if name in self.lessons.untied or contradicted(name, line)
        )

    def _as_learnt(self, plan: Plan) -> Plan:
        lessons = self.lessons
        lines = [line for line in self.lines_of(plan) if str(requirement(line)) not in self.unreachable]
        bounds = self.bounds_of(plan)
        if self._is_mixed(plan):
            bounds = (*bounds, *without_other_builds(label(plan), self.case.catalog))
        if silent := self.is_silent(plan):
            lines = [line for line in lines if name_of(line) in CORE or not is_required_by_torch(name_of(line))]
            lines = [line.removesuffix(f"+{label(plan)}") if name_of(line) in CORE else line for line in lines]
        elif plan.backend is not Backend.CPU:
            lines += lessons.named
        return replace(
            plan,
            index_url=None if silent else plan.index_url,
            requirements=tuple(dict.fromkeys(lines)),
            constraints=bounds,
            apart=lessons.apart,
        )

    def _learns(self, trial: Trial, plan: Plan) -> bool:
        """Learn from a refusal what to ask for otherwise; return whether to ask for the same builds once more."""
        before, refusal = self.lessons, trial.refusal
        own = self.names_asked(plan)
        apart, named, left_out = dict.fromkeys(before.apart), dict.fromkeys(before.named), set(before.left_out)
        for name in (*refusal.missing, *refusal.names) if refusal else ():
            carried = carried_by_torch_index(name, plan.variant)
            if name in own - CORE and carried:
                apart[name] = None
            elif refusal and name in refusal.missing and name not in CORE and (carried or is_required_by_torch(name)):
                named[name] = None
            elif self._is_ours(name, plan):
                onnx = name.startswith("onnx")  # of ONNX's packages one is of little use without the others
                named_here = map(name_of, plan.requirements)
                left_out |= {one for one in named_here if one == name or (onnx and one.startswith("onnx"))}
        self.lessons = before._replace(apart=tuple(apart), named=tuple(named), left_out=frozenset(left_out))
        return self.lessons != before

    def _elsewhere(self, trial: Trial, band: Band) -> Band | None:
        """Return where to ask after a "no": another torch, if it has to do with torch at all."""
        refusal = trial.refusal
        asked = question(band, *self.case)
        bound = {name_of(line) for line in self.bounds_of(asked) if line not in self.case.request.constraints} - CORE
        named = {*refusal.names, *refusal.missing} if refusal else set()
        tied = named & bound
        self._blamed |= tied
        fits = within_all(trial.trace.first_needs)
        if any(carried_by_torch_index(name) for name in named - bound):
            cpu = [plan for plan in self.builds if plan.backend is Backend.CPU]
            return self._band(fits) or self._band(among=cpu)  # which has every release: it tells what the set wants
        if not tied:
            return None
        paired = within_one_of_each(filter(None, (self._pairs_of(name) for name in tied)))
        alike = [plan for plan in self.builds if self._is_best_kind(plan)]
        return self._band(lambda torch: fits(torch) and paired(torch), among=alike)

    def _better(self, best: Outcome, plan: Plan) -> Band | None:
        """Return a band that may be better than what holds: with newer packages, or with a newer torch.

        A version that was not taken beside a torch which it allows is kept out by something else.
        """
        if wanted := [need for need in best.passed_over if not any(map(need.allows, self._torches))]:
            band = self._band(within_all(wanted))
            if band and not (band[0].backend is Backend.CPU and plan.backend is not Backend.CPU):
                return band
        above = self.builds[: place(plan, self.builds)]
        if not above:
            return None
        own = self.own_names - {*CORE, *self.lessons.untied}
        paired = tied_by_tables(own, best.trial.versions)
        fits = within_all(need for need in best.needs if need.package not in CORE)
        return self._band(fits, among=[one for one in above if paired(one.torch)])

    def _band(self, fits: Fits = lambda _torch: True, among: Iterable[Plan] | None = None) -> Band | None:
        """Return the best plans not asked for yet whose torch fits."""
        plans = self.builds if among is None else among
        left = (plan for plan in plans if fits(plan.torch) and (plan.variant, plan.torch) not in self._asked)
        return next(bands(left), None)

    def _with_brought(self, plan: Plan, trial: Trial) -> Plan:
        """Name what others bring and torch's own index has: it serves only what is named, and PyPI's differ."""
        if plan.index_url is None:
            return plan
        named = {name_of(line) for line in plan.requirements}
        brought = [name for name in trial.versions if name not in named and carried_by_torch_index(name, plan.variant)]
        brought = [name for name in brought if not is_required_by_torch(name)]
        lines = pairs(plan, self.case.catalog, brought)
        others = tuple(
            name for name in brought if name not in CORE and find_companion(name) and name not in self.lessons.apart
        )
        return replace(plan, requirements=(*plan.requirements, *lines, *others))

    def _pairs(self, *, guess: bool = True) -> dict[str, tuple[SpecifierSet, ...]]:
        """Return the torches that the tables pair with what is asked for, those of the newest versions first."""
        names = (name for name, need in self.requested if not need.url)
        found = {name: self._pairs_of(name, guess=guess) for name in names if name not in {*CORE, *self.lessons.untied}}
        return {name: bounds for name, bounds in found.items() if bounds}

    def _pairs_of(self, name: str, *, guess: bool = True) -> tuple[SpecifierSet, ...]:
        own = (need for own, need in self.requested if own == name)
        return torch_bounds(next(own, None) or requirement(name), guess=guess) or ()


def source_of(plan: Plan) -> str:
    """Name the index that a plan takes torch from, without a password."""
    return redact(plan.index_url or "", Policy.USABLE) or "PyPI"

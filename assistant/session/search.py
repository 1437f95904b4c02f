"""The way from the best build that the hardware allows down to the first with which the user's whole set holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, parse_wheel_filename

from assistant.catalog.companions import carried_by_torch_index, companion, required_by_torch, torch_bounds
from assistant.catalog.needs import brought_along
from assistant.i18n import _
from assistant.install import Need, Tools, Trial, try_plan
from assistant.model.event import Progress, Step
from assistant.model.plan import Backend, Plan, Planning, Request
from assistant.model.record import replace
from assistant.plan import Band, PlanInputs, bands, for_other_cuda, ladder, name_of, pairs, proves, question, wishes
from assistant.session.outcome import CORE, Outcome
from assistant.session.sources import Looks, fitted

_MOST_QUESTIONS = 20  # chosen: one or two tell which torch is wanted, and a refusal must not take minutes
_OURS = ("onnx", "numpy")  # with onnxruntime in all its flavours: what plans bring beside torch

Fits = Callable[[str], bool]


class Search:
    """One search, for one Python; it learns from each refusal, and asks nothing twice.

    `rungs` are the plans that the hardware allows, best first. `without` names what has to be built, around which the
    rest is proved. `looks` is None where no source is looked into beforehand, and `held` are plans whose torch is known
    to be there. `blind` names an index of torch's that cannot be reached, so that PyPI's torch of the same release
    stands in for its builds. `untied` are companions that the tables alone would tie to another torch than can be had.
    `spent` counts the questions of this search and of all that come of it.
    """

    def __init__(
        self,
        case: PlanInputs,
        tools: Tools,
        looks: Looks | None,
        *,
        held: Iterable[Plan] = (),
        without: tuple[str, ...] = (),
    ) -> None:
        self.case, self.tools, self.looks, self.without = case, tools, looks, without
        self.rungs = ladder(*case)
        self._wishes = wishes(*case)
        self.own = [need for need in self._wishes if canonicalize_name(need.name) not in without]
        self.blind = ""
        self.apart: tuple[str, ...] = ()
        self.bare = False
        self.untied: set[str] = set()
        self._blamed: set[str] = set()
        self._family: tuple[str, ...] = ()
        self.spent = [0]
        self._some_held = looks is not None and any(plan.wheel for plan in held)
        self._tried: set[tuple[str, str]] = set()

    def again(self, request: Request, *, without: tuple[str, ...] | None = None) -> Search:
        """Return a search for a changed request, that knows already which index cannot be reached."""
        kept = self.without if without is None else without
        other = Search(self.case._replace(request=request), self.tools, self.looks, without=kept)
        other.blind, other._some_held, other.spent = self.blind, self._some_held, self.spent
        return other

    def run(self) -> Outcome | None:
        """Ask for the likeliest builds, go where the answers point, and return the best outcome; None without any."""
        band = self._start()
        if band and (others := for_other_cuda(band.best, *self.case)):
            self.rungs = self.rungs.after(others)
            band = self._start()
        best = last = None
        while band and self.may_ask:
            last = self.answer(band)
            if last.trial.unchecked or (last.plan is None and best):
                break
            if last.plan is None:
                band = self._elsewhere(last.trial, band) or self._untied()
                continue
            if best is None or self._beats(last, best):
                best = last
            band = self._better(best, best.plan or band.best)
        return best or last

    def _start(self) -> Band | None:
        """Return the likeliest builds: with a torch that the tables pair with all that is asked for, if there is one.

        What the tables alone know trades no GPU for the CPU, and gives way where it asks for different torches.
        """
        known = self._pairs()
        visible = [one for name, one in known.items() if not self._only_tables_know(name)]
        ways = (_all(one[0] for one in known.values()), _all_of_any(known.values()))
        bands_ = (band for band in map(self._band, ways) if band and self._is_best_kind(band.best))
        band = next(bands_, None) or self._band(_all_of_any(visible)) or self._band()
        if band:
            lost = {name for name, one in known.items() if not _all_of_any([one])(band.best.torch)}
            self.untied |= {name for name in lost if self._only_tables_know(name)}
        return band

    def _is_best_kind(self, plan: Plan) -> bool:
        """Return whether a plan is for a GPU, or there is none for one."""
        return plan.backend is not Backend.CPU or self.rungs[0].backend is Backend.CPU

    def _untied(self) -> Band | None:
        """Return where to begin anew without those of the tables' bounds that stood in refusals; None without any.

        The tables may know less than what is published: where they alone are in the way, the plan warns instead.
        """
        new = self._blamed - self.untied
        if not new:
            return None
        self.untied |= new
        self._tried.clear()
        return self._start()

    @property
    def may_ask(self) -> bool:
        """Whether the resolver may be asked once more."""
        return self.spent[0] < _MOST_QUESTIONS

    def answer(self, band: Band) -> Outcome:
        """Ask for a band; where the answer names one of its releases, prove that release's own plan."""
        self._tried |= {(plan.variant, plan.torch) for plan in band.plans}
        if self.looks and band.best.wheel is None:
            self.blind = self.blind or band.best.index_url or ""
        trial = self.ask(question(band, *self.case))
        if trial.unchecked and band.best.index_url and not self.blind:
            self.blind = band.best.index_url
            trial = self.ask(question(band, *self.case))
        while trial.refusal and self.may_ask and self._learns(trial, band.best):
            trial = self.ask(question(band, *self.case))
        if not trial.holds:
            return Outcome(None, trial)
        plan = band.plan_for(trial.versions.get("torch", "").partition("+")[0]) or band.best
        plan = self._with_brought(plan, trial)
        if len(band.plans) == 1 or proves(trial.versions, self._as_learnt(question(Band((plan,)), *self.case))):
            return Outcome(plan, trial)
        return self.answer(Band((plan,)))

    def ask(self, plan: Plan) -> Trial:
        """Put one plan to the resolver, with all that was learnt on the way."""
        self.spent[0] += 1
        text = _("Checking whether all goes with torch {torch} ({variant})", torch=plan.torch, variant=plan.variant)
        self.tools.sink(Progress(step=Step.PLAN, text=text))
        return try_plan(self._as_learnt(plan), self.case.machine, self.tools)

    def lines_of(self, plan: Plan) -> tuple[str, ...]:
        """Return a plan's lines, those that are ours alone last, or left out where they are in the way of the user's.

        A resolver settles what comes first at its newest: what we bring makes nothing older that the user asks for.
        """
        own = {canonicalize_name(need.name) for need in self.own}
        ours = [line for line in plan.requirements if is_ours(name_of(line)) and name_of(line) not in own]
        theirs = [line for line in plan.requirements if line not in ours]
        return (*theirs, *([] if self.bare else ours))

    def bounds_of(self, plan: Plan) -> tuple[str, ...]:
        """Return the constraints of a question that are in force: the user's, and of the tables' those not given up."""
        giving_way = self.giving_way(plan)
        return tuple(line for line in plan.constraints if line not in giving_way)

    def giving_way(self, plan: Plan) -> tuple[str, ...]:
        """Return the tables' constraints of a question that give way: no pair can be had, or the user wants another."""
        own: dict[str, SpecifierSet] = {canonicalize_name(need.name): need.specifier for need in self.own}
        return tuple(
            line
            for line in plan.constraints
            if line not in self.case.request.constraints and (name := name_of(line)) not in CORE
            if name in self.untied
            or (
                self._only_tables_know(name)
                and (own.get(name, SpecifierSet()) & Requirement(line).specifier).is_unsatisfiable()
            )
        )

    def _as_learnt(self, plan: Plan) -> Plan:
        lines = [line for line in self.lines_of(plan) if name_of(line) not in self.without]
        never = tuple(f"{name} ; sys_platform == 'never'" for name in self.without)
        if blind := self.is_blind(plan):
            lines = [
                re.sub(r"\+[^,;]*$", "", line) for line in lines if name_of(line) in CORE or not _is_of_torch(line)
            ]
        elif plan.backend is not Backend.CPU:
            lines += self._family
        return replace(
            plan,
            index_url=None if blind else plan.index_url,
            requirements=tuple(dict.fromkeys(lines)),
            constraints=self.bounds_of(plan),
            apart=self.apart,
            overrides=(*plan.overrides, *never),
        )

    def pythons_with(self, name: str) -> set[str]:
        """Return the Pythons for which a package has wheels of its own, in the versions that are asked for.

        Where there are none, no Python helps against a missing wheel: those for any Python would have served here.
        """
        bounds = [need.specifier for need in self._wishes if canonicalize_name(need.name) == name]
        wheels = (parse_wheel_filename(wheel.filename) for wheel in self.tools.sources.listing(name).wheels)
        fitting = [tags for _name, version, _build, tags in wheels if all(one.contains(version) for one in bounds)]
        interpreters = {tag.interpreter for tags in fitting for tag in tags}
        return {f"3.{tag[3:]}" for tag in interpreters if tag.startswith("cp3") and tag[3:].isdigit()}

    def leave_out(self, names: Iterable[str]) -> None:
        """Prove the rest around packages that have to be built, of which a later step asks the user."""
        self.without = tuple(dict.fromkeys((*self.without, *names)))
        self.own = [need for need in self._wishes if canonicalize_name(need.name) not in self.without]

    def is_blind(self, plan: Plan) -> bool:
        """Return whether PyPI's torch stands in for a plan's, as its index cannot be reached."""
        return bool(self.blind and plan.index_url and plan.wheel is None)

    def _learns(self, trial: Trial, plan: Plan) -> bool:
        """Learn from a refusal what to ask for otherwise; return whether there was anything new."""
        if built := [name for name in trial.builds if name not in self.without and not self.pythons_with(name)]:
            self.leave_out(built)
            return True
        refusal, before = trial.refusal, (self.apart, self._family, self.bare)
        own = {canonicalize_name(need.name) for need in self.own}
        for name in (*refusal.missing, *refusal.names) if refusal else ():
            carried = carried_by_torch_index(name, plan.variant)
            if name in own - CORE and carried:
                self.apart = tuple(dict.fromkeys((*self.apart, name)))
            elif refusal and name in refusal.missing and name not in CORE and (carried or required_by_torch(name)):
                self._family = tuple(dict.fromkeys((*self._family, name)))
            elif is_ours(name) and name not in own:
                self.bare = True
        return before != (self.apart, self._family, self.bare)

    def _elsewhere(self, trial: Trial, band: Band) -> Band | None:
        """Return where to ask after a "no": another torch, if it has to do with torch at all."""
        refusal = trial.refusal
        asked = question(band, *self.case)
        bound = {name_of(line) for line in self.bounds_of(asked) if line not in self.case.request.constraints} - CORE
        named = {*refusal.names, *refusal.missing} if refusal else set()
        tied = named & bound
        self._blamed |= tied
        fits = _all(trial.trace.first_needs(["torch"]))
        if any(carried_by_torch_index(name) for name in named - bound):
            cpu = [plan for plan in self.rungs if plan.backend is Backend.CPU]
            return self._band(fits) or self._band(among=cpu)  # which has every release: it tells what the set wants
        if not tied:
            return None
        paired = _all_of_any(filter(None, (self._pairs_of(name) for name in tied)))
        alike = [plan for plan in self.rungs if self._is_best_kind(plan)]
        return self._band(lambda torch: fits(torch) and paired(torch), among=alike)

    def _better(self, best: Outcome, plan: Plan) -> Band | None:
        """Return a band that may be better than what holds: with newer packages, or with a newer torch."""
        if wanted := best.given_up or best.passed_over:
            band = self._band(_all(wanted))
            if band and not (band.best.backend is Backend.CPU and plan.backend is not Backend.CPU):
                return band
        silent = _all(one[0] for name, one in self._pairs().items() if self._only_tables_know(name))
        above = [rung for rung in self.rungs[: self._place(plan)] if silent(rung.torch)]
        return self._band(_all(best.needs), among=above, sure=True)

    def _beats(self, one: Outcome, other: Outcome) -> bool:
        """Return whether an outcome is the better: for a GPU, then with newer versions of what is asked for, then rank.

        A newer torch that costs a package that is asked for its newer version is no gain.
        """
        ranks, asked = (self._rank(one), self._rank(other)), [canonicalize_name(need.name) for need in self.own]
        asked = [name for name in asked if name not in CORE]
        if ranks[0][0] is ranks[1][0] and (newer := one.is_newer(other, asked)) is not other.is_newer(one, asked):
            return newer
        return ranks[0] < ranks[1]

    def _rank(self, outcome: Outcome) -> tuple[bool, int, int]:
        """Return what sorts the best outcome first: a GPU's, with the fewest newest versions given up, high up."""
        plan = outcome.plan
        on_cpu = plan is None or plan.backend is Backend.CPU
        return on_cpu, len(outcome.given_up), self._place(plan) if plan else len(self.rungs)

    def _place(self, plan: Plan) -> int:
        wanted = plan.variant, plan.torch
        places = (place for place, one in enumerate(self.rungs) if (one.variant, one.torch) == wanted)
        return next(places, 0)

    def _band(
        self, fits: Fits = lambda _torch: True, among: Iterable[Plan] | None = None, *, sure: bool = False
    ) -> Band | None:
        """Return the best plans not asked for yet whose torch fits, as far as the sources hold them.

        Those that a source is known to hold go first, and with `sure` alone where there are any.
        """
        passed, unsure, some = set(self._tried), None, None if among is None else tuple(among)

        def left() -> Iterator[Plan]:
            fitting = self.rungs.fitting(fits) if some is None else (plan for plan in some if fits(plan.torch))
            return (plan for plan in fitting if (plan.variant, plan.torch) not in passed)

        while band := next(bands(left()), None):
            held = self._held(band, self.looks) if self.looks else band
            if held and (self.looks is None or held.best.wheel or not self._some_held):
                return held
            unsure = unsure or held
            passed.add((band.best.variant, band.best.torch))
            if held is None:
                self._tried.add((band.best.variant, band.best.torch))
        return None if sure and self._some_held else unsure

    def _held(self, band: Band, looks: Looks) -> Band | None:
        """Fit a band to what the sources hold of its best; other builds beside it let only that one be asked for."""
        held = self.fit(band.best)
        if held is None or (held.wheel is None and not looks.silent(held)):
            return None
        if held.wheel is None:  # its index is silent
            return Band((held, *band.plans[1:]))
        self._some_held = True
        alone = held.wheel.where != "official"
        return Band((held,) if alone else (held, *band.plans[1:]))

    def fit(self, plan: Plan) -> Plan | None:
        """Fit a plan to what the sources hold; None where they do not hold it."""
        if self.looks is None or plan.wheel:
            return plan
        request = replace(self.case.request, pins=(*self.case.request.pins, f"torch=={plan.torch}"))
        here = fitted(Planning(choice=plan, plans=(plan,)), self.case._replace(request=request), self.looks)
        return next((one for one in here.plans if (one.variant, one.torch) == (plan.variant, plan.torch)), None)

    def _with_brought(self, plan: Plan, trial: Trial) -> Plan:
        """Name what others bring and torch's own index has: it serves only what is named, and PyPI's differ."""
        if plan.index_url is None:
            return plan
        named = {name_of(line) for line in plan.requirements}
        brought = [name for name in trial.versions if name not in named and carried_by_torch_index(name, plan.variant)]
        brought = [name for name in brought if not required_by_torch(name)]
        lines = pairs(plan, self.case.catalog, brought)
        others = tuple(name for name in brought if name not in CORE and companion(name) and name not in self.apart)
        return replace(plan, requirements=(*plan.requirements, *lines, *others))

    def _only_tables_know(self, name: str) -> bool:
        row = companion(name)
        return name in self.without or bool(row and any(one.silent for one in row.stretches))

    def _pairs(self) -> dict[str, tuple[SpecifierSet, ...]]:
        """Return the torches that the tables pair with what is asked for, those of the newest versions first."""
        names = (canonicalize_name(need.name) for need in self._wishes if not need.url)
        found = {name: self._pairs_of(name) for name in names if name not in {*CORE, *self.untied}}
        return {name: bounds for name, bounds in found.items() if bounds}

    def _pairs_of(self, name: str) -> tuple[SpecifierSet, ...]:
        own = (need for need in self._wishes if canonicalize_name(need.name) == name)
        return torch_bounds(next(own, Requirement(name))) or ()


def _is_of_torch(line: str) -> bool:
    name = name_of(line)
    return name in CORE or required_by_torch(name)


def is_ours(name: str) -> bool:
    """Return whether plans bring a package of themselves, beside torch."""
    return name in _OURS or name.startswith("onnxruntime") or name in brought_along()


def _all(bounds: Iterable[Need | SpecifierSet]) -> Fits:
    """Return the question whether a release of torch is within all bounds."""
    given = list(bounds)
    return lambda torch: all(
        one.allows(torch) if isinstance(one, Need) else one.contains(torch, prereleases=True) for one in given
    )


def _all_of_any(bounds: Iterable[Iterable[SpecifierSet]]) -> Fits:
    """Return the question whether a release of torch is within one of each package's alternatives."""
    given = [tuple(one) for one in bounds]
    return lambda torch: all(any(one.contains(torch, prereleases=True) for one in some) for some in given)

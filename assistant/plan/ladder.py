"""The builds that the hardware allows for a request, in order: what a resolver is asked for one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple, overload

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import Catalog, load_catalog, number
from assistant.catalog.companions import (
    carried_by_torch_index,
    constraints_for,
    cuda_major,
    load_companions,
    stretches,
)
from assistant.catalog.needs import other_cuda
from assistant.catalog.rows import TorchRelease
from assistant.i18n import _
from assistant.model.errors import NothingFits
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan, Request
from assistant.model.record import replace
from assistant.plan.availability import PlanInputs
from assistant.plan.pins import FAMILY, companion, name_of, needed, read_pins
from assistant.plan.recipes import make_plans
from assistant.plan.rocm import targets_of, with_device_code
from assistant.plan.target import Target, target_of

_TRUST = {Backend.DIRECTML: 1, Backend.CPU: 2}  # after what drives the GPU with a torch of today


class Band(NamedTuple):
    """Plans that differ by their torch release alone, newest first: one question to a resolver covers them all."""

    plans: tuple[Plan, ...]

    @property
    def best(self) -> Plan:
        """The plan with the newest torch."""
        return self.plans[0]

    def plan_for(self, torch: str) -> Plan | None:
        """Return the plan for a release, None where the hardware does not allow it in this band."""
        return next((plan for plan in self.plans if number(plan.torch) == number(torch)), None)


class Rungs(Sequence[Plan]):
    """The plans of a ladder, best first; those for a release are made when somebody looks there, as few are asked for.

    `releases` are versions of torch, newest first, `make` returns the plans for one, and `choice` is the planner's own;
    the plans in `first` go before all.
    """

    def __init__(
        self,
        releases: Iterable[str],
        make: Callable[[str], tuple[Plan, ...]],
        choice: Plan | None,
        first: tuple[Plan, ...] = (),
    ) -> None:
        self._first = first
        self._releases = tuple(releases)
        self._make = cache(make)
        self._choice = choice

    def fitting(self, fits: Callable[[str], bool]) -> Iterator[Plan]:
        """Yield the plans for the releases that fit; what is best of all goes before the others are made."""
        yield from (plan for plan in self._first if fits(plan.torch))
        later: list[tuple[tuple[int, int, bool], Plan]] = []
        for plans in map(self._make, filter(fits, self._releases)):
            for place, plan in enumerate(plans):
                if any(key := self._key(place, plan)):
                    later.append((key, plan))
                else:
                    yield plan
        yield from (plan for _key, plan in sorted(later, key=lambda one: one[0]))

    def after(self, first: tuple[Plan, ...]) -> Rungs:
        """Return this ladder with some plans above it."""
        return Rungs(self._releases, self._make, self._choice, (*first, *self._first))

    def _key(self, place: int, plan: Plan) -> tuple[int, int, bool]:
        """Return what sorts plans: for a GPU all best builds before all second ones, then what the planner passes over.

        It passes over releases that serve the hardware worse than an older one.
        """
        trust, choice = _TRUST.get(plan.backend, 0), self._choice
        passed_over = choice is not None and plan.backend is choice.backend and _newer(plan, choice)
        return trust, 0 if trust else place, passed_over

    def __iter__(self) -> Iterator[Plan]:
        """Yield every plan."""
        return self.fitting(lambda _torch: True)

    @overload
    def __getitem__(self, at: int) -> Plan: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Plan]: ...

    def __getitem__(self, at: int | slice) -> Plan | Sequence[Plan]:
        """Return a plan, or some of them; of those that are not looked at, none is made."""
        end: int | None = at.stop if isinstance(at, slice) else at + 1 or None
        counted = end is None or end < 0  # from the end
        return list(itertools.islice(self, None if counted else end))[at]

    def __len__(self) -> int:
        """Count the plans."""
        return sum(1 for _plan in self)

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self[:1])


def ladder(machine: Machine, catalog: Catalog, request: Request) -> Rungs:
    """Return, for each torch release that the pins allow, the plans that the planner makes for it: best first.

    What drives a GPU goes before the CPU, and a newer torch before an older. All are for the request's own Python.
    Raises `BadInput` as the planner does.
    """
    own = replace(request, python=request.python or machine.python)

    def made(torch: str) -> tuple[Plan, ...]:
        return make_plans(machine, catalog, replace(own, pins=(*request.pins, f"torch=={torch}"))).plans

    return Rungs(_allowed(machine, catalog, own), made, make_plans(machine, catalog, own).choice)


def _allowed(machine: Machine, catalog: Catalog, request: Request) -> Iterator[str]:
    """Yield the releases, newest first, that are not excluded by the pins alone."""
    target = target_of(machine, request, catalog)
    try:
        pins = read_pins(request.pins, catalog, target.markers if isinstance(target, Target) else {})
    except NothingFits:
        return iter(())
    return (release.version for release in catalog.releases if pins.allow_release(release))


def for_other_cuda(plan: Plan, machine: Machine, catalog: Catalog, request: Request) -> tuple[Plan, ...]:
    """Return plans for the CUDA that a version which is asked for is built for, newest torch first: one a release.

    None where the plan's own CUDA serves all, or where no other build is known to. The best build of a release is for
    the newest CUDA that the hardware allows, and what is asked for may be older than that.
    """
    target = target_of(machine, request, catalog)
    if not isinstance(target, Target):
        return ()
    own = wishes(machine, catalog, request)
    wanted = {need: other_cuda(need, plan.torch, plan.variant, target.platform) for need in own}
    majors = frozenset[int]().union(*wanted.values())
    if not majors:
        return ()
    found = (_for_cuda(release, majors, target, PlanInputs(machine, catalog, request)) for release in catalog.releases)
    text = _("{package} is built for CUDA {cuda}: so torch is taken in a build for that, not as {torch} ({variant}).")
    reasons = tuple(
        text.format(package=need, cuda=", ".join(map(str, sorted(those))), torch=plan.torch, variant=plan.variant)
        for need, those in wanted.items()
        if those
    )
    return tuple(replace(one, reasons=(*reasons, *one.reasons)) for one in found if one)


def _for_cuda(release: TorchRelease, majors: Collection[int], target: Target, case: PlanInputs) -> Plan | None:
    """Return the plan for a release's best build for some CUDA majors, None where the hardware allows none."""
    tags = [tag for tag in release.variants.get(target.platform, ()) if tag.startswith("cu")]
    for tag in sorted(tags, key=number, reverse=True):
        if cuda_major(release.version, tag, target.platform) in majors:
            pins = (*case.request.pins, f"torch=={release.version}+{tag}")
            own = replace(case.request, pins=pins, python=target.python)
            choice = make_plans(case.machine, case.catalog, own).choice
            if choice and choice.variant == tag:
                return choice
    return None


def _newer(plan: Plan, other: Plan) -> bool:
    return number(plan.torch) > number(other.torch)


def bands(rungs: Iterable[Plan]) -> Iterator[Band]:
    """Put the neighbours of a ladder together that come from one index and differ by their torch alone."""

    def build(plan: Plan) -> tuple[object, ...]:
        many = plan.wheel is not None and plan.wheel.where != "official"  # other builds lie beside this one
        alone = many or plan.backend is Backend.DIRECTML  # which ties torchvision and itself to one torch
        env = tuple(sorted(plan.env.items()))
        return plan.backend, plan.variant, plan.index_url, env, _own_triton(plan), plan.torch if alone else ""

    return (Band(tuple(plans)) for _build, plans in itertools.groupby(rungs, key=build))


def _own_triton(plan: Plan) -> tuple[str, ...]:
    """Return the Triton that a build for ROCm or XPU needs, which its own index alone has and so must be asked for.

    A release that the tables do not know yet is taken to need the one of the release before.
    """
    if plan.backend not in (Backend.ROCM, Backend.XPU):
        return ()
    names = [row.name for row in load_companions().companions.rows if "triton" in row.name]
    names = [name for name in names if name != "triton" and carried_by_torch_index(name, plan.variant)]
    for release in (row.version for row in load_catalog().releases if number(row.version) <= number(plan.torch)):
        if found := [name for name in names if any(one.goes_with(release) for one in stretches(name))]:
            return tuple(found)
    return ()


def question(band: Band, machine: Machine, catalog: Catalog, request: Request) -> Plan:
    """Return the plan to ask a resolver for: torch within the band's releases, and the user's own lines first.

    A resolver settles what comes first at its newest, so that torch follows the user's packages and not they torch.
    What the tables of companions alone know of the newest release goes along as constraints.
    """
    plan, target = band.best, target_of(machine, request, catalog)
    if not isinstance(target, Target):
        return plan
    own = [need for need in wishes(machine, catalog, request) if canonicalize_name(need.name) != "torch"]
    named = {canonicalize_name(need.name) for need in own}
    whole = len(band.plans) == 1
    lines = {line: name_of(line) for line in plan.requirements}
    first = [line for line, name in lines.items() if name in named] if whole else list(map(str, own))
    rest = [line if whole else _loosened(line, band) for line, name in lines.items() if name not in named]
    constraints = (
        *plan.constraints,
        *_known(plan.torch, plan.variant, target.platform),
        *_no_newer_pair(plan, catalog, {*named, *lines.values()}),
    )
    requirements = tuple(dict.fromkeys((*first, *rest, *_own_triton(plan))))
    return replace(plan, requirements=requirements, constraints=constraints)


def wishes(machine: Machine, catalog: Catalog, request: Request) -> list[Requirement]:
    """Return what the user asks for on this machine, line by line: without markers, and without what they leave out."""
    target = target_of(machine, request, catalog)
    return needed(request.pins, target.markers) if isinstance(target, Target) else []


def pairs(plan: Plan, catalog: Catalog, names: Iterable[str]) -> tuple[str, ...]:
    """Return lines that name, of some packages, those from torch's family in the version that goes with a plan's."""
    release = catalog.release(plan.torch)
    found = {name: companion(Requirement(name), release) for name in FAMILY if name in set(names)} if release else {}
    targets = targets_of(plan.requirements)
    return tuple(with_device_code(f"{name}=={version}", targets) for name, version in found.items() if version)


def _no_newer_pair(plan: Plan, catalog: Catalog, named: Collection[str]) -> tuple[str, ...]:
    """Bound torchvision and torchaudio, where something else brings them: newer ones name no torch that they need."""
    return tuple(line.replace("==", "<=") for line in pairs(plan, catalog, {*FAMILY} - {*named}))


_known = lru_cache(maxsize=256)(constraints_for)  # a search asks for the same builds over and over


def _loosened(line: str, band: Band) -> str:
    """Widen the line that asks for torch to the band's releases; a companion is chosen by its own metadata."""
    need = Requirement(line)
    extras = f"[{','.join(sorted(need.extras))}]" if need.extras else ""
    if name_of(line) in FAMILY:
        return f"{need.name}{extras}"
    if name_of(line) != "torch":
        return line
    # A local part, as in 2.14.1+cu130, sorts after the release itself, and "<=2.14.1" takes it in all the same.
    return f"torch{extras}>={band.plans[-1].torch},<={band.best.torch}"


def proves(versions: Mapping[str, str], plan: Plan) -> bool:
    """Return whether what a resolver found for a band holds for one of its plans, constraints included."""
    held = all(name_of(line) in versions for line in plan.requirements)
    bounds = [*map(Requirement, plan.requirements), *map(Requirement, plan.constraints)]
    return held and all(
        need.specifier.contains(versions[name], prereleases=True)
        for need in bounds
        if (name := canonicalize_name(need.name)) in versions
    )

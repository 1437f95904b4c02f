"""The builds that the hardware allows for a request, in order: what a resolver is asked for one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from assistant.api import Message, NothingFits, _, replace
from assistant.api.planning import (
    AMD_INDEX,
    CORE,
    FAMILY,
    JETSON_INDEX,
    Catalog,
    PlanInputs,
    Target,
    TorchRelease,
    all_companions,
    carried_by_torch_index,
    device_targets,
    find_companion,
    find_target,
    load_catalog,
    make_plans,
    name_of,
    number,
    read_pins,
    requested_packages,
    requirement,
    version_ranges,
    with_device_code,
)
from assistant.api.planning import companion_for as companion
from assistant.api.records import Backend, Plan, Planning
from assistant_addons.projects.companions import constraints_for, cuda_major, other_cuda, with_needs

Fits = Callable[[str], bool]  # whether a release of torch is wanted

GPU, DIRECTML, CPU = range(3)  # kinds of plans: what drives a GPU goes before DirectML, and that before the CPU


class Band(NamedTuple):
    """Builds of one variant from one index, which differ by their torch alone, so that one question covers them.

    `plan` is for the newest of their torches, which go first.
    """

    plan: Plan
    torches: tuple[str, ...]


class Builds:
    """The plans that the planner makes for each release of torch that the pins allow, each when it is asked for.

    All are for the request's own Python. `index_url` replaces the index of every plan. Raises `BadInput` as the planner
    does.
    """

    def __init__(self, case: PlanInputs, planning: Planning | None = None, index_url: str = "") -> None:
        own = replace(case.request, python=case.request.python or case.machine.python)
        self.case = case._replace(request=own)
        self.index_url = index_url
        self.target = find_target(case.machine, own, case.catalog)
        planning = planning or planned(self.case)
        self._choice, self.rejected = planning.choice, planning.rejected
        self._plans: dict[str, tuple[Plan, ...]] = {}
        try:
            pins = read_pins(own.pins, case.catalog, self.target.markers if isinstance(self.target, Target) else {})
        except NothingFits:
            self.releases: list[TorchRelease] = []
        else:
            self.releases = [release for release in case.catalog.releases if pins.allow_release(release)]

    def of(self, release: TorchRelease) -> tuple[Plan, ...]:
        """Return the plans for a release, best first, one of them for the build that is known to be wanted."""
        if release.version not in self._plans:
            pinned = replace(self.case.request, pins=(*self.case.request.pins, f"torch=={release.version}"))
            own = planned(self.case._replace(request=pinned)).plans
            other = self._wanted(own[0], release) if own else None
            plans = (other if other and other.backend is plan.backend else plan for plan in own)
            self._plans[release.version] = tuple(
                replace(plan, index_url=self.index_url or plan.index_url) for plan in plans
            )
        return self._plans[release.version]

    def ranked(self, fits: Fits = lambda _torch: True, kinds: Iterable[int] = (GPU, DIRECTML, CPU)) -> Iterator[Plan]:
        """Yield plans for the releases that fit, best first.

        Best builds of a release go before second-best, and a newer torch before an older; last go those that serve the
        hardware, or what is asked for, less well than an older torch does.
        """
        releases = [release for release in self.releases if fits(release.version)]
        for kind in kinds:
            for place in itertools.count():
                columns = ([plan for plan in self.of(release) if kind_of(plan) == kind] for release in releases)
                found, late = False, list[Plan]()
                for plan in (column[place] for column in columns if place < len(column)):
                    found = True
                    if self._is_late(plan):
                        late.append(plan)
                    else:
                        yield plan
                yield from late
                if not found:
                    break

    def band(self, plan: Plan, fits: Fits) -> Band:
        """Return a plan's band: its release, and those right below it that fit.

        Which of them the hardware allows is asked of the planner when a resolver takes one.
        """
        if plan.backend is Backend.DIRECTML:  # which ties torchvision and itself to one torch
            return Band(plan, (plan.torch,))
        older = itertools.dropwhile(lambda release: release.version != plan.torch, self.releases)
        fitting = (release for release in older if fits(release.version))
        alike = itertools.takewhile(lambda release: self._has_alike(release, plan), fitting)
        return Band(plan, tuple(release.version for release in alike))

    def _has_alike(self, release: TorchRelease, plan: Plan) -> bool:
        """Return whether a plan's index has a release in the same build, which needs the same Triton."""
        tags = release.variants.get(self.platform, ())
        if plan.variant in {AMD_INDEX, JETSON_INDEX}:  # whose releases the planner knows
            tags = tuple(one.variant for one in self.of(release))
        url = self.index_url or self.case.catalog.index_url(plan.variant, release.version)
        same_triton = own_triton(replace(plan, torch=release.version)) == own_triton(plan)
        return plan.variant in tags and plan.index_url == url and same_triton

    def find(self, torch: str, variant: str) -> Plan | None:
        """Return the plan for a release in one build, None where the hardware does not allow it."""
        release = self.case.catalog.release(torch)
        return next((plan for plan in self.of(release) if plan.variant == variant), None) if release else None

    def rank(self, plan: Plan) -> tuple[int, int, bool, int]:
        """Return what plans are sorted by, the best first."""
        release = self.case.catalog.release(plan.torch)
        own = [one.variant for one in self.of(release) if kind_of(one) == kind_of(plan)] if release else []
        place = own.index(plan.variant) if plan.variant in own else 0
        age = self.releases.index(release) if release in self.releases else len(self.releases)
        return kind_of(plan), place, self._is_late(plan), age

    @cached_property
    def best(self) -> Plan | None:
        """The best plan, None where there is none."""
        return next(self.ranked(), None)

    def plan_for(self, build: str) -> Plan | None:
        """Return the plan for a build such as "2.15.0+cu130", None where the hardware or the request forbids it."""
        pinned = replace(self.case.request, pins=(*self.case.request.pins, f"torch=={build}"))
        choice = planned(self.case._replace(request=pinned)).choice
        return choice if choice and f"{choice.torch}+{choice.variant}" == build else None

    def pypis_build(self, plan: Plan) -> Plan | None:
        """Return the plan for the build of a plan's release that PyPI has, where that is for CUDA and runs here."""
        found = self.plan_for(f"{plan.torch}+{self._of_pypi(plan)}") if plan.backend is Backend.CUDA else None
        return found if found and found.backend is plan.backend else None

    def _of_pypi(self, plan: Plan) -> str:
        """Return the build of a plan's torch that PyPI has, such as "cu132", which on Linux is one for CUDA."""
        return self.case.catalog.build_of(plan.torch, "pypi", self.platform)

    def is_build(self, version: str, plan: Plan) -> bool:
        """Return whether a version of torch or its family, from a source of several builds, is of a plan's build."""
        local, own = version.partition("+")[2], label(plan)
        if own:
            return (local or self._of_pypi(plan)) == own
        return local.startswith("rocm") if plan.backend is Backend.ROCM else not local

    @property
    def platform(self) -> str:
        """The platform that the wheels are for, "" where there is none."""
        return self.target.platform if isinstance(self.target, Target) else ""

    @cached_property
    def requested(self) -> dict[Requirement, str]:
        """What the user asks for on this machine, with canonical names, of which one may stand there several times."""
        return {need: str(canonicalize_name(need.name)) for need in requested_packages(*self.case)}

    @cached_property
    def _companions(self) -> list[Requirement]:
        return [need for need, name in self.requested.items() if find_companion(name)]

    def _other_cuda(self, plan: Plan) -> dict[Requirement, frozenset[int]]:
        """Return what is asked for and built for another CUDA than a plan's alone, with the majors that it needs."""
        majors = {need: other_cuda(need, plan.torch, plan.variant, self.platform) for need in self._companions}
        return {need: those for need, those in majors.items() if those}

    def _is_late(self, plan: Plan) -> bool:
        """Return whether an older torch serves the hardware better, or what is asked for."""
        choice = self._choice
        newer = choice and plan.backend is choice.backend and number(plan.torch) > number(choice.torch)
        return bool(newer or self._other_cuda(plan))

    def _wanted(self, plan: Plan, release: TorchRelease) -> Plan | None:
        """Return the plan for a build of the CUDA that something asked for needs, else for one that a project names."""
        tags = release.variants.get(self.platform, ())
        if not (needs := self._other_cuda(plan)):
            named = (f"{release.version}+{tag}" for tag in self.case.request.builds if tag in tags and tag != "cpu")
            return next(filter(None, map(self.plan_for, named)), None)
        majors = frozenset[int]().union(*needs.values())
        right = [tag for tag in tags if cuda_major(release.version, tag, self.platform) in majors]
        builds = (f"{release.version}+{tag}" for tag in sorted(right, key=number, reverse=True))
        return next(filter(None, map(self.plan_for, builds)), None)

    def why_other_cuda(self, plan: Plan) -> list[Message]:
        """Say what is built for another CUDA than the planner's choice, where a plan has torch for that one instead."""
        choice = self._choice
        if choice is None or self._other_cuda(plan):
            return []
        text = _(
            "{package} is built for CUDA {cuda}, so the plan takes a build of torch for that CUDA instead of {torch} "
            "({variant})."
        )
        text = text.format(torch=choice.torch, variant=choice.variant)
        needs = self._other_cuda(choice).items()
        return [text.format(package=need, cuda=", ".join(map(str, sorted(those)))) for need, those in needs]


def planned(case: PlanInputs) -> Planning:
    """Return what the planner makes of a case, with what the packages that are asked for need beside torch."""
    return with_needs(make_plans(*case), case)


def kind_of(plan: Plan) -> int:
    """Return the kind of a plan: `GPU`, `DIRECTML` or `CPU`."""
    return {Backend.DIRECTML: DIRECTML, Backend.CPU: CPU}.get(plan.backend, GPU)


def label(plan: Plan) -> str:
    """Return the local version of a plan's torch, such as "cu132"; "" for one without, and for AMD's own index."""
    return "cpu" if plan.backend is Backend.DIRECTML else "" if plan.variant in {"pypi", AMD_INDEX} else plan.variant


@cache
def without_other_builds(build: str, catalog: Catalog) -> tuple[str, ...]:
    """Return constraints that leave but one build of torch and its family, where a source holds several."""
    found = {
        f"{name}!={version}+{tag}"
        for row in catalog.releases
        for name, versions in (("torch", (row.version,)), *((name, getattr(row, name)) for name in FAMILY))
        for version in versions
        for tag in {tag for tags in row.variants.values() for tag in tags} - {build, "pypi"}
    }
    return tuple(sorted(found)) if build else ()


def tied(plan: Plan, versions: Mapping[str, str], *, local: bool) -> Plan:
    """Return a plan whose lines for torch's family name the versions that were found.

    Where a source holds several builds (`local`), torch's own too, and their build, as in torch==2.15.0+cu132.
    """
    lines = []
    for line in plan.requirements:
        need, version = copy(requirement(line)), versions.get(name_of(line), "")
        if version and name_of(line) in (CORE if local and "+" in line + version else FAMILY):
            need.specifier = SpecifierSet(f"=={version if local else version.partition('+')[0]}")
            line = str(need)  # noqa: PLW2901 - as it is found
        lines.append(line)
    return replace(plan, requirements=tuple(lines))


def own_triton(plan: Plan) -> tuple[str, ...]:
    """Return the Triton that a build for ROCm or XPU needs, which its own index alone has and so must be asked for.

    A release that the tables do not know yet is taken to need the one of the release before.
    """
    if plan.backend not in (Backend.ROCM, Backend.XPU):
        return ()
    names = [row.name for row in all_companions() if "triton" in row.name]
    names = [name for name in names if name != "triton" and carried_by_torch_index(name, plan.variant)]
    for release in (row.version for row in load_catalog().releases if number(row.version) <= number(plan.torch)):
        if found := [name for name in names if any(one.goes_with(release) for one in version_ranges(name))]:
            return tuple(found)
    return ()


def family_bounds(plan: Plan, catalog: Catalog, names: Collection[str]) -> tuple[str, ...]:
    """Return lines for those of some packages that are torch's family: at most the version that goes with a plan's.

    Not exactly that: an index of torch's may hold it for another release alone.
    """
    release, targets = catalog.release(plan.torch), device_targets(plan.requirements)
    own = {str(name_of(line)): line.partition("==")[2].partition("+")[0] for line in plan.requirements if "==" in line}
    best = {name: str(companion(Requirement(name), release) or "") for name in FAMILY} if release else {}
    best |= own
    return tuple(
        with_device_code(f"{name}<={best[name]}", targets) for name in FAMILY if name in names and best.get(name)
    )


table_bounds = lru_cache(maxsize=256)(constraints_for)  # a search asks for the same builds over and over


def loosened(line: str, torches: Sequence[str]) -> str:
    """Widen the line that asks for torch from the newest to the oldest of some releases.

    A companion is chosen by its own metadata.
    """
    need = requirement(line)
    extras = f"[{','.join(sorted(need.extras))}]" if need.extras else ""
    if name_of(line) in FAMILY:
        return f"{need.name}{extras}"
    if name_of(line) != "torch":
        return line
    # A local part, as in 2.14.1+cu130, sorts after the release itself, and "<=2.14.1" takes it in all the same.
    return f"torch{extras}>={torches[-1]},<={torches[0]}"


def satisfied(plan: Plan, versions: Mapping[str, str]) -> bool:
    """Return whether what a resolver found for a band holds for one of its plans, constraints included."""
    needs = [need for need in map(requirement, plan.requirements) if not need.url]  # whose version nobody is told
    held = all(canonicalize_name(need.name) in versions for need in needs)
    bounds = [*needs, *map(requirement, plan.constraints)]
    return held and all(
        need.specifier.contains(versions[name], prereleases=True)
        for need in bounds
        if (name := canonicalize_name(need.name)) in versions
    )

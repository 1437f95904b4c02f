"""The builds that the hardware allows for a request, in order: what a resolver is asked for one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from assistant.api import NothingFits, _, replace
from assistant.api.planning import (
    AMD_INDEX,
    CORE,
    FAMILY,
    Catalog,
    PlanInputs,
    Target,
    TorchRelease,
    all_companions,
    carried_by_torch_index,
    device_targets,
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
from assistant.api.records import Backend, Machine, Plan, Planning, Request
from assistant_addons.projects.companions import constraints_for, cuda_major, other_cuda, with_needs

_TRUST = {Backend.DIRECTML: 1, Backend.CPU: 2}  # sorted after all other backends


def plans_for_releases(
    machine: Machine, catalog: Catalog, request: Request, planning: Planning | None = None, index_url: str = ""
) -> list[Plan]:
    """Return the plans that the planner makes for each torch release that the pins allow, best first.

    What drives a GPU goes before DirectML, and that before the CPU; best builds of a release go before second-best,
    and a newer torch before an older. Releases that the planner passed over, as an older one serves the hardware
    better, go last. A build that the project names stands for the planner's own where the hardware allows it. All are
    for the request's own Python. `planning` is what the planner made of the request, where that is there already;
    `index_url` replaces the index of every plan. Raises `BadInput` as the planner does.
    """
    own = replace(request, python=request.python or machine.python)
    planning = planning or _planned(machine, catalog, own)
    choice = planning.choice

    def key(plan: Plan, place: int) -> tuple[int, int, bool]:
        trust = _TRUST.get(plan.backend, 0)
        newer = choice is not None and plan.backend is choice.backend and number(plan.torch) > number(choice.torch)
        return trust, 0 if trust else place, newer

    target = find_target(machine, own, catalog)
    try:
        pins = read_pins(request.pins, catalog, target.markers if isinstance(target, Target) else {})
    except NothingFits:
        return []
    found = []
    for release in catalog.releases:
        if pins.allow_release(release):
            pinned = replace(own, pins=(*request.pins, f"torch=={release.version}"))
            named = _named_build(release, machine, catalog, own)
            plans = [
                named if named and named.backend is one.backend else one
                for one in _planned(machine, catalog, pinned).plans
            ]
            found += [(key(plan, place), plan) for place, plan in enumerate(plans)]
    found.sort(key=lambda one: one[0])
    return [replace(plan, index_url=index_url or plan.index_url) for _key, plan in found]


def _named_build(release: TorchRelease, machine: Machine, catalog: Catalog, request: Request) -> Plan | None:
    """Return the plan for the first build of a release that a project names and the hardware allows."""
    case = PlanInputs(machine, catalog, request)
    there = {tag for tags in release.variants.values() for tag in tags}
    builds = (f"{release.version}+{build}" for build in request.builds if build in there and build != "cpu")
    return next(filter(None, (_plan_for(build, request.python or "", case) for build in builds)), None)


def _planned(machine: Machine, catalog: Catalog, request: Request) -> Planning:
    return with_needs(make_plans(machine, catalog, request), PlanInputs(machine, catalog, request))


def for_other_cuda(plan: Plan, machine: Machine, catalog: Catalog, request: Request) -> tuple[Plan, ...]:
    """Return plans with torch built for the CUDA that a requested version needs, newest first, one per release.

    Empty where the plan's own CUDA serves everything, or no build that serves is known. The best build of a release is
    for the newest CUDA that the hardware allows, and what is requested may be older than that.
    """
    target = find_target(machine, request, catalog)
    if not isinstance(target, Target):
        return ()
    own = requested_packages(machine, catalog, request)
    wanted = {need: other_cuda(need, plan.torch, plan.variant, target.platform) for need in own}
    majors = frozenset[int]().union(*wanted.values())
    if not majors:
        return ()
    found = (_for_cuda(release, majors, target, PlanInputs(machine, catalog, request)) for release in catalog.releases)
    text = _(
        "{package} is built for CUDA {cuda}, so the plan takes a build of torch for that CUDA instead of {torch} "
        "({variant})."
    )
    reasons = tuple(
        text.format(package=need, cuda=", ".join(map(str, sorted(those))), torch=plan.torch, variant=plan.variant)
        for need, those in wanted.items()
        if those
    )
    return tuple(replace(one, reasons=(*reasons, *one.reasons)) for one in found if one)


def _for_cuda(release: TorchRelease, majors: Collection[int], target: Target, case: PlanInputs) -> Plan | None:
    """Return the plan for a release's best build for some CUDA majors, None where the hardware allows none."""
    tags = [tag for tag in release.variants.get(target.platform, ()) if tag.startswith("cu")]
    right = (tag for tag in tags if cuda_major(release.version, tag, target.platform) in majors)
    builds = (f"{release.version}+{tag}" for tag in sorted(right, key=number, reverse=True))
    return next(filter(None, (_plan_for(build, target.python, case) for build in builds)), None)


def _plan_for(build: str, python: str, case: PlanInputs) -> Plan | None:
    """Return the plan for a build such as "2.15.0+cu130", None where the hardware or the request does not allow it."""
    pins = (*case.request.pins, f"torch=={build}")
    choice = _planned(case.machine, case.catalog, replace(case.request, pins=pins, python=python or None)).choice
    return choice if choice and f"{choice.torch}+{choice.variant}" == build else None


def pypis_build(plan: Plan, machine: Machine, catalog: Catalog, request: Request) -> Plan | None:
    """Return the plan for the build of a plan's release that PyPI itself has, where that is for CUDA and runs here."""
    if plan.backend is not Backend.CUDA:
        return None
    case = PlanInputs(machine, catalog, replace(request, backend=plan.backend))
    return _plan_for(f"{plan.torch}+{_of_pypi(plan, machine, catalog)}", plan.python, case)


def _of_pypi(plan: Plan, machine: Machine, catalog: Catalog) -> str:
    """Return the build of a plan's torch that PyPI has, such as "cu132", which on Linux is one for CUDA."""
    target = find_target(machine, Request(python=plan.python), catalog)
    return catalog.build_of(plan.torch, "pypi", target.platform) if isinstance(target, Target) else ""


def label(plan: Plan) -> str:
    """Return the local version of a plan's torch, such as "cu132"; "" for one without, and for AMD's own index."""
    return "cpu" if plan.backend is Backend.DIRECTML else "" if plan.variant in {"pypi", AMD_INDEX} else plan.variant


def is_build(version: str, plan: Plan, machine: Machine, catalog: Catalog) -> bool:
    """Return whether a version of torch or of its family, from a source that may hold several, is of a plan's build."""
    local, own = version.partition("+")[2], label(plan)
    if own:
        return (local or _of_pypi(plan, machine, catalog)) == own
    return local.startswith("rocm") if plan.backend is Backend.ROCM else not local


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


def tied(plan: Plan, versions: Mapping[str, str]) -> Plan:
    """Return a plan whose lines for torch and its family name the builds that were found, as in torch==2.15.0+cu132."""
    lines = []
    for line in plan.requirements:
        need, version = Requirement(line), versions.get(name_of(line), "")
        need.specifier = SpecifierSet(f"=={version}" if version else "")
        lines.append(str(need) if name_of(line) in CORE and version and "+" in line + version else line)
    return replace(plan, requirements=tuple(lines))


def with_family(plan: Plan, versions: Mapping[str, str]) -> Plan:
    """Return a plan with those versions of torchvision and torchaudio that were found."""
    lines = (f"{name}=={versions[name]}" if (name := name_of(line)) in FAMILY else line for line in plan.requirements)
    return replace(plan, requirements=tuple(lines))


def bands(plans: Iterable[Plan]) -> Iterator[list[Plan]]:
    """Put the neighbours in that order together that come from one index and differ by their torch alone.

    One question to a resolver covers such a band.
    """

    def build(plan: Plan) -> tuple[object, ...]:
        alone = plan.backend is Backend.DIRECTML  # which ties torchvision and itself to one torch
        env = tuple(sorted(plan.env.items()))
        return plan.backend, plan.variant, plan.index_url, env, _own_triton(plan), plan.torch if alone else ""

    return (list(group) for _build, group in itertools.groupby(plans, key=build))


def _own_triton(plan: Plan) -> tuple[str, ...]:
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


def question(
    band: Sequence[Plan], machine: Machine, catalog: Catalog, request: Request, *, exact: bool = False
) -> Plan:
    """Return the plan to ask a resolver for: torch within the band's releases, and the user's own lines first.

    A resolver settles what comes first at its newest, so torch is fitted to the user's packages, not they to torch.
    What the tables of companions alone know of the newest release goes along as constraints. With `exact` the lines
    are those of the one plan in the band.
    """
    plan, target = band[0], find_target(machine, request, catalog)
    if not isinstance(target, Target):
        return plan
    own = [need for need in requested_packages(machine, catalog, request) if canonicalize_name(need.name) != "torch"]
    named = {canonicalize_name(need.name) for need in own}
    lines = {line: name_of(line) for line in plan.requirements}
    first = [line for line, name in lines.items() if name in named] if exact else list(map(str, own))
    rest = [line if exact else _loosened(line, band) for line, name in lines.items() if name not in named]
    # Newer releases of torchvision and torchaudio, where something else brings them, name no torch that they need, and
    # on torch's own indexes some name one that is not the best.
    companions = pairs(plan, catalog, FAMILY if plan.index_url else {*FAMILY} - {*named, *lines.values()})
    return replace(
        plan,
        requirements=tuple(dict.fromkeys((*first, *rest, *_own_triton(plan)))),
        constraints=(
            *plan.constraints,
            *_constraints_for(plan.torch, plan.variant, target.platform),
            *companions,
        ),
    )


def pairs(plan: Plan, catalog: Catalog, names: Collection[str]) -> tuple[str, ...]:
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


_constraints_for = lru_cache(maxsize=256)(constraints_for)  # a search asks for the same builds over and over


def _loosened(line: str, band: Sequence[Plan]) -> str:
    """Widen the line that asks for torch to the band's releases; a companion is chosen by its own metadata."""
    need = requirement(line)
    extras = f"[{','.join(sorted(need.extras))}]" if need.extras else ""
    if name_of(line) in FAMILY:
        return f"{need.name}{extras}"
    if name_of(line) != "torch":
        return line
    # A local part, as in 2.14.1+cu130, sorts after the release itself, and "<=2.14.1" takes it in all the same.
    return f"torch{extras}>={band[-1].torch},<={band[0].torch}"


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

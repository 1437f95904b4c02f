"""What packages that stand on torch want of a build of it: versions that go with it, other packages, warnings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from assistant.api import Message, _, replace, sentences
from assistant.api.planning import (
    CORE,
    Companion,
    PlanInputs,
    Target,
    VersionRange,
    all_companions,
    applicable_requirements,
    bounds_beside,
    bounds_between,
    can_overlap,
    carried_by_torch_index,
    find_companion,
    find_target,
    load_catalog,
    system_needs,
    version_ranges,
    with_underlying,
)
from assistant.api.records import Backend, Plan, Planning

_VARIABLES = {"linux": "LD_LIBRARY_PATH", "windows": "PATH"}


class Added(NamedTuple):
    """What goes along with companions beside a torch: requirements, and warnings."""

    requires: tuple[str, ...] = ()
    warnings: tuple[Message, ...] = ()


_NEEDED_BY_TORCH = "msvc-runtime"  # what torch needs as well is the doctor's to look for


def with_needs(planning: Planning, case: PlanInputs) -> Planning:
    """Add to each plan what the packages that are asked for need beside its torch: packages, and warnings."""
    plans = tuple(_with_needs(plan, case) for plan in planning.plans)
    return replace(planning, plans=plans, choice=plans[0] if plans else None)


def _with_needs(plan: Plan, case: PlanInputs) -> Plan:
    target = find_target(case.machine, replace(case.request, python=plan.python), case.catalog)
    if not isinstance(target, Target):
        return plan
    pins = applicable_requirements(case.request.pins, target.markers)
    asked = [pin for pin in pins if canonicalize_name(pin.name) not in CORE]
    added = beside(asked, plan.torch, plan.variant.removeprefix("nightly/"), target.platform)
    said = system_warnings((pin.name for pin in asked), target.os, plan.backend)
    lost = [row for pin in asked if (row := find_companion(pin.name)) and not computes_on(row.name, plan.backend)]
    text = _("{name} computes with {backends} alone, as far as is known, and not with {backend}.")
    idle = (text.format(name=row.name, backends=_titles(row), backend=plan.backend.title) for row in lost)
    return replace(
        plan,
        requirements=tuple(dict.fromkeys((*plan.requirements, *added.requires))),
        warnings=tuple(dict.fromkeys((*plan.warnings, *added.warnings, *idle, *said))),
        asked=tuple(name for name in plan.asked if name not in {row.name for row in lost}),
    )


def computes_on(name: str, backend: Backend) -> bool:
    """Return whether a package computes on a backend, or on the CPU beside it, as far as the tables tell."""
    row = find_companion(name)
    return row is None or not row.backends or bool({backend.value, Backend.CPU.value}.intersection(row.backends))


def _titles(row: Companion) -> str:
    return ", ".join(Backend(name).title for name in row.backends)


def system_warnings(names: Iterable[str], os: str, backend: Backend) -> tuple[Message, ...]:
    """Say what some packages need on the system, but for what torch needs as well."""
    needs = (need for name in names for need in system_needs(name, os, backend) if need.key != _NEEDED_BY_TORCH)
    return tuple(dict.fromkeys(sentences((need.text, need.help)) for need in needs))


def ranges_for(name: str, specifier: str) -> tuple[list[VersionRange], bool]:
    """List the known versions of a package that meet a specifier; where it allows only older ones, the oldest known.

    What was released before was made for a torch that is no newer. Returns as well whether that was guessed.
    """
    ranges = version_ranges(name)
    fitting = [one for one in ranges if can_overlap(specifier, one.versions)]
    oldest = min(ranges, key=lambda one: one.least, default=None)
    guessed = not fitting and oldest is not None and can_overlap(specifier, f"<{oldest.least}")
    return ([oldest] if oldest and guessed else fitting), guessed


def torch_bounds(requirement: Requirement, *, guess: bool = True) -> tuple[SpecifierSet, ...] | None:
    """Return the alternatives of torch that versions meeting a requirement go with, the newest versions' first.

    None where the tables know nothing of them, but for what may be guessed, or where their newest goes with any torch.
    """
    fitting, guessed = ranges_for(requirement.name, str(requirement.specifier))
    newest_first = sorted(fitting, key=lambda one: one.least, reverse=True)
    if not newest_first or not newest_first[0].torch or (guessed and not guess):
        return None
    alternatives = (alternative for one in newest_first for alternative in one.torch or ("",))
    return tuple(map(SpecifierSet, dict.fromkeys(alternatives)))


def constraints_for(torch: str, variant: str, platform: str) -> tuple[str, ...]:
    """Return constraints (PEP 508) that keep companions to a torch where their metadata would let any version in.

    They bound what these tables alone know: pairs, and the CUDA major of PyPI's wheels of a distribution that does not
    come from torch's own index. `torch` is a version, `variant` such as "cu130", `platform` such as "linux_x86_64".
    """
    found = {
        row.name: bounds_beside(row.name, torch) & _by_cuda(row, torch, variant, platform)
        for row in all_companions()
        if not row.only_source
    }
    return tuple(f"{name}{bounds}" for name, bounds in found.items() if str(bounds))


def cuda_major(torch: str, variant: str, platform: str) -> int | None:
    """Return the CUDA major that a build of torch computes with; None where it does not compute with CUDA."""
    tag = load_catalog().build_of(torch, variant, platform)
    return int(tag[2:4]) if tag.startswith("cu") and tag[2:4].isdigit() else None


def for_other_cuda(row: Companion, torch: str, variant: str, platform: str) -> tuple[VersionRange, ...]:
    """Return the versions whose wheel on PyPI, which would be taken, is known to be for another CUDA than torch's."""
    major = cuda_major(torch, variant, platform)
    if major is None or platform.partition("_")[0] not in row.cuda_systems:
        return ()
    if carried_by_torch_index(row.name, variant):
        return ()
    return tuple(one for one in row.ranges if one.cuda and major not in one.cuda)


def beside(requirements: Iterable[Requirement], torch: str, variant: str, platform: str) -> Added:
    """Return what has to go along with companions so that they compute on a build of torch, or why they will not.

    `variant` is such as "cu130", `platform` such as "linux_x86_64". Distributions that the tables do not know, and
    those whose wheels come from torch's own index, add nothing.
    """
    major = cuda_major(torch, variant, platform)
    parts = [
        part
        for need in requirements
        for row in with_underlying(need.name)
        for part in (_of_extras(row, need, torch, major), _of_wheels(row, need, torch, variant, platform))
    ]
    return Added(
        requires=tuple(dict.fromkeys(line for part in parts for line in part.requires)),
        warnings=tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
    )


def other_cuda(need: Requirement, torch: str, variant: str, platform: str) -> frozenset[int]:
    """Return the CUDA majors for which all wheels that may be taken are built, where torch computes with another.

    Empty where no versions are known that would serve torch's own: then only a warning can tell.
    """
    row, major = find_companion(need.name), cuda_major(torch, variant, platform)
    if row is None or not any(major in one.cuda for one in row.ranges):
        return frozenset()
    open_, wrong = _open(row, need, torch), for_other_cuda(row, torch, variant, platform)
    return frozenset(cuda for one in open_ for cuda in one.cuda) if all(one in wrong for one in open_) else frozenset()


def _of_extras(row: Companion, need: Requirement, torch: str, major: int | None) -> Added:
    """Warn of an extra that brings the libraries of another CUDA, which write the files of torch's."""
    text = _(
        "{name}[{extra}] brings libraries of CUDA {other}, which overwrite the CUDA {major} libraries of torch {torch}."
    )
    help_ = _("Ask for {name} without that extra.", name=row.name)
    wrong = [extra for extra in sorted(need.extras) if major and major not in row.extras.get(extra, (major,))]
    return Added(
        warnings=tuple(
            sentences(
                (
                    text.format(name=row.name, extra=extra, other=_cudas(row.extras[extra]), torch=torch, major=major),
                    help_,
                )
            )
            for extra in wrong
        )
    )


def _of_wheels(row: Companion, need: Requirement, torch: str, variant: str, platform: str) -> Added:
    """Return what helps where all wheels on PyPI that may be taken are for another CUDA, else warn of them."""
    other = for_other_cuda(row, torch, variant, platform)
    if not other:
        return Added()
    major, os = cuda_major(torch, variant, platform), platform.partition("_")[0]
    open_ = _open(row, need, torch)
    wrong = [one for one in open_ if one in other]
    if not wrong or len(wrong) < len(open_):
        return Added()
    said = {"name": row.name, "other": _cudas(max(wrong, key=lambda one: one.least).cuda), "major": major}
    way = row.beside_cuda.get(str(major))
    if way is None or os not in way.folders:
        text = _(
            "PyPI's wheel of {name} is built for CUDA {other}, and this torch for CUDA {major}: "
            "they may not work together."
        )
        help_ = _("If they do not, choose a torch build for CUDA {other}.")
        return Added(warnings=(sentences((text.format(**said), help_.format(**said))),))
    text = _(
        "{name} is built for CUDA {other}, and this torch for CUDA {major}: {name} also needs {packages}, and before a "
        "program uses it on the GPU, {variable} must include the folder {folder} from the environment's site-packages."
    )
    where = {"packages": ", ".join(way.requires), "folder": way.folders[os], "variable": _VARIABLES[os]}
    return Added(way.requires, (text.format(**said, **where),))


def _open(row: Companion, need: Requirement, torch: str) -> list[VersionRange]:
    """Return the versions of a companion that a requirement of it, or of what computes with it, may take."""
    wanted = str(need.specifier) if canonicalize_name(need.name) == row.name else ""
    return [one for one in row.ranges if one.goes_with(torch) and can_overlap(one.versions, wanted)]


def _cudas(majors: Iterable[int]) -> str:
    return "/".join(map(str, majors))


def _by_cuda(row: Companion, torch: str, variant: str, platform: str) -> SpecifierSet:
    """Return the bounds that leave out wheels for another CUDA major, where some are known to be for this one."""
    good = [one for one in row.ranges if cuda_major(torch, variant, platform) in one.cuda]
    return bounds_between(for_other_cuda(row, torch, variant, platform), good)

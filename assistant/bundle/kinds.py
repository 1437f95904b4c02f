"""From machines to kinds: those that get the same are planned, looked up and resolved once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from assistant.bundle.manifest import Without
from assistant.bundle.platforms import oldest, own_plan, own_pythons, platform_of, system_of
from assistant.i18n import Message, Text, _, ngettext
from assistant.install import Resolution, Tools, find_uv, resolve_for
from assistant.model.errors import NothingFits, WorkFailed
from assistant.model.machine import Machine
from assistant.model.plan import Plan, Planning
from assistant.model.record import replace
from assistant.plan import PlanInputs, make_plans, nothing_fits
from assistant.session.joint import decided
from assistant.views import rejection_reason

AT_ONCE = 4  # chosen: resolvers that run side by side; they wait for the network
Report = Callable[[Message], object]


class Wanted(NamedTuple):
    """A machine that is to be served: its name, and its facts with what is asked for on it."""

    name: str
    case: PlanInputs


class Resolved(NamedTuple):
    """Machines that get the same: their names, the system that the lock is for, the plan, and every file of it."""

    names: tuple[str, ...]
    machine: Machine
    plan: Plan
    resolution: Resolution


class Own(NamedTuple):
    """What the assistant itself needs on a platform with a Python."""

    platform: str
    python: str
    resolution: Resolution


class Kinds(NamedTuple):
    """All kinds, and the machines that get nothing; `failed` are those of them for which the work itself failed."""

    kinds: tuple[Resolved, ...]
    without: tuple[Without, ...]
    failed: tuple[str, ...] = ()


def kinds_of(wanted: Sequence[Wanted], tools: Tools, report: Report) -> Kinds:
    """Plan for every machine, as the sources have it, and resolve each kind's packages.

    Raises `NothingFits` where no machine has a plan, and `Cancelled`.
    """
    find_uv()  # here and not in the threads: sysconfig, which it asks, is not ready for two at once in Python 3.11
    planned, without = _planned(wanted)
    report(ngettext("Resolving for {count} kind of machine", "Resolving for {count} kinds of machine", len(planned)))
    kinds: dict[object, Resolved] = {}
    failed: list[str] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for names, found in zip(
            planned.values(), pool.map(lambda group: _resolved(group[0].case, tools), planned.values()), strict=True
        ):
            labels = tuple(one.name for one in names)
            if isinstance(found, WorkFailed | NothingFits):
                without += [Without(machine=name, why=found.message) for name in labels]
                failed += [] if isinstance(found, NothingFits) else labels
                continue
            machine, plan, resolution = found
            same = _kind_of(machine, plan)
            before = kinds[same].names if same in kinds else ()
            kinds[same] = Resolved((*before, *labels), machine, plan, resolution)
    if not kinds and not failed:
        raise NothingFits(_("No PyTorch wheel fits any of these machines."), hint=_listed(without))
    return Kinds(tuple(kinds.values()), tuple(without), tuple(failed))


def own_packages(kinds: Iterable[Resolved], tools: Tools) -> tuple[Own, ...]:
    """Resolve what the assistant itself needs on every platform, with each Python that it may meet there.

    Raises `WorkFailed` where that cannot be had.
    """
    platforms: dict[str, list[Resolved]] = {}
    for kind in kinds:
        platforms.setdefault(platform_of(kind.machine), []).append(kind)
    jobs = [
        (platform, python, system_of(oldest(kind.machine for kind in group)))
        for platform, group in platforms.items()
        for python in own_pythons(kind.plan.python for kind in group)
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda job: resolve_for(own_plan(job[1]), job[2], tools, also=()), jobs)
        return tuple(Own(job[0], job[1], one) for job, one in zip(jobs, found, strict=True))


def _planned(wanted: Sequence[Wanted]) -> tuple[dict[object, list[Wanted]], list[Without]]:
    """Put the machines together that get the same as far as the catalogue tells, before anything is asked for."""
    groups: dict[object, list[Wanted]] = {}
    without: list[Without] = []
    for one in wanted:
        planning = make_plans(*one.case)
        if planning.choice is None:
            without.append(Without(machine=one.name, why=_why_none(planning)))
        else:
            groups.setdefault((_kind_of(one.case.machine, planning.choice), repr(one.case.request)), []).append(one)
    return groups, without


def _kind_of(machine: Machine, plan: Plan) -> tuple[object, ...]:
    """Return what machines that get the same have in common."""
    # A lock for glibc 2.28 also fits 2.39, but not the other way round.
    release = machine.os_version if machine.os == "macos" else machine.glibc
    system = (machine.os, bool(machine.wsl), machine.arch, machine.libc, release)
    build = (plan.backend, plan.variant, plan.torch, plan.python, plan.index_url)
    return (*system, *build, plan.requirements, tuple(sorted(plan.env.items())))


def _why_none(planning: Planning) -> Text:
    """Say why a machine has no plan."""
    return rejection_reason(planning.rejected[0]) if planning.rejected else nothing_fits(planning).message


def _resolved(case: PlanInputs, tools: Tools) -> tuple[Machine, Plan, Resolution] | WorkFailed | NothingFits:
    """Plan for a machine as the sources have it, and resolve; return the failure where that cannot be."""
    machine = system_of(case.machine)
    try:
        planning = decided(case, tools)
        if planning.choice is None:
            return NothingFits(_why_none(planning))
        plan = replace(planning.choice, index_url=tools.sources.index_url or planning.choice.index_url)
        return machine, plan, resolve_for(plan, case.machine, tools)
    except (WorkFailed, NothingFits) as error:
        return error


def _listed(without: Sequence[Without]) -> Text:
    return without[0].why if without else _("Name at least one.")

"""From machines to kinds, of which each gets the same; and from a machine back to the kind that it gets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import requires
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement

from assistant.api import AssistantError, BadInput, Message, NothingFits, Text, WorkFailed, _, ngettext, replace
from assistant.api.records import Backend, Machine, Plan, Planning, Request
from assistant.api.steps import (
    USUAL_PYTHON,
    Catalog,
    PlanInputs,
    RemotePlan,
    Resolution,
    Tools,
    find_uv,
    load_catalog,
    make_plans,
    nothing_fits,
    plan_request,
    plan_title,
    rejection_reason,
)
from assistant.api.system import NAME, running
from assistant_addons.classroom.folder import PYTHONS, Bundle, Kind, Without

_OLDEST = (3, 11)  # the assistant's own: `requires-python`


def platform_of(machine: Machine) -> str:
    """Return a machine's platform as the start scripts name it: linux-aarch64, macos-arm64, windows-x86_64.

    An unknown system counts as Linux, an unknown processor as x86_64, on macOS as arm64.
    """
    system = machine.os or "linux"
    arch = (machine.arch or ("arm64" if system == "macos" else "x86_64")).lower()
    if arch in {"aarch64", "arm64"}:
        return f"{system}-{'aarch64' if system == 'linux' else 'arm64'}"
    return f"{system}-{'x86_64' if arch == 'amd64' else arch}"


def system_of(machine: Machine) -> Machine:
    """Return what a lock depends on: system, architecture, C library, and the release of macOS; nothing else."""
    release = machine.os_version if machine.os == "macos" else None
    return Machine(
        os=machine.os or "linux",
        os_version=release,
        arch=machine.arch,
        wsl=machine.wsl,
        glibc=machine.glibc,
        libc=machine.libc,
    )


def oldest(machines: Iterable[Machine]) -> Machine:
    """Return the machine with the oldest system, whose wheels run on the others, too; an unknown one is the oldest."""
    return min(machines, key=lambda one: release(one.os_version if one.os == "macos" else one.glibc))


def release(text: str | None) -> tuple[int, ...]:
    """Read the numbers of a release ("macOS 14.6", "2.39"); () where it is not known."""
    found = re.search(r"\d+(\.\d+)*", text or "")
    return tuple(map(int, found[0].split("."))) if found else ()


def own_pythons(pythons: Iterable[str]) -> tuple[str, ...]:
    """Return, oldest first, those of some Pythons that the assistant itself can run on; `USUAL_PYTHON` without any."""
    fit = {python for python in pythons if release(python) >= _OLDEST and not python.endswith("t")}
    return tuple(sorted(fit, key=release)) or (USUAL_PYTHON,)


def own_plan(python: str) -> Plan:
    """Return a plan of what the assistant's core itself needs, with uv and pip, for the resolver; it has no torch."""
    lines = requires(NAME) or ()
    needs = [line for line in lines if "extra ==" not in line]
    uv = next(f"uv{need.specifier}" for need in map(Requirement, lines) if need.name == "uv")
    return Plan(backend=Backend.CPU, variant="", torch="", python=python, requirements=(*needs, uv, "pip"))


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
    """Return machines grouped into kinds that get the same, with plans and packages that the sources can provide.

    Machines for which this fails are in `without`. Progress goes to `report`. Raises `NothingFits` if no
    machine has a plan, `BadInput` and `Cancelled`.
    """
    find_uv()  # here and not in the threads: sysconfig, which it asks, is not ready for two at once in Python 3.11
    planned, without = _grouped(wanted)
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
        raise NothingFits(_("No PyTorch wheel fits any of these machines."), hint=without[0].why)
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
        found = pool.map(lambda job: RemotePlan(own_plan(job[1]), job[2]).resolve(tools, also=()), jobs)
        return tuple(Own(job[0], job[1], one) for job, one in zip(jobs, found, strict=True))


def _grouped(wanted: Sequence[Wanted]) -> tuple[dict[object, list[Wanted]], list[Without]]:
    """Group the machines that get the same by the catalogue alone; return the groups, and machines without a plan."""
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
    """Plan for a machine with what the sources can provide, and resolve; a failure is returned, `BadInput` raised.

    The machine in the result is reduced to its system (`system_of`).
    """
    machine = system_of(case.machine)
    try:
        planning = plan_request(case, tools)
        if planning.choice is None:
            return NothingFits(_why_none(planning))
        plan = replace(planning.choice, index_url=tools.sources.index_url or planning.choice.index_url)
        return machine, plan, RemotePlan(plan, case.machine).resolve(tools)
    except (WorkFailed, NothingFits) as error:
        return error


def choose(bundle: Bundle, machine: Machine, *, backend: Backend | None = None, key: str = "") -> Kind:
    """Return the kind to install on a machine: the newest that runs there, of the planned variant if possible.

    All are of the backend that the planner chooses here, or of `backend`. With `key`, the kind of that name is
    returned unchecked. Raises `NothingFits` if the planner has no plan here, or the bundle no kind for it, and
    `BadInput` for a key that the bundle does not have.
    """
    if key:
        named = {kind.key: kind for kind in bundle.kinds}
        if key not in named:
            hint = _("Choose from: {keys}.", keys=", ".join(named))
            raise BadInput(_("This bundle has no kind {key}.", key=key), hint=hint)
        return named[key]
    catalog = load_catalog()
    planning = make_plans(machine, catalog, Request(backend=backend))
    best = planning.choice
    if best is None:
        raise nothing_fits(planning)
    fitting = [kind for kind in bundle.kinds if kind.plan.backend is best.backend]
    runs = [kind for kind in fitting if _carries(kind.machine, machine) and _planned(kind.plan, machine, catalog)]
    if not runs:
        raise NothingFits(
            _(
                "This bundle holds nothing for this machine, which needs {plan}. It holds: {kinds}.",
                plan=plan_title(best),
                kinds=", ".join(kind.key for kind in bundle.kinds),
            ),
            hint=_(
                "Make the bundle again with this machine among the others, or choose another backend.",
                option="--backend cpu",
            ),
        )
    return max(runs, key=lambda kind: (kind.plan.variant == best.variant, release(kind.plan.torch)))


def without_indexes(plan: Plan) -> Plan:
    """Return a plan whose packages all come from the bundle's folder."""
    return replace(plan, index_url=None, indexes=(), links=(), wheel=None)


def unpack_python(folder: Path, kind: Kind) -> None:
    """Install the Python of a kind for uv, which then finds it by itself, if the bundle carries one for its platform.

    A failure is ignored here: the installation reports that there is no such Python.
    """
    place = folder / PYTHONS / kind.platform
    if place.is_dir():
        words = [find_uv(), "python", "install", "--no-config", "--quiet", kind.python]
        known = {"UV_PYTHON_INSTALL_MIRROR": place.as_uri(), "UV_PYTHON_INSTALL_BIN": "0"}
        with running(words, environment={**known, "UV_PYTHON_INSTALL_REGISTRY": "0"}) as child:
            list(child)


def _carries(made_for: Machine, machine: Machine) -> bool:
    """Return whether a lock for one system serves another: the same platform, and a C library or macOS no older."""
    if platform_of(made_for) != platform_of(machine) or bool(made_for.wsl) != bool(machine.wsl):
        return False
    if machine.os == "macos":
        return release(machine.os_version) >= release(made_for.os_version)
    return not machine.glibc or release(machine.glibc) >= release(made_for.glibc)


def _planned(plan: Plan, machine: Machine, catalog: Catalog) -> bool:
    """Return whether the planner offers this build of torch here if it is asked for.

    The release alone may have a better build; and not every build has a label ("+cu130") to ask for.
    """
    for pin in (f"torch=={plan.torch}", f"torch=={plan.torch}+{plan.variant}"):
        asked = Request(backend=plan.backend, python=plan.python, pins=(pin,))
        with suppress(AssistantError, InvalidRequirement):
            offered = make_plans(machine, catalog, asked).plans
            if any((one.variant, one.torch) == (plan.variant, plan.torch) for one in offered):
                return True
    return False

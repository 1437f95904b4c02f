"""Applies an exported setup to this machine, by its lock or by a new plan, and compares it with what is there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import Catalog
from assistant.catalog.catalog import largest_bundle_in
from assistant.catalog.companions import takes_device_extra
from assistant.export import Config, Drift, machine_drift, package_drift, plan_drift, report_drift
from assistant.host.base import Host
from assistant.i18n import _
from assistant.install import EnvironmentFolder, Resolution, Site
from assistant.model.errors import AssistantError, BadInput, WorkFailed
from assistant.model.machine import Machine
from assistant.model.plan import Plan, Request, name_of
from assistant.model.record import Record, replace
from assistant.model.report import Report
from assistant.plan import NIGHTLY, brings_cuda, make_plans


class Approach(Record, frozen=True, omit_defaults=False):
    """How a configuration is applied here: its own `plan` exactly, or, where that is None, a new one for `request`.

    `differs` is what has changed on the machine.
    """

    request: Request
    plan: Plan | None = None
    differs: tuple[Drift, ...] = ()


def choose_approach(config: Config, here: Machine, catalog: Catalog, *, anew: bool = False) -> Approach:
    """Return how to apply a configuration: its own plan if the hardware is the same and that is still offered.

    Otherwise, and if `anew`, it is a request for a new plan, with the same versions of Python and torch unless these
    cost a better backend. A plan that was not the best one on its machine (a CPU build beside a GPU, say) was a
    deliberate choice: its backend is requested if this machine has it.
    """
    plan, differs = config.plan, machine_drift(config.machine, here)
    pinned = Request(python=plan.python, pins=(f"torch=={plan.torch}",))
    if not plan.torch:  # a project's own packages alone
        pinned = Request(python=plan.python, pins=plan.requirements, overrides=plan.overrides, name=plan.name)
    offered = _plans(here, catalog, pinned)
    fits = plan.variant.startswith(NIGHTLY) or not plan.torch or any(_is_alike(plan, other) for other in offered)
    if fits and not anew and config.same_hardware(here):
        locked, there = {*(config.hashes or config.environment.packages), "pip"}, config.environment.packages
        beside = [f"{name}=={version}" for name, version in there.items() if name not in locked]  # later, or by hand
        exact = replace(plan, requirements=(*plan.requirements, *beside))
        return Approach(request=pinned, plan=exact, differs=differs)
    if not plan.torch:
        return Approach(request=pinned, differs=differs)
    then = _plans(config.machine, catalog, pinned)
    deliberate = bool(then) and not _is_alike(plan, then[0]) and any(plan.backend is other.backend for other in offered)
    asked = {name_of(line) for line in plan.requirements}
    free = Request(backend=plan.backend if deliberate else None, bundle=plan.recipe or largest_bundle_in(asked))
    best = next((other.backend for other in _plans(here, catalog, free)), None)
    tried = (replace(free, python=pinned.python, pins=pinned.pins), replace(free, python=pinned.python), free)
    possible = (request for request in tried for other in _plans(here, catalog, request)[:1] if other.backend is best)
    return Approach(request=next(possible, free), differs=differs)  # no pin is worth a GPU


def unknown_requirements(plan: Plan, catalog: Catalog, trusted: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the packages, with their extras, that a plan requires and that are neither the catalogue's nor `trusted`.

    A name that only looks like a known one is unknown: it is compared as installers read it, letter by letter.
    """
    accepted = {_name_with_extras(Requirement(line)) for line in trusted}
    targets = {f"device-{gfx}" for gfx in catalog.amd_targets}
    unknown = []
    for need in map(Requirement, plan.requirements):
        name = canonicalize_name(need.name)
        extras = targets if takes_device_extra(name) else set()
        if name not in catalog.packages or need.url or not need.extras <= extras:
            unknown.append(_name_with_extras(need))
    return tuple(name for name in dict.fromkeys(unknown) if name not in accepted)


def _name_with_extras(need: Requirement) -> str:
    extras = f"[{','.join(sorted(need.extras))}]" if need.extras else ""
    return canonicalize_name(need.name) + extras


def check_lock(config: Config, resolution: Resolution) -> None:
    """Raise `WorkFailed` if the resolved packages differ from the configuration's, in a version or a file's hash."""
    digests = {package.name: package.sha256 for package in resolution.packages}
    found = package_drift(config.environment.packages, resolution.versions, (config.hashes, digests))
    if found:
        raise WorkFailed(
            _(
                "The locked packages are not available as they were: {differences}.",
                differences="; ".join(drift.text for drift in found[:5]),
            ),
            hint=_("Restore the source that they came from, or make a new plan.", option="--anew"),
        )


def find_exported_environment(config: Config, target: str, last: str) -> Path | None:
    """Return the environment of a configuration: `target`, its own, else one that the assistant made for such a plan.

    Its own has the folder's name and the kernel that the configuration names, and may be gone. Such a plan has the same
    backend, torch and Python. Of several the one of the configuration's name is taken, else the one at the path `last`.
    That path is only compared, never opened. Returns None if there is none; raises `BadInput` for a `target` that is no
    environment, and if several fit.
    """
    if target:
        folder = Path(target).expanduser().absolute()
        if folder.exists() and not EnvironmentFolder(folder).exists:
            raise EnvironmentFolder(folder).not_an_environment_error()
        return folder if folder.exists() else None
    own = EnvironmentFolder.of_kernel(config.environment.kernel or "")
    if own and config.is_called(own.path):
        return own.path if own.exists else None
    plan = config.plan
    asked = (plan.backend, plan.torch, plan.python)
    fitting = [
        made.path
        for made in EnvironmentFolder.list_made()
        if (marker := made.marker) and (marker.plan.backend, marker.plan.torch, marker.plan.python) == asked
    ]
    lasts = [folder for folder in fitting if str(folder) == last]
    for group in (list(filter(config.is_called, fitting)), lasts, fitting):
        if len(group) == 1:
            return group[0]
    if fitting:
        raise BadInput(
            _("Several environments fit this configuration: {paths}.", paths=", ".join(map(str, fitting))),
            hint=_("Name the one that you mean.", option="--target"),
        )
    return None


def drifts(config: Config, here: Machine, target: Path | None, report: Report | None, host: Host) -> tuple[Drift, ...]:
    """Return how things differ from a configuration: the machine, packages in `target`, the checks of a `report`.

    Without `target`, the missing environment is the difference; without `report`, checks are not compared. If `host`
    replays a recording, only the machine is. The Python of `target` is run; raises `BadInput` if it does not answer.
    """
    found = machine_drift(config.machine, here)
    if host.replayed:
        return found  # the environments here are not that machine's
    if target is None:
        return (*found, Drift(kind="environment", name="", was=config.environment.path))
    found += package_drift(config.environment.packages, Site.ask(target, host).versions)
    return found + (report_drift(config.verification, report) if report else ())


def plan_changes(config: Config, plan: Plan, resolution: Resolution | None) -> tuple[Drift, ...]:
    """Return how a new plan differs from the configuration's; packages are compared only if they are resolved."""
    packages = package_drift(config.environment.packages, resolution.versions) if resolution else ()
    return plan_drift(config.plan, plan) + packages


def _plans(machine: Machine, catalog: Catalog, request: Request) -> tuple[Plan, ...]:
    """Return the plans for a request, best first; () if nothing fulfils it or it cannot be read."""
    try:
        return make_plans(machine, catalog, request).plans
    except AssistantError:
        return ()


def _is_alike(plan: Plan, other: Plan) -> bool:
    same_build = plan.variant == other.variant or brings_cuda(plan)
    return (plan.backend, plan.torch) == (other.backend, other.torch) and same_build

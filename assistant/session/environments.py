"""The environments on this machine: found, judged by what they hold, and looked into when the user asks."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from packaging.utils import canonicalize_name

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.host.base import Host
from assistant.host.files import may_write
from assistant.host.folders import here, is_own_environment
from assistant.host.lock import Lock
from assistant.i18n import Text, _
from assistant.install import (
    FOREIGN_PIP,
    Difference,
    Distribution,
    Move,
    Site,
    Spot,
    Tools,
    check_folder,
    dead,
    environments_with_kernels,
    find_environments,
    full_path,
    guards,
    interpreter,
    is_closed,
    look_at,
    marked_environments,
    read_marker,
    read_site,
    replaced,
    size_of,
    spot_at,
    stamp_of,
    torch_build,
    undoable,
)
from assistant.model.errors import BadInput
from assistant.model.event import Progress, Step
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace
from assistant.model.report import Environment, Level, Report
from assistant.plan import make_plans
from assistant.session.doctor import findings_of
from assistant.session.state import State, Surveyed
from assistant.session.survey import Known, Survey
from assistant.verify import raised, verify

_OF_THE_SHELL = {FOREIGN_PIP, "pythonpath-leak"}  # these are about the shell that asks, not about the environment


def known_of(spot: Spot, site: Site, host: Host, machine: Machine, kernels: Iterable[str] = ()) -> Known:
    """Return what is known of an environment by what it holds, with its findings."""
    marker, versions = read_marker(spot.path), site.versions
    own = is_own_environment(spot.path)
    return Known(
        path=str(spot.path),
        name=spot.name,
        kind=spot.kind,
        of=spot.of,
        python=site.version,
        torch=versions.get("torch", ""),
        backend=_backend(site, host, machine),
        findings=() if own else judged_site(site, host, machine),
        kernels=tuple(kernels),
        made=marker is not None,
        own=own,
        others=_is_others(str(spot.path)),
        undo=undoable(spot.path),
    )


def _is_others(path: str) -> bool:
    """Return whether an environment stands that this user may not change."""
    return Path(path).is_dir() and not may_write(Path(path))


def may_change(path: str) -> bool:
    """Return whether an environment is one to change: not others', nor the assistant's own, which is made anew."""
    return not (is_own_environment(path) or _is_others(path))


def judged_after(difference: Difference, host: Host, machine: Machine, site: Site | None = None) -> tuple[Finding, ...]:
    """Judge an environment as a change would leave it, or as it has (`site`)."""
    before = difference.site
    if site is None:
        moving = {move.name: move for move in difference.moves}
        stays = [one for one in before.distributions if canonicalize_name(one.name) not in moving]
        comes = [
            Distribution(name=name, version=move.after, place=before.purelib, requires=_requires(before, move))
            for name, move in moving.items()
            if move.after
        ]
        site = replace(before, distributions=(*stays, *comes))
    return judged_site(site, host, machine, guarded=False)


def _requires(site: Site, move: Move) -> tuple[str, ...]:
    """Return what a package requires that comes again as it is; of another version nothing is known."""
    same = (one for one in site.own if (canonicalize_name(one.name), one.version) == (move.name, move.after))
    return next((one.requires for one in same), ())


def judged_site(site: Site, host: Host, machine: Machine, *, guarded: bool = True) -> tuple[Finding, ...]:
    """Judge an environment: whether its Python is there, what it holds, what was replaced since it was made.

    Without `guarded` its constraints are not asked: a change writes them anew.
    """
    marker = read_marker(Path(site.prefix))
    if gone := dead(site, host):
        return (gone,)
    chosen = marker is not None and marker.plan.backend is Backend.CPU
    gpu = not chosen and any(plan.backend is not Backend.CPU for plan in make_plans(machine, load_catalog()).plans)
    pins = host.read(str(guards(Path(site.prefix))[0]))
    changed = replaced(Path(site.prefix), pins.text, site.versions) if pins and guarded else None
    found = (*filter(None, (changed,)), *findings_of(site, machine, gpu_plan=gpu))
    return tuple(finding for finding in found if finding.wrong and finding.key not in _OF_THE_SHELL)


def _backend(site: Site, host: Host, machine: Machine) -> Backend | None:
    """Return what torch was built for; None without torch, or where that cannot be told."""
    if "torch-directml" in site.versions:
        return Backend.DIRECTML
    built = torch_build(site, host).partition(" ")[0]
    if built == "cpu" and machine.os == "macos" and machine.arch == "arm64":
        return Backend.MPS
    return {"cuda": Backend.CUDA, "hip": Backend.ROCM, "xpu": Backend.XPU, "cpu": Backend.CPU}.get(built)


def surveyed(state: State, tools: Tools) -> Surveyed:
    """Find and judge the environments on this machine; those that the user named before stay in the list."""
    tools.sink(Progress(step=Step.DETECT, text=_("Looking for environments")))
    before = state.environments.survey or Survey()
    faults = {folder: fault for folder in before.folders if (fault := _fault(folder))}
    folders = (folder for folder in before.folders if folder not in faults)
    found = survey(tools.host, machine_here(state, tools.host), folders)
    checked = {one.path: one for one in before.environments if one.checked}
    rows = (_as_checked(one, checked.get(one.path)) for one in found.environments)
    return Surveyed(survey=replace(found, environments=tuple(rows), notes=tuple(faults.values())))


def _fault(folder: str) -> Finding | None:
    """Return what is wrong with a folder that the user named; None for one that can be searched."""
    text: Text = _("{folder} is not a folder.", folder=folder)
    hint: Text = ""
    try:
        if Path(check_folder(folder)).is_dir():
            return None
    except BadInput as error:
        text, hint = error.message, error.hint
    remedies = (Remedy(text=hint),) if hint else ()
    return Finding(key="no-folder", severity=Severity.WARNING, text=text, remedies=remedies)


def _as_checked(now: Known, before: Known | None) -> Known:
    """Keep what a check has found as long as the environment holds the same."""
    if before is None or not before.stamp or before.stamp != stamp_of(interpreter(Path(now.path))):
        return now
    return replace(before, kernels=now.kernels, undo=now.undo)


def looked(state: State, tools: Tools) -> Surveyed:
    """Look into the environment that the user chose, and let it compute where it has torch."""
    machine, before = machine_here(state, tools.host), state.environments.survey or Survey()
    tools.sink(Progress(step=Step.VERIFY, text=_("Reading what {path} holds", path=state.environments.picked)))
    known, site = looked_into(state.environments.picked, tools.host, machine, before.of(state.environments.picked))
    if report := _verified_site(known, site, tools):
        wrong = tuple(finding for finding in raised(report) if finding.wrong)
        known = replace(known, findings=(*known.findings, *wrong), device=report.device if report.usable else "")
    return Surveyed(survey=before.with_known(replace(known, size=size_of(Path(known.path)))))


def machine_here(state: State, host: Host) -> Machine:
    """Return the machine at hand, whichever recorded one is looked at meanwhile."""
    real = state.aside if state.machine else state
    return real.detection.machine if real and real.detection else detect(host).machine


def survey(host: Host, machine: Machine, folders: Iterable[str] = ()) -> Survey:
    """Find the environments on this machine and judge each by its files; nothing in them is started."""
    marked, kernels = dict(marked_environments()), environments_with_kernels()
    named = tuple(str(full_path(folder)) for folder in folders)
    found = find_environments(host, here(), marked, map(Path, named))
    rows = []
    for spot in found.spots:
        row = Known(path=str(spot.path), name=spot.name, kind=spot.kind, of=spot.of, unread=True)
        with suppress(OSError, ValueError):  # a stranger's files may hold anything
            if not is_closed(spot.path, host):
                row = known_of(spot, read_site(spot.path, host), host, machine, kernels.get(spot.path, ()))
        rows.append(row)
    return Survey(environments=tuple(rows), folders=named, cut_short=found.cut_short)


def looked_into(path: str, host: Host, machine: Machine, before: Known | None = None) -> tuple[Known, Site | None]:
    """Ask an environment's own Python what it holds, and judge that; None for the second where it does not answer.

    Raises `BadInput` for a folder that is no environment.
    """
    spot = spot_at(path)
    spot = Spot(spot.path, before.name, before.kind, before.of) if before else spot
    kernels = environments_with_kernels().get(spot.path, ())
    now = datetime.now(UTC).isoformat(timespec="seconds")
    site = None
    try:
        site = look_at(spot.path, host)
        known = known_of(spot, site, host, machine, kernels)
    except BadInput as error:
        known = known_of(spot, read_site(spot.path, host), host, machine, kernels)
        if not known.findings or known.findings[0].key != "environment-without-python":
            known = replace(known, findings=(unanswered(error), *known.findings))
    return replace(known, checked=now, stamp=site.stamp if site else stamp_of(interpreter(spot.path))), site


def unanswered(error: BadInput) -> Finding:
    """Return the finding that an environment's Python does not answer."""
    return Finding(key="python-does-not-answer", severity=Severity.ERROR, text=error.message)


def _verified_site(known: Known, site: Site | None, tools: Tools) -> Report | None:
    """Run the quick checks on the device that an environment's torch is built for; None where there is none to run."""
    if not (site and known.torch) or known.own:
        return None
    marker = read_marker(Path(known.path))
    made = marker.environment if marker else Environment(path=known.path, python=site.python)
    device = (known.backend or Backend.CPU).value
    return run_checks(replace(made, python=site.python), device, marker.plan if marker else None, tools, traceless=True)


def run_checks(
    made: Environment,
    device: str,
    plan: Plan | None,
    tools: Tools,
    *,
    level: Level = "quick",
    lock: Lock | None = None,
    traceless: bool = False,
) -> Report:
    """Verify an environment on a device: the checks, and the imports of what its plan was made for.

    The processes hold `lock`, where they work in an installation.
    """
    return verify(
        made.python,
        device,
        tools.sink,
        tools.cancel,
        level=level,
        packages=plan.to_import(made.packages) if plan else (),
        recipe=plan.recipe if plan else "",
        environment=plan.env if plan else {},
        traceless=traceless,
        lock=lock,
    )


def kernel_of(known: Known) -> tuple[Environment, Plan]:
    """Return an environment with its kernel, and what it was planned for, or is as good as."""
    kernel, marker = known.kernels[0], read_marker(Path(known.path))
    if marker:
        return replace(marker.environment, kernel=kernel), marker.plan
    made = Environment(path=known.path, python="", kernel=kernel)
    return made, Plan(backend=known.backend or Backend.CPU, variant="", torch=known.torch, python=known.python)

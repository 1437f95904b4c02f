"""The environments on this machine: found, judged by what their files say, looked into when the user asks."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from packaging.utils import canonicalize_name

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.host.base import Host
from assistant.host.folders import here, is_own_environment
from assistant.i18n import _
from assistant.install import (
    Difference,
    Distribution,
    Marker,
    Move,
    Site,
    Spot,
    Tools,
    dead,
    environments_with_kernels,
    find_environments,
    guards,
    look_at,
    marked_environments,
    read_marker,
    read_site,
    replaced,
    size_of,
    spot_at,
    torch_build,
    undoable,
)
from assistant.model.errors import BadInput
from assistant.model.event import Progress, Step
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Machine
from assistant.model.plan import Backend
from assistant.model.record import replace
from assistant.plan import make_plans
from assistant.session.doctor import findings_of
from assistant.session.state import State, Surveyed
from assistant.session.survey import Known, Survey
from assistant.verify import raised, verify

_OF_THE_SHELL = {"foreign-pip", "pythonpath-leak"}  # they say nothing of an environment, but of who asks


def surveyed(state: State, tools: Tools) -> Surveyed:
    """Find and judge the environments on this machine; those that the user named before stay in the list."""
    tools.sink(Progress(step=Step.DETECT, text=_("Looking for environments")))
    before = state.survey or Survey()
    found = survey(tools.host, machine_here(state, tools.host), before.folders)
    checked = {one.path: one for one in before.environments if one.checked}
    rows = (_as_checked(one, checked.get(one.path)) for one in found.environments)
    return Surveyed(survey=replace(found, environments=tuple(rows)))


def _as_checked(now: Known, before: Known | None) -> Known:
    """Keep what a check has found as long as the environment holds the same."""
    same = before and (before.python, before.torch, before.undo) == (now.python, now.torch, now.undo)
    return replace(now, checked=before.checked, size=before.size, findings=before.findings) if before and same else now


def looked(state: State, tools: Tools) -> Surveyed:
    """Look into the environment that the user chose, and let it compute where it has torch."""
    machine, before = machine_here(state, tools.host), state.survey or Survey()
    tools.sink(Progress(step=Step.VERIFY, text=_("Asking {path} what it holds", path=state.picked)))
    known, site = looked_into(state.picked, tools.host, machine, before.of(state.picked))
    if site and known.torch and not known.own:
        known = _verified(known, site, tools)
    return Surveyed(survey=before.with_known(replace(known, size=size_of(Path(known.path)))))


def machine_here(state: State, host: Host) -> Machine:
    """Return the machine at hand, whichever recorded one is looked at meanwhile."""
    real = state.aside if state.machine else state
    return real.detection.machine if real and real.detection else detect(host).machine


def survey(host: Host, machine: Machine, folders: Iterable[str] = ()) -> Survey:
    """Find the environments on this machine and judge each by its files; nothing in them is started."""
    marked, kernels = dict(marked_environments()), environments_with_kernels()
    named = tuple(str(Path(folder).expanduser().absolute()) for folder in folders)
    found = find_environments(host, here(), marked, map(Path, named))
    rows = []
    for spot in found.spots:
        row = Known(path=str(spot.path), name=spot.name, kind=spot.kind, of=spot.of, unread=True)
        with suppress(OSError, ValueError):  # a stranger's files may hold anything
            row = known_of(spot, read_site(spot.path, host), host, machine, kernels.get(spot.path, ()))
        rows.append(row)
    return Survey(environments=tuple(rows), folders=named, cut_short=found.cut_short)


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
        findings=() if own else _judged(site, marker, host, machine),
        kernels=tuple(kernels),
        made=marker is not None,
        own=own,
        undo=undoable(spot.path),
    )


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
            silent = Finding(key="python-does-not-answer", severity=Severity.ERROR, text=error.message)
            known = replace(known, findings=(silent, *known.findings))
    return replace(known, checked=now), site


def _verified(known: Known, site: Site, tools: Tools) -> Known:
    """Run the quick checks on the device that its torch is built for, and add what they find."""
    device = (known.backend or Backend.CPU).value
    report = verify(site.python, device, tools.sink, tools.cancel, traceless=True)
    wrong = tuple(finding for finding in raised(report) if finding.wrong)
    return replace(known, findings=(*known.findings, *wrong), device=device if report.usable else "")


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
    return _judged(site, read_marker(Path(before.prefix)), host, machine, guarded=False)


def _requires(site: Site, move: Move) -> tuple[str, ...]:
    """Return what a package requires that comes again as it is; of another version nothing is known."""
    same = (one for one in site.own if (canonicalize_name(one.name), one.version) == (move.name, move.after))
    return next((one.requires for one in same), ())


def _judged(
    site: Site, marker: Marker | None, host: Host, machine: Machine, *, guarded: bool = True
) -> tuple[Finding, ...]:
    """Judge an environment: whether its Python is there, what it holds, what was replaced since it was made.

    Without `guarded` its constraints are not asked: a change writes them anew.
    """
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

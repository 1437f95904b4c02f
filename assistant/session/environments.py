"""The environments on this machine: found, judged by what their files say, looked into when the user asks."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from assistant.detect import detect
from assistant.host.base import Host
from assistant.host.folders import here
from assistant.i18n import Text, _
from assistant.install import (
    Site,
    Spot,
    Tools,
    check_folder,
    environments_with_kernels,
    find_environments,
    full_path,
    interpreter,
    is_closed,
    look_at,
    marked_environments,
    read_marker,
    read_site,
    size_of,
    spot_at,
    stamp_of,
)
from assistant.model.errors import BadInput
from assistant.model.event import Progress, Step
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace
from assistant.model.report import Environment, Report
from assistant.session.judgement import known_of
from assistant.session.state import State, Surveyed
from assistant.session.survey import Known, Survey
from assistant.verify import raised, verify


def surveyed(state: State, tools: Tools) -> Surveyed:
    """Find and judge the environments on this machine; those that the user named before stay in the list."""
    tools.sink(Progress(step=Step.DETECT, text=_("Looking for environments")))
    before = state.survey or Survey()
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
    machine, before = machine_here(state, tools.host), state.survey or Survey()
    tools.sink(Progress(step=Step.VERIFY, text=_("Reading what {path} holds", path=state.picked)))
    known, site = looked_into(state.picked, tools.host, machine, before.of(state.picked))
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
    device = (known.backend or Backend.CPU).value
    marker = read_marker(Path(known.path))
    asked = marker.plan.to_import(marker.environment.packages) if marker else ()
    recipe = marker.plan.recipe if marker else ""
    return verify(
        site.python,
        device,
        tools.sink,
        tools.cancel,
        packages=asked,
        recipe=recipe,
        environment=marker.plan.env if marker else {},
        traceless=True,
    )


def kernel_of(known: Known) -> tuple[Environment, Plan]:
    """Return an environment with its kernel, and what it was planned for, or is as good as."""
    kernel, marker = known.kernels[0], read_marker(Path(known.path))
    if marker:
        return replace(marker.environment, kernel=kernel), marker.plan
    made = Environment(path=known.path, python="", kernel=kernel)
    return made, Plan(backend=known.backend or Backend.CPU, variant="", torch=known.torch, python=known.python)

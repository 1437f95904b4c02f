"""The six steps' work: each task takes the state and the tools, and answers the fields of the state that it fills."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.diagnose import read_log
from assistant.export import FORMATS, export
from assistant.host.base import Host
from assistant.host.process import CancelToken
from assistant.host.recording import ReplayHost
from assistant.i18n import _
from assistant.install.conflicts import conflicts
from assistant.install.installer import Installer
from assistant.install.make import aimed_at, change_environment, make_environment, reusable
from assistant.install.pip_settings import uv_arguments
from assistant.install.resolution import resolve
from assistant.install.target import check_target
from assistant.machines import load
from assistant.model.errors import BadInput
from assistant.model.event import FindingRaised, Progress, Sink, Step
from assistant.model.plan import Plan
from assistant.plan import make_plans, nothing_fits
from assistant.plan.settle import Case
from assistant.session.diagnosis import diagnosed, machine_of_log, with_ways_out
from assistant.session.sources import Sources, settled
from assistant.session.state import Preview, State, Task, failures
from assistant.verify.ahead import compile_ahead
from assistant.verify.performance import figures
from assistant.verify.plots import warm_up
from assistant.verify.run import device_for, verify

__all__ = ["TASKS", "Tools"]

Changes = dict[str, object]


@dataclass(frozen=True)
class Tools:
    """What a task works with: the machine at hand, its package sources, a place to tell events, a request to stop."""

    host: Host
    sources: Sources
    sink: Sink
    cancel: CancelToken


def _detect(state: State, tools: Tools) -> Changes:
    host = ReplayHost(load(state.machine)) if state.machine else tools.host
    if not state.machine:
        _ahead(lambda: tools.sources.environment)  # pip needs half a second to tell its settings; the plan wants them
    found = detect(host, overrides=state.overrides)
    return {"detection": found, "findings": found.findings, "planning": None, "chosen": 0, "preview": None}


def _plan(state: State, tools: Tools) -> Changes:
    machine = _known(state.detection).machine
    case = Case(machine, load_catalog(), state.request)
    planning = make_plans(*case)
    if not state.machine:
        planning = settled(planning, case, tools.sources)
    if planning.choice is None:
        raise nothing_fits(planning)
    return {"planning": planning, "chosen": 0, "preview": None}


def _prepare(state: State, tools: Tools) -> Changes:
    plan = _known(state.plan)
    target, site = aimed_at(state.target, plan, tools.host)
    if site is None:
        check_target(target)
    installer = _installer(plan, tools, site.python if site else "")
    tools.sink(Progress(step=Step.INSTALL, text=_("Working out every package that is needed")))
    resolution = resolve(plan, installer, site.versions if site else None)
    ready = reusable(target, resolution)
    for finding in conflicts(site, resolution.versions) if site and not ready else ():
        tools.sink(FindingRaised(step=Step.INSTALL, finding=finding))
    shown = installer.commands(target, new=site is None)
    return {"preview": Preview(target=str(target), commands=shown, resolution=resolution, ready=ready)}


def _install(state: State, tools: Tools) -> Changes:
    preview, plan = _known(state.preview), _known(state.plan)
    target, site = aimed_at(state.target, plan, tools.host)
    installer = _installer(plan, tools, site.python if site else "")
    if preview.ready:
        made = preview.ready
    elif site:
        made = change_environment(plan, preview.resolution, site, tools.host, installer)
    else:
        made = make_environment(plan, preview.resolution, target, tools.host, installer)
    return {"environment": made, "report": None, "figures": {}, "exported": ()}


def _verify(state: State, tools: Tools) -> Changes:
    plan = state.plan
    device = state.device or device_for(_known(plan).backend)
    settings = plan.env if plan else {}
    python, over = _known(state.environment).python, CancelToken()
    _ahead(lambda: compile_ahead(python, over), warm_up)  # the checks run in another process meanwhile
    report = verify(python, device, tools.sink, tools.cancel, level=state.level, environment=settings)
    over.set()
    return {"report": report, "figures": figures(report)}


def _diagnose(state: State, tools: Tools) -> Changes:
    """Find the causes of what was pasted or of what failed last, and ways out of what was found."""
    tools.sink(Progress(step=Step.DIAGNOSE, text=_("Looking for causes")))
    machine = _known(state.detection).machine
    told = state.pasted or "\n".join(failures(state))
    if not (told or state.findings):
        return {"diagnoses": ()}
    log = read_log(told)
    known = machine_of_log(log, machine) if state.pasted else machine
    return {"findings": with_ways_out(state.findings, machine), "diagnoses": diagnosed(log, known)}


def _export(state: State, tools: Tools) -> Changes:
    environment = _known(state.environment)
    folder = Path(state.folder).expanduser().absolute() if state.folder else Path(environment.path) / "assistant-export"
    tools.sink(Progress(step=Step.EXPORT, text=_("Writing the files")))
    written = export(
        _known(state.detection),
        _known(state.plan),
        environment,
        _known(state.report),
        folder,
        formats=state.formats or tuple(FORMATS),
        figures=state.figures,
    )
    return {"exported": tuple(str(path) for path in written)}


TASKS: dict[Task, Callable[[State, Tools], Changes]] = {
    Task.DETECT: _detect,
    Task.PLAN: _plan,
    Task.PREPARE: _prepare,
    Task.INSTALL: _install,
    Task.VERIFY: _verify,
    Task.DIAGNOSE: _diagnose,
    Task.EXPORT: _export,
}


T = TypeVar("T")


def _known(value: T | None) -> T:
    """Unwrap what `blockers` has already promised."""
    if value is None:
        raise BadInput(_("An earlier step has no result yet."), hint=_("Go back and run it first."))
    return value


def _ahead(*works: Callable[[], object]) -> None:
    """Do on another thread, one after the other, what will be needed later."""
    threading.Thread(target=lambda: [work() for work in works], daemon=True).start()


def _installer(plan: Plan, tools: Tools, python: str = "") -> Installer:
    """Use `python`, or the Python underneath the assistant when it is the plan's, else let uv find or fetch one."""
    facts, sources = tools.host.facts("platform"), tools.sources
    own = str(facts.get("python", ""))
    return Installer(
        python=python or str(facts["base_executable"]) if python or own.startswith(f"{plan.python}.") else plan.python,
        environment=sources.environment,
        arguments=uv_arguments(sources.settings),
        settings=sources.settings,
        sink=tools.sink,
        cancel=tools.cancel,
    )

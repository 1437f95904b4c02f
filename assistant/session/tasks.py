"""The six steps' work: each task takes the state and the tools, and answers the fields of the state that it fills."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.diagnose import nearest, read_log
from assistant.export import export
from assistant.host.base import Host
from assistant.host.lock import Lock
from assistant.host.process import CancelToken
from assistant.host.recording import ReplayHost
from assistant.i18n import Message, _, changed, render
from assistant.install.installer import Installer
from assistant.install.make import aimed_at, check_site, delta, install, reusable, writes
from assistant.install.project import kept_by, undone
from assistant.install.site import Site
from assistant.install.target import check_target
from assistant.install.wheels import missing
from assistant.install.work import rooms
from assistant.machines import load
from assistant.model.checks import check_title
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.event import FindingRaised, LogLine, Progress, Sink, Step
from assistant.model.finding import Severity
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace
from assistant.model.report import RIGHT, Environment, Report, Status
from assistant.plan import make_plans, nothing_fits
from assistant.plan.settle import Case
from assistant.session.carry import take_along
from assistant.session.consent import resolved, told_of_indexes
from assistant.session.diagnosis import diagnosed, inquiry, machine_of_log, with_ways_out
from assistant.session.doctor import findings_of, judged
from assistant.session.interpreters import interpreters
from assistant.session.mend import carry_out, way_chosen
from assistant.session.nouns import Preview, State, Task
from assistant.session.sources import Sources, settled
from assistant.session.state import failures
from assistant.verify.ahead import compile_ahead
from assistant.verify.plots import figures
from assistant.verify.run import raised, verify

__all__ = ["TASKS", "Tools"]

Changes = dict[str, object]


@dataclass(frozen=True)
class Tools:
    """What a task works with: the machine at hand, its package sources, a place to tell events, a request to stop.

    `ask` puts a question to the user and waits for the answer; False where nobody is there to ask.
    """

    host: Host
    sources: Sources
    sink: Sink
    cancel: CancelToken
    ask: Callable[[Message], bool] = lambda _question: False


def _detect(state: State, tools: Tools) -> Changes:
    host = ReplayHost(load(state.machine)) if state.machine else tools.host
    if not state.machine:
        _ahead(lambda: tools.sources.environment)  # pip needs half a second to tell its settings; the plan wants them
    found = detect(host, overrides=state.overrides)
    found = replace(found, findings=tuple(each for each in judged(found) if each.severity is not Severity.OK))
    pythons = {} if state.machine else interpreters(tools.host)
    return {"detection": found, "findings": found.findings, "preview": None, "pythons": pythons}


def _plan(state: State, tools: Tools) -> Changes:
    case = Case(_known(state.detection).machine, load_catalog(), state.request)
    planning = make_plans(*case)
    planning = planning if state.machine else settled(planning, case, tools.sources)
    if planning.choice is None:
        raise nothing_fits(planning)
    return {"planning": planning, "chosen": 0, "preview": None}


def _prepare(state: State, tools: Tools) -> Changes:
    plan = _known(state.plan)
    target, site = aimed_at(state.target, plan, tools.host)
    check_site(site) if site else check_target(target)
    installer = _installer(plan, tools, site)
    tools.sink(Progress(step=Step.INSTALL, text=_("Working out every package that is needed")))
    keep = {**(site.versions if site else {}), **tools.sources.keep}
    resolution = resolved(plan, installer, tools.sources, tools.ask, keep)
    ready = reusable(target, site, resolution)
    if ready:
        return {"preview": Preview(target=str(target), commands=(), resolution=resolution, ready=ready)}
    keeper = kept_by(target)
    gpu = plan.backend is not Backend.CPU
    raised_here = (
        *told_of_indexes(plan, resolution, tools.sources, tools.ask),
        *(findings_of(site, _known(state.detection).machine, resolution.versions, gpu_plan=gpu) if site else ()),
        *((undone(keeper, plan, resolution.versions),) if keeper else ()),
    )
    for finding in raised_here:
        tools.sink(FindingRaised(step=Step.INSTALL, finding=finding))
    preview = Preview(
        target=str(target),
        commands=installer.commands(rooms(target, stands=site is not None), Path(site.python) if site else None),
        resolution=resolution,
        writes=writes(plan, target, site, resolution),
        download=sum(package.size or 0 for package in missing(delta(site, resolution))),
        findings=raised_here,
    )
    return {"preview": preview}


def _install(state: State, tools: Tools) -> Changes:
    preview, plan = _known(state.preview), _known(state.plan)
    target, site = aimed_at(state.target, plan, tools.host)
    installer = _installer(plan, tools, site)
    proofs: list[Report] = []

    def prove(made: Environment, lock: Lock) -> None:
        """Verify before the installation is committed; raise where its result is not to be kept."""
        quick = replace(state, device="", level="quick")
        report = _verified(quick, made, tools, lock=lock, traceless=site is not None)
        proofs.append(_as_placed(report, made.path, str(target)))
        _check_proof(proofs[0], state, tools)

    made = preview.ready or install(plan, preview.resolution, target, site, tools.host, installer, prove)
    return {"environment": made, "proof": (*proofs, None)[0], "report": None, "exported": ()}


def _as_placed(report: Report, built: str, target: str) -> Report:
    """Let a report name the place that an environment goes to, not the folder in which it was built and verified."""

    def placed(text: str) -> str:
        return text.replace(built, target)

    checks = tuple(replace(check, detail=changed(check.detail, placed)) for check in report.checks)
    return replace(report, checks=checks, facts={key: placed(text) for key, text in report.facts.items()})


def _check_proof(report: Report, state: State, tools: Tools) -> None:
    """Raise `WorkFailed` for an environment that does not compute, unless the user wants to keep it as it is."""
    wrong = [check for check in report.checks if check.status not in {*RIGHT, Status.SKIPPED}]
    for check in wrong:
        tools.sink(
            LogLine(
                step=Step.INSTALL,
                text=Message("{check}: {detail}").format(check=check_title(check.key), detail=check.detail),
            )
        )
    named = ", ".join(f"“{check_title(check.key)}”" for check in wrong)
    question = _("The verification on {device} failed ({checks}). Keep the installation all the same?")
    if not (report.usable or state.keep or tools.ask(question.format(device=report.device, checks=named))):
        raise WorkFailed(
            _(
                "The verification on {device} failed, so everything was taken back: {checks}.",
                device=report.device,
                checks=named,
            ),
            hint=_("Choose another plan, or keep the installation all the same with --keep."),
        )


def _verify(state: State, tools: Tools) -> Changes:
    """Verify an environment; what its installation has just verified is not done twice."""
    report = state.proof if state.level == "quick" and not state.device else None
    for finding in raised(report) if report else ():
        tools.sink(FindingRaised(step=Step.VERIFY, finding=finding))
    report = report or _verified(state, _known(state.environment), tools)
    return {"report": report, "proof": None}


def _verified(
    state: State, made: Environment, tools: Tools, *, lock: Lock | None = None, traceless: bool = False
) -> Report:
    """Run the checks in another process, and meanwhile on another core what will be needed soon.

    The processes hold `lock`, where they work in an installation.
    """
    device = state.device or _known(state.plan).backend.value
    settings = state.plan.env if state.plan else {}
    over = CancelToken()
    ahead = None if traceless else _ahead(lambda: compile_ahead(made.python, over, lock))
    try:
        return verify(
            made.python,
            device,
            tools.sink,
            tools.cancel,
            level=state.level,
            environment=settings,
            traceless=traceless,
            lock=lock,
        )
    finally:
        over.set()
        if ahead:
            ahead.join()  # nothing may write there any more when all is taken back


def _diagnose(state: State, tools: Tools) -> Changes:
    """Find the causes of what was pasted or of what failed last, and ways out of what was found."""
    tools.sink(Progress(step=Step.DIAGNOSE, text=_("Looking for causes")))
    machine = _known(state.detection).machine
    told = state.pasted or "\n".join(map(render, failures(state)))
    if not (told or state.findings):
        return {"diagnoses": (), "mended": {}, "elsewhere": False, "near": (), "inquiry": ""}
    log = read_log(told)
    known = machine_of_log(log, machine) if state.pasted else machine
    found = diagnosed(log, known)
    unknown = bool(told and not found)
    return {
        "findings": with_ways_out(state.findings, machine),
        "diagnoses": found,
        "mended": {},
        "elsewhere": known.os != machine.os,
        "near": tuple(_(rule.title) for rule in nearest(log)) if unknown else (),
        "inquiry": inquiry(log, known, ()) if unknown else "",
    }


def _mend(state: State, tools: Tools) -> Changes:
    """Carry out the way out that the user chose, and tell whether its check then holds."""
    settings = tools.sources.environment
    outcome = carry_out(way_chosen(state), _known(state.environment), tools.sink, tools.cancel, settings)
    return {"mended": {**state.mended, state.way: outcome}}


def _export(state: State, tools: Tools) -> Changes:
    environment = _known(state.environment)
    folder = Path(state.folder).expanduser().absolute() if state.folder else Path(environment.path) / "assistant-export"
    tools.sink(Progress(step=Step.EXPORT, text=_("Writing the files")))
    taken = take_along(environment, state.preview, tools.host)
    question = _("Files that the assistant did not write stand in {folder}: {names}. Replace them?")
    written = export(
        _known(state.detection),
        _known(state.plan),
        taken.environment,
        _known(state.report),
        folder,
        formats=state.formats,
        figures=figures(_known(state.report)),
        lock=taken.lock,
        hashes=taken.hashes,
        secrets=taken.secrets,
        names=taken.names,
        overwrite=lambda paths: (
            state.overwrite or tools.ask(question.format(folder=folder, names=", ".join(path.name for path in paths)))
        ),
    )
    return {"exported": tuple(str(path) for path in written), "overwrite": False}


TASKS: dict[Task, Callable[[State, Tools], Changes]] = {
    Task.DETECT: _detect,
    Task.PLAN: _plan,
    Task.PREPARE: _prepare,
    Task.INSTALL: _install,
    Task.VERIFY: _verify,
    Task.DIAGNOSE: _diagnose,
    Task.MEND: _mend,
    Task.EXPORT: _export,
}


T = TypeVar("T")


def _known(value: T | None) -> T:
    """Unwrap what `blockers` has already promised."""
    if value is None:
        raise BadInput(_("An earlier step has no result yet."), hint=_("Go back and run it first."))
    return value


def _ahead(work: Callable[[], object]) -> threading.Thread:
    """Do on another thread what will be needed later."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def _installer(plan: Plan, tools: Tools, site: Site | None) -> Installer:
    """Use the Python of what stands, or the one underneath the assistant when it is the plan's, else a found one."""
    facts, sources = tools.host.facts("platform"), tools.sources
    base, found = str(facts["base_executable"]), plan.python if sources.installer == "uv" else f"python{plan.python}"
    own = base if str(facts.get("python", "")).startswith(f"{plan.python}.") else found
    return Installer(
        python=site.python if site else own,
        pip=base if site and "pip" not in site.versions else "",
        program=sources.installer,
        environment=sources.environment,
        settings=sources.settings,
        uv_indexes=sources.uv_indexes,
        sink=tools.sink,
        cancel=tools.cancel,
    )

"""The tasks of the six steps: each takes the state and the tools, and returns its step's result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from assistant.diagnose import nearest, read_log
from assistant.i18n import _, render
from assistant.install import Prepared, Tools, look_at, prepare, run, undone_by_project
from assistant.model.event import FindingRaised, Progress, Step
from assistant.model.finding import Finding
from assistant.model.plan import Backend
from assistant.model.record import replace
from assistant.model.report import Environment
from assistant.session.adding import added
from assistant.session.diagnosis import diagnosed, inquiry, machine_of_log, with_remedies
from assistant.session.doctor import findings_of, mixed_packages, still_true
from assistant.session.environments import looked, surveyed
from assistant.session.exporting import exported
from assistant.session.interpreters import detected
from assistant.session.mending import compared, forgotten, removed, repaired, undone
from assistant.session.onnx import examined
from assistant.session.remediation import mended
from assistant.session.sources import card_of, planned
from assistant.session.state import Diagnosed, Installed, Result, State, Task, Verified, known
from assistant.session.verification import proved, verified


def _prepare(state: State, tools: Tools) -> Prepared:
    """Resolve the packages, and judge the environment as it would be after the installation."""
    plan = known(state.plan)
    prepared = prepare(plan, state.target, tools, card_of(state))
    if prepared.site is None:
        return prepared
    after = {**prepared.site.versions, **prepared.resolution.versions}
    gpu = plan.backend is not Backend.CPU
    mixed = mixed_packages(after, prepared.site.version, known(state.detection).machine, gpu_plan=gpu)
    for finding in mixed:
        tools.sink(FindingRaised(step=Step.INSTALL, finding=finding))
    return replace(prepared, findings=(*mixed, *prepared.findings))


def _install(state: State, tools: Tools) -> Installed:
    """Install what was prepared; judge an environment that was there before anew."""
    prepared, proofs = known(state.preview), []
    made = run(prepared, lambda made, lock: proofs.append(proved(prepared, made, lock, tools, keep=state.keep)), tools)
    _judge(made, state, tools)
    return Installed(environment=made, proof=(*proofs, None)[0])


def _verify(state: State, tools: Tools) -> Verified:
    """Verify an environment; judge one that was there before anew, as its faults may be gone or not."""
    report = verified(state, tools)
    _judge(known(state.environment), state, tools)
    return Verified(report=report)


def _judge(made: Environment, state: State, tools: Tools) -> None:
    """Report what is wrong with an environment as it stands now; in one that has just been made nothing can be."""
    plan, preview = state.plan, state.preview
    found: list[Finding] = []
    if state.detection and not (preview and preview.site is None):
        gpu = plan is None or plan.backend is not Backend.CPU
        found += findings_of(look_at(Path(made.python), tools.host), state.detection.machine, gpu_plan=gpu)
    if plan:
        found += undone_by_project(Path(made.path), plan, made.packages)
    for finding in found:
        tools.sink(FindingRaised(step=Step.VERIFY, finding=finding))


def _diagnose(state: State, tools: Tools) -> Diagnosed:
    """Find the causes of a pasted log or of the last failure, and remedies for all findings that still hold."""
    tools.sink(Progress(step=Step.DIAGNOSE, text=_("Looking for causes")))
    machine = known(state.detection).machine
    told = state.pasted or "\n".join(map(render, state.failures))
    findings = state.findings if state.machine else still_true(state.findings, tools.host)
    if not (told or findings):
        return Diagnosed()
    log = read_log(told)
    source = machine_of_log(log, machine) if state.pasted else machine
    found = diagnosed(log, source)
    unknown = bool(told and not found)
    return Diagnosed(
        findings=with_remedies(findings, machine),
        diagnoses=found,
        elsewhere=source.os != machine.os,
        near=tuple(_(rule.title) for rule in nearest(log)) if unknown else (),
        inquiry=inquiry(log, source, ()) if unknown else "",
    )


TASKS: dict[Task, Callable[[State, Tools], Result]] = {
    Task.DETECT: detected,
    Task.PLAN: planned,
    Task.PREPARE: _prepare,
    Task.INSTALL: _install,
    Task.VERIFY: _verify,
    Task.DIAGNOSE: _diagnose,
    Task.MEND: mended,
    Task.EXPORT: exported,
    Task.ONNX: examined,
    Task.ADD: added,
    Task.SURVEY: surveyed,
    Task.CHECK: looked,
    Task.COMPARE: compared,
    Task.REPAIR: repaired,
    Task.UNDO: undone,
    Task.FORGET: forgotten,
    Task.REMOVE: removed,
}

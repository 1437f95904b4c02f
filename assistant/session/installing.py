"""The tasks of an installation: what would be installed, the installation itself, and its verification."""

from __future__ import annotations

from pathlib import Path

from assistant.i18n import _
from assistant.install import Prepared, Tools, find_uv, look_at, prepare, read_marker, run, undone_by_project
from assistant.model.errors import Cancelled
from assistant.model.event import FindingRaised, Step
from assistant.model.finding import Finding
from assistant.model.plan import Backend
from assistant.model.record import replace
from assistant.model.report import Environment, Report
from assistant.model.shell import command_line
from assistant.session.doctor import findings_of, mixed_packages, still_true
from assistant.session.sources import card_of
from assistant.session.state import Installed, Phase, State, Verified, known
from assistant.session.verification import proved, verified

DISPROVED = {"vc-runtime-missing"}  # by torch that was imported


def prepared(state: State, tools: Tools) -> Prepared:
    """Resolve the packages, and judge the environment as it would be after the installation."""
    plan = known(state.plan)
    ready = prepare(plan, state.target, tools, card_of(state))
    if ready.site is None:
        return ready
    after = {**ready.site.versions, **ready.resolution.versions}
    gpu = plan.backend is not Backend.CPU
    mixed = mixed_packages(after, ready.site.version, known(state.detection).machine, gpu_plan=gpu)
    for finding in mixed:
        tools.sink(FindingRaised(step=Step.INSTALL, finding=finding))
    return replace(ready, findings=(*mixed, *ready.findings))


def installed(state: State, tools: Tools) -> Installed:
    """Install what was prepared; judge an environment that was there before anew."""
    ready, proofs = known(state.preview), []
    made = run(ready, lambda made, lock: proofs.append(proved(ready, made, lock, tools, keep=state.keep)), tools)
    _judge(made, state, tools)
    proof = (*proofs, None)[0]
    return Installed(environment=made, proof=proof, detected=_still_true(state, tools, proof))


def stopped(state: State) -> Cancelled:
    """Return what an interrupted installation has left, and how that is removed."""
    made, preview = state.environment, state.preview
    if state.status(Step.INSTALL).phase is not Phase.DONE or made is None or (preview and preview.ready):
        return Cancelled(_("Stopped before anything was changed."))
    text = _("Stopped, but the installation in {path} is complete and stays.", path=made.path)
    if read_marker(Path(made.path)):
        command = command_line(["assistant", "envs", "--remove", made.path])
        return Cancelled(text, hint=_("`{command}` removes it.", command=command))
    command = command_line([find_uv(), "pip", "uninstall", "--python", made.python, "torch"])
    return Cancelled(text, hint=_("To take torch out of it again: {command}", command=command))


def verify(state: State, tools: Tools) -> Verified:
    """Verify an environment; judge one that was there before anew, as its faults may be gone or not."""
    report = verified(state, tools)
    _judge(known(state.environment), state, tools)
    return Verified(report=report, detected=_still_true(state, tools, report))


def _still_true(state: State, tools: Tools, report: Report | None) -> tuple[Finding, ...]:
    """Return what is still true of what detection had found; what a passed verification disproves is not."""
    disproved = DISPROVED if report and report.passed else set()
    return tuple(one for one in still_true(known(state.detection), tools.host) if one.key not in disproved)


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

"""The tasks of an installation: what would be installed, how far it is, and its verification."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from assistant.host.lock import Lock
from assistant.host.parallel import Ahead
from assistant.host.process import CancelToken
from assistant.i18n import Message, Text, _, first_line, map_texts, sentences
from assistant.install import Prepared, Tools, find_uv, look_at, prepare, read_marker, run, undone_by_project
from assistant.model.checks import Level, check_title
from assistant.model.errors import Cancelled, WorkFailed
from assistant.model.event import FindingRaised, LogLine, Part, Step
from assistant.model.finding import Finding
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace
from assistant.model.report import Environment, Report
from assistant.model.shell import command_line
from assistant.session.doctor import findings_of, mixed_packages, still_true
from assistant.session.sources import card_of
from assistant.session.state import Installed, Phase, State, Task, Verified, known
from assistant.verify import compile_ahead, lacking_in_system, raised, verify

TITLES: Mapping[Part, Message] = {
    Part.RESOLVE: _("Resolve the packages"),
    Part.DOWNLOAD: _("Download"),
    Part.UNPACK: _("Unpack"),
    Part.CHECK: _("Check that it computes"),
    Part.REGISTER: _("Add the kernel to Jupyter"),
}


class Row(NamedTuple):
    """One part of an installation, and what it says of itself while it runs."""

    title: Message
    status: Literal["waiting", "running", "done"]
    figures: Text = ""


def rows(state: State) -> tuple[Row, ...]:
    """List the parts of the installation that runs, in order; none while another task runs."""
    if state.running is not Task.INSTALL:
        return ()
    progress = state.doing.progress
    running = (progress and progress.part) or Part.DOWNLOAD
    parts = tuple(Part)
    at = parts.index(running)
    return (
        *(Row(TITLES[part], "done") for part in parts[:at]),
        Row(TITLES[running], "running", progress.figures if progress else ""),
        *(Row(TITLES[part], "waiting") for part in parts[at + 1 :]),
    )


def proved(prepared: Prepared, made: Environment, lock: Lock, tools: Tools, *, keep: bool) -> Report:
    """Verify what is being installed, before it is committed; with `keep`, an environment that fails is kept, too.

    Raises `WorkFailed` where it fails and nobody wants to keep it.
    """
    plan = prepared.plan
    report = _run(made, plan.backend.value, "quick", plan, tools, lock=lock, traceless=prepared.site is not None)
    report = _as_placed(report, made.path, prepared.target)
    for check in report.wrong:
        line = Message("{check}: {detail}").format(check=check_title(check.key), detail=check.detail)
        tools.sink(LogLine(step=Step.INSTALL, text=line))
    names = tuple(Message("“{check}”").format(check=check_title(check.key)) for check in report.wrong)
    question = _("The verification on {device} failed ({checks}). Keep the installation all the same?")
    if not (report.usable or keep or tools.ask(question.format(device=report.device, checks=names))):
        raise _refused(report, names)
    return report


def _refused(report: Report, names: tuple[Message, ...]) -> WorkFailed:
    """Say what failed: where that is only what was asked for beside torch, what is wrong with it and what it wants."""
    if len(report.unusable) < len(report.wrong):
        return WorkFailed(
            _(
                "The verification on {device} failed, so the installation was rolled back: {checks}.",
                device=report.device,
                checks=names,
            ),
            hint=_("Choose another plan, or keep the installation anyway.", option="--keep"),
        )
    wanted = dict.fromkeys(text for check in report.wrong for text in lacking_in_system(check, report.device))
    return WorkFailed(
        _(
            "{packages} cannot be used, so the installation was rolled back: {reasons}",
            packages=", ".join(dict.fromkeys(report.unusable)),
            reasons=sentences(map(first_line, dict.fromkeys(check.detail for check in report.wrong[:3]))),
        ),
        hint=sentences(
            (
                *wanted,
                _("Ask for another version or build, leave it out, or keep the installation anyway.", option="--keep"),
            )
        ),
    )


def _report(state: State, tools: Tools) -> Report:
    """Verify an environment; what its installation has just found is not done twice."""
    proof = state.installed.proof if state.installed else None
    if proof and state.choices.level == "quick" and not state.choices.device:
        for finding in raised(proof):
            tools.sink(FindingRaised(step=Step.VERIFY, finding=finding))
        return proof
    device = state.choices.device or known(state.plan).backend.value
    return _run(known(state.environment), device, state.choices.level, state.plan, tools)


def _as_placed(report: Report, built: str, target: str) -> Report:
    """Let a report name the place that an environment goes to, not the folder in which it was built and _report."""

    def placed(text: str) -> str:
        return text.replace(built, target)

    checks = tuple(replace(check, detail=map_texts(check.detail, placed)) for check in report.checks)
    return replace(report, checks=checks, facts={key: placed(text) for key, text in report.facts.items()})


def _run(
    made: Environment,
    device: str,
    level: Level,
    plan: Plan | None,
    tools: Tools,
    *,
    lock: Lock | None = None,
    traceless: bool = False,
) -> Report:
    """Run the checks in another process, and meanwhile compile on another core what will be needed soon.

    The processes hold `lock`, where they work in an installation.
    """
    over = CancelToken()
    ahead = None if traceless else Ahead(lambda: compile_ahead(made.python, over, lock))
    try:
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
    finally:
        over.set()
        if ahead:
            ahead.result()  # nothing may write there any more when all is rolled back


DISPROVED = {"vc-runtime-missing"}  # by torch that was imported


def prepared(state: State, tools: Tools) -> Prepared:
    """Resolve the packages, and judge the environment as it would be after the installation."""
    plan = known(state.plan)
    ready = prepare(plan, state.choices.target, tools, card_of(state))
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
    ready, keep, proofs = known(state.preview), state.choices.keep, []
    made = run(ready, lambda made, lock: proofs.append(proved(ready, made, lock, tools, keep=keep)), tools)
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


def verified(state: State, tools: Tools) -> Verified:
    """Verify an environment; judge one that was there before anew, as its faults may be gone or not."""
    report = _report(state, tools)
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

"""Verifies an environment, in the midst of its installation or on its own, while another core works ahead."""

from __future__ import annotations

from assistant.host.lock import Lock
from assistant.host.parallel import Ahead
from assistant.host.process import CancelToken
from assistant.i18n import Message, _, first_line, map_texts, sentences
from assistant.install import Prepared, Tools
from assistant.model.checks import Level, check_title
from assistant.model.errors import WorkFailed
from assistant.model.event import FindingRaised, LogLine, Step
from assistant.model.plan import Plan
from assistant.model.record import replace
from assistant.model.report import Environment, Report
from assistant.session.state import State, known
from assistant.verify import compile_ahead, lacking_in_system, raised, verify


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


def verified(state: State, tools: Tools) -> Report:
    """Verify an environment; what its installation has just verified is not done twice."""
    if state.proof and state.level == "quick" and not state.device:
        for finding in raised(state.proof):
            tools.sink(FindingRaised(step=Step.VERIFY, finding=finding))
        return state.proof
    device = state.device or known(state.plan).backend.value
    return _run(known(state.environment), device, state.level, state.plan, tools)


def _as_placed(report: Report, built: str, target: str) -> Report:
    """Let a report name the place that an environment goes to, not the folder in which it was built and verified."""

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

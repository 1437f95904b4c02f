"""The task that looks for causes: of what was pasted or failed, and of what is wrong with machine and environment."""

from __future__ import annotations

from assistant.diagnose import read_log
from assistant.host.base import Host
from assistant.i18n import _, render
from assistant.install import Tools
from assistant.model.event import Progress, Step
from assistant.model.finding import Finding
from assistant.model.record import replace
from assistant.session.diagnosis import (
    diagnosed_lines,
    machine_of_log,
    places,
    source_of,
    unexplained,
    with_remedies,
    with_torch,
)
from assistant.session.doctor import still_true
from assistant.session.log_report import log_report
from assistant.session.pasted import whole
from assistant.session.state import Diagnosed, State, Unexplained, known


def causes_found(state: State, tools: Tools) -> Diagnosed:
    """Find the causes of a pasted log or of the last failure, and remedies for all findings that still hold."""
    tools.sink(Progress(step=Step.DIAGNOSE, text=_("Looking for causes")))
    machine, pasted = known(state.detection).machine, state.pasted
    text = whole(pasted) or "\n".join(map(render, state.failures))
    still = state.findings if state.machine else _still_true(state, tools.host)
    findings = with_remedies(still, machine)
    if not text:
        return Diagnosed(findings=findings, explained=pasted)
    log = read_log(text)
    origin = machine_of_log(log, machine) if pasted.text else machine
    causes = diagnosed_lines(log, origin)
    diagnoses, lines = tuple(cause for cause, _line in causes), [line for _cause, line in causes]
    if state.failed_cell and state.environment:
        diagnoses = with_torch(diagnoses, log, machine)
    return Diagnosed(
        findings=findings,
        diagnoses=diagnoses,
        places=places(log, lines),
        explained=pasted,
        source=source_of(log, origin, machine, lines[0] if lines else None),
        unexplained=Unexplained() if diagnoses else unexplained(log, origin),
        markdown=log_report(log, origin, diagnoses),
    )


def _still_true(state: State, host: Host) -> tuple[Finding, ...]:
    """Leave out what has been mended since; of the setup's environment only its own tasks know."""
    raised = {finding.text for finding in state.raised}
    still = still_true(replace(known(state.detection), findings=state.findings), host)
    return tuple(finding for finding in state.findings if finding in still or finding.text in raised)

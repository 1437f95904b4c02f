"""The task that looks for causes: of what was pasted or failed, and of what is wrong with machine and environment."""

from __future__ import annotations

from assistant.diagnose import nearest, read_log
from assistant.i18n import _, render
from assistant.install import Tools
from assistant.model.event import Progress, Step
from assistant.session.diagnosis import diagnosed, inquiry, machine_of_log, with_remedies
from assistant.session.doctor import still_true
from assistant.session.state import Diagnosed, State, known


def causes_found(state: State, tools: Tools) -> Diagnosed:
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

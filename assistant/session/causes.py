"""Looks for the causes of what was pasted or failed, and writes the answer down to ask others with."""

from __future__ import annotations

from collections.abc import Iterable

from assistant.diagnose import Log, read_log
from assistant.export import stated_env_text
from assistant.host.base import Host
from assistant.host.live import known_here
from assistant.i18n import _, in_language, render
from assistant.install import Tools
from assistant.model.event import Progress, Step
from assistant.model.finding import Diagnosis, Finding
from assistant.model.machine import Machine
from assistant.model.record import replace
from assistant.privacy import redact
from assistant.session.diagnosis import (
    diagnosed_lines,
    machine_of_log,
    places,
    source_of,
    unexplained,
    with_remedies,
    with_torch,
    without_secrets,
)
from assistant.session.doctor import still_true
from assistant.session.pasted import whole
from assistant.session.state import Diagnosed, State, Unexplained, known

REPORTED = 80  # last lines of a log that go into a report
TO_WRITE = "<!-- Please write this part yourself. -->"


def log_report(log: Log, machine: Machine, found: Iterable[Diagnosis]) -> str:
    """Return a log's report without private things, in English, as most places that help ask for it."""
    known = known_here()
    here: Machine = redact(replace(machine, evidence=()), known=known)
    last = without_secrets(log, len(log.lines) - REPORTED, len(log.lines))
    text = "\n".join(line for _number, line in last).strip("\n").replace("```", "'''")
    parts = {
        "What happened": TO_WRITE,
        "Likely causes": _causes(redact(tuple(found), known=known)),
        "Log": _fenced(redact(text, known=known)),
        "Versions": _fenced(stated_env_text(here)),
    }
    return "\n".join(f"### {title}\n\n{part}\n" for title, part in parts.items())


def _causes(found: tuple[Diagnosis, ...]) -> str:
    """Say in English what the assistant takes for the cause, with its key."""
    if not found:
        return "torch-setup-assistant knows no cause for this log."
    with in_language("en"):
        told = (f"- {one.title} (`{one.key}`, {one.confidence:.0%})" for one in found)
        return "\n".join(("What torch-setup-assistant takes for the cause:", "", *told))


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```"


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

"""Looks for the causes of what was pasted or failed, and writes the answer down to ask others with.

A short text is kept with the setup, a long one in a private file that is named by its content.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from assistant.diagnose import Log, read_log
from assistant.export import stated_env_text
from assistant.host.base import Host
from assistant.host.files import discard, private_folder, read_plain, write_whole
from assistant.host.folders import user_state
from assistant.host.live import known_here
from assistant.i18n import _, in_language, render
from assistant.install import Tools
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.event import Progress, Step
from assistant.model.finding import Diagnosis, Finding
from assistant.model.machine import Machine
from assistant.model.record import replace
from assistant.parsers.decode import text_pieces
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
from assistant.session.state import WHOLE, Diagnosed, Pasted, State, Unexplained, required

SHOWN = WHOLE // 5  # characters kept of both ends of a longer one, as `wizard/static/logbox.js` shows them
KEPT = 3  # files of long logs that are kept: other windows may still show one
LIMIT = 2**30  # bytes; chosen: twice what the page sends


def taken(data: bytes, name: str = "", folder: Path | None = None) -> Pasted:
    """Return a log as a setup keeps it; raise `BadInput` for a binary file, `WorkFailed` where it cannot be kept."""
    text = "".join(text_pieces(data))
    if len(text) <= WHOLE:
        return Pasted(text=text, name=name)
    content = text.encode("utf-8", "replace")
    folder = folder or user_state() / "pasted"
    path = folder / f"{_digest(content)}.log"
    try:
        private_folder(folder.parent)
        private_folder(folder)
        write_whole(path, content, private=True)
    except OSError as error:
        raise WorkFailed(
            _("This log could not be kept in {folder}: {reason}.", folder=folder, reason=error.strerror or error),
            hint=_("Free some space on the disk, or give only the end of the log."),
        ) from error
    with suppress(OSError):
        for old in sorted(folder.glob("*.log"), key=lambda file: file.stat().st_mtime)[:-KEPT]:
            discard(old)
    lines = text.count("\n") + (not text.endswith("\n"))
    return Pasted(text=text[:SHOWN], tail=text[-SHOWN:], size=len(data), lines=lines, name=name, path=str(path))


def whole(pasted: Pasted) -> str | bytes:
    """Return all of a log; raise `BadInput` where its file is gone or was changed."""
    if not pasted.path:
        return pasted.text
    path = Path(pasted.path)
    with suppress(OSError):
        content = read_plain(path, LIMIT)
        if path.stem == _digest(content):
            return content
    raise BadInput(
        _("The whole log is gone; only its beginning and its end were kept."),
        hint=_("Give it again: paste it, or choose its file."),
    )


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]


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
    machine, pasted = required(state.detection).machine, state.pasted
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
    still = still_true(replace(required(state.detection), findings=state.findings), host)
    return tuple(finding for finding in state.findings if finding in still or finding.text in raised)

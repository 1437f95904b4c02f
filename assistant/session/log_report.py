"""The answer to a log as plain Markdown: causes, log and versions, to be pasted where somebody is asked for help."""

from __future__ import annotations

from collections.abc import Iterable

from assistant.diagnose import Log
from assistant.export import stated_env_text
from assistant.host.identity import known_here
from assistant.i18n import in_language
from assistant.model.finding import Diagnosis
from assistant.model.machine import Machine
from assistant.model.record import replace
from assistant.privacy import redact
from assistant.session.diagnosis import without_secrets

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

"""What commands answer as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from assistant.i18n import render
from assistant.install import Prepared
from assistant.model.finding import Diagnosis
from assistant.model.machine import Machine
from assistant.model.plan import Planning
from assistant.model.record import Record, replace, with_words
from assistant.plan import explain
from assistant.session.state import State, Unexplained
from assistant.session.survey import EnvironmentSummary, Repair, Survey

if TYPE_CHECKING:
    from assistant.diagnose import Log

Answer = dict[str, object]


def of_planning(planning: Planning, machine: Machine, project: Record | None = None, *, why: bool = False) -> Answer:
    """Return the plans for a machine, and the project that they are for.

    With `why`, also the reasoning.
    """
    answer = _fields(planning)
    if project:
        answer["project"] = with_words(project)
    if why:
        answer["explanation"] = [render(line) for line in explain(planning, machine)]
    return answer


# Confidence from which on causes were right nine times in ten: in 35 of 39 texts that no rule had been made for.
PROVEN = 0.9


def of_log(log: Log, machine: Machine, diagnoses: Iterable[Diagnosis], origin: str = "given") -> Answer:
    """Return what was read in a log, the causes of what it shows, or what can be said without one.

    `possible` are, in short, those of the causes that are not sure enough to be acted on before their evidence is seen.
    `origin` is whose machine the log comes from (see `origin_of`), "given" if a machine was given with it.
    """
    from assistant.session.diagnosis import facts_in, unexplained  # noqa: PLC0415 - `plan` needs no rules of causes

    found = tuple(diagnoses)
    causes = [_fields(cause) for cause in found]
    brief = ("key", "title", "evidence", "confidence")
    rows = zip(found, causes, strict=True)
    possible = [{name: row[name] for name in brief} for cause, row in rows if cause.confidence < PROVEN]
    facts = [{"key": "origin", "value": origin}, *facts_in(log)]
    rest = Unexplained() if found else unexplained(log, machine)
    more = {"unexplained": with_words(rest)} if rest != Unexplained() else {}
    return {"facts": with_words(facts), "diagnoses": causes, "possible": possible, **more}


def of_preview(preview: Prepared | None) -> Answer:
    """Return what an installation would do; what stands there is no answer."""
    return _fields(replace(preview, site=None)) if preview else {}


def of_setup(state: State) -> Answer:
    """Return what a setup has come to: its plans, its environment with the report, and what else was found."""
    answer: Answer = {
        "statuses": {step.value: status for step, status in state.statuses.items()},
        "request": state.choices.request,
        "target": state.choices.target,
        "detection": state.detection,
        "planning": state.planning,
        "environment": state.environment,
        "report": state.report,
        "findings": state.findings,
        "diagnoses": state.diagnosed.diagnoses,
        "exported": state.exported.files,
        "log_file": state.log_file,
    }
    return {name: with_words(value) for name, value in answer.items()}


def of_environments(survey: Survey) -> Answer:
    """Return the environments that were found."""
    every = [_of_summary(row) for row in survey.environments]
    notes = {"notes": with_words(survey.notes)} if survey.notes else {}
    return {"environments": every, "cut_short": survey.cut_short, **notes}


def of_environment(summary: EnvironmentSummary, survey: Survey, repair: Repair | None = None) -> Answer:
    """Return what is known of an environment, and the change that was worked out for it."""
    change, notes = {}, survey.notes
    if repair:
        difference = repair.difference
        change = {"path": repair.path, "moves": difference.moves, "download_bytes": difference.download}
        change |= {"mends": repair.mends, "remains": repair.remains}
        notes = (*difference.findings, *notes)
    words = {name: with_words(value) for name, value in change.items()}
    return {**words, "notes": with_words(notes), "environment": _of_summary(summary)}


def _of_summary(summary: EnvironmentSummary) -> Answer:
    """Return an environment with its light and the sentence about it."""
    fields = _fields(summary)
    fields.pop("stamp", None)  # says nothing to anybody else
    return {**fields, "light": summary.light.value, "state": render(summary.state)}


def _fields(record: object) -> Answer:
    plain = with_words(record)
    return plain if isinstance(plain, dict) else {}

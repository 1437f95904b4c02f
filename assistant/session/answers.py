"""What commands answer as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from assistant.i18n import render
from assistant.install import Prepared
from assistant.model.finding import Diagnosis
from assistant.model.machine import Machine
from assistant.model.plan import Planning
from assistant.model.record import Record, render_messages, replace
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
        answer["project"] = render_messages(project)
    if why:
        answer["explanation"] = [render(line) for line in explain(planning, machine)]
    return answer


def of_log(log: Log, machine: Machine, diagnoses: Iterable[Diagnosis]) -> Answer:
    """Return the causes of what a log shows, or what can be said without one."""
    from assistant.session.diagnosis import unexplained  # noqa: PLC0415 - `plan` needs no rules of causes

    found = tuple(diagnoses)
    rest = Unexplained() if found else unexplained(log, machine)
    more = {"unexplained": render_messages(rest)} if rest != Unexplained() else {}
    return {"diagnoses": render_messages(found), **more}


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
    return {name: render_messages(value) for name, value in answer.items()}


def of_environments(survey: Survey) -> Answer:
    """Return the environments that were found."""
    every = [_of_summary(row) for row in survey.environments]
    notes = {"notes": render_messages(survey.notes)} if survey.notes else {}
    return {"environments": every, "cut_short": survey.cut_short, **notes}


def of_environment(summary: EnvironmentSummary, survey: Survey, repair: Repair | None = None) -> Answer:
    """Return what is known of an environment, and the change that was worked out for it."""
    change, notes = {}, survey.notes
    if repair:
        difference = repair.difference
        change = {"path": repair.path, "moves": difference.moves, "download_bytes": difference.download}
        change |= {"mends": repair.mends, "remains": repair.remains}
        notes = (*difference.findings, *notes)
    words = {name: render_messages(value) for name, value in change.items()}
    return {**words, "notes": render_messages(notes), "environment": _of_summary(summary)}


def _of_summary(summary: EnvironmentSummary) -> Answer:
    """Return an environment with its light and the sentence about it."""
    fields = _fields(summary)
    fields.pop("stamp", None)  # says nothing to anybody else
    return {**fields, "light": summary.light.value, "state": render(summary.state)}


def _fields(record: object) -> Answer:
    plain = render_messages(record)
    return plain if isinstance(plain, dict) else {}

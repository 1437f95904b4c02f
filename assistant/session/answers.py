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
from assistant.session.state import EnvironmentSummary, Repair, State, Survey, Unexplained

if TYPE_CHECKING:
    from assistant.diagnose import Log

Answer = dict[str, object]


def plans_answer(planning: Planning, machine: Machine, project: Record | None = None, *, why: bool = False) -> Answer:
    """Return the fields of the plans for a machine, and as "project" the project that they are for, if there is one.

    With `why`, the lines of the reasoning are added as "explanation".
    """
    answer = _as_json_fields(planning)
    if project:
        answer["project"] = render_messages(project)
    if why:
        answer["explanation"] = [render(line) for line in explain(planning, machine)]
    return answer


def log_answer(log: Log, machine: Machine, diagnoses: Iterable[Diagnosis], origin: str = "given") -> Answer:
    """Return what a log states as "facts", causes as "diagnoses"; without any, what else it shows as "unexplained".

    "diagnoses" are the likely causes. "possible" are, in short, all that are not sure enough to be acted on before
    their evidence is seen. `origin` is whose machine the log comes from (see `log_origin`), "given" if a machine was
    given with it.
    """
    from assistant.session.diagnosis import explain_unknown, facts_in  # noqa: PLC0415 - `plan` needs no rules of causes

    found = tuple(diagnoses)
    causes = [_as_json_fields(cause) for cause in found if cause.likely]
    brief = ("key", "title", "evidence", "confidence")
    possible = [{name: _as_json_fields(cause)[name] for name in brief} for cause in found if not cause.sure]
    facts = [{"key": "origin", "value": origin}, *facts_in(log)]
    rest = Unexplained() if causes else explain_unknown(log, machine)
    more = {"unexplained": render_messages(rest)} if rest != Unexplained() else {}
    return {"facts": render_messages(facts), "diagnoses": causes, "possible": possible, **more}


def preview_answer(preview: Prepared | None) -> Answer:
    """Return the fields of what an installation would do, `site` as null; {} without a preview."""
    return _as_json_fields(replace(preview, site=None)) if preview else {}


def setup_answer(state: State) -> Answer:
    """Return what a setup has chosen and found, by "statuses", "request" and so on; None for what is not there yet."""
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


def environments_answer(survey: Survey) -> Answer:
    """Return "environments" as they were found, "cut_short" for a search that was, and "notes" if there are any."""
    every = [_summary_answer(row) for row in survey.environments]
    notes = {"notes": render_messages(survey.notes)} if survey.notes else {}
    return {"environments": every, "cut_short": survey.cut_short, **notes}


def environment_answer(summary: EnvironmentSummary, survey: Survey, repair: Repair | None = None) -> Answer:
    """Return an "environment" and its "notes"; for a repair of it, also what the repair changes.

    That is "path", "moves", "download_bytes", "mends" (findings that it fixes) and "remains" (those that it does not).
    """
    change, notes = {}, survey.notes
    if repair:
        difference = repair.difference
        change = {"path": repair.path, "moves": difference.moves, "download_bytes": difference.download}
        change |= {"mends": repair.mends, "remains": repair.remains}
        notes = (*difference.findings, *notes)
    words = {name: render_messages(value) for name, value in change.items()}
    return {**words, "notes": render_messages(notes), "environment": _summary_answer(summary)}


def _summary_answer(summary: EnvironmentSummary) -> Answer:
    """Return the fields of an environment, with its "light" and as "state" the sentence about it."""
    fields = _as_json_fields(summary)
    fields.pop("stamp", None)  # says nothing to anybody else
    return {**fields, "light": summary.light.value, "state": render(summary.state)}


def _as_json_fields(record: object) -> Answer:
    plain = render_messages(record)
    return plain if isinstance(plain, dict) else {}

"""`assistant diagnose`: the causes behind a log, with their ways out."""

from __future__ import annotations

from pathlib import Path

import click

from assistant.cli.inputs import host_of, read_file
from assistant.detect import detect
from assistant.diagnose import Log, nearest, read_log
from assistant.host.redact import redact_text
from assistant.i18n import _
from assistant.model.errors import AssistantError, BadInput, WorkFailed
from assistant.model.finding import Diagnosis
from assistant.model.machine import Machine
from assistant.model.record import Record, from_json, to_json
from assistant.session.diagnosis import diagnosed, diagnosed_lines, machine_of_log

__all__ = ["diagnose"]

MOST = 3  # causes that are drawn
REPORTED = 80  # last lines of a log that go into a report


class Case(Record, frozen=True):
    """A line of a batch: a log and the machine that it comes from."""

    log: str
    machine: Machine = Machine()


@click.command()
@click.argument("log", required=False)
@click.option("--batch", metavar="FILE.jsonl", help="Many logs, one JSON object a line; one answer a line.")
@click.option("--machine", metavar="FILE", help="The machine that the log comes from, as `detect --json` prints it.")
@click.option("--replay", metavar="FILE", help="The same as a recording: a file, or the name of a shipped one.")
@click.option("--report", metavar="FILE.md", help="Write a report for an issue, private things removed.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def diagnose(
    log: str | None, batch: str | None, machine: str | None, replay: str | None, report: str | None, *, as_json: bool
) -> None:
    """Find the cause of a failure in a log ('-' for standard input)."""
    if batch:
        _batch(read_file(batch))
        return
    if log is None:
        hint = _("Example: assistant diagnose error.log")
        raise BadInput(_("Name a log file, or '-' for standard input."), hint=hint)
    read = read_log(read_file(log))
    facts = _machine(read, machine, replay)
    found = diagnosed_lines(read, facts)
    if report:
        _write_report(report, read, facts, [diagnosis for diagnosis, _line in found])
    if as_json:
        click.echo(to_json(_answer(tuple(diagnosis for diagnosis, _line in found)), indent=2))
    else:
        _draw(read, found)


def _machine(log: Log, machine: str | None, replay: str | None) -> Machine:
    if machine:
        return from_json(read_file(machine), Machine, machine)
    found = detect(host_of(replay)).machine
    return found if replay else machine_of_log(log, found)


def _batch(data: bytes) -> None:
    for line in data.splitlines():
        if line.strip():
            click.echo(_answered(line))


def _answered(line: bytes) -> str:
    try:
        case = from_json(line, Case, _("This line"))
        return to_json(_answer(diagnosed(read_log(case.log), case.machine)))
    except AssistantError as error:
        return to_json({"error": error.message})


def _answer(diagnoses: tuple[Diagnosis, ...]) -> dict[str, tuple[Diagnosis, ...]]:
    return {"diagnoses": diagnoses}


def _draw(log: Log, found: tuple[tuple[Diagnosis, int | None], ...]) -> None:
    from assistant.cli.draw_diagnosis import draw_diagnoses, draw_unknown  # noqa: PLC0415 - --json needs no drawing

    if found:
        draw_diagnoses(log, found[:MOST])
    else:
        draw_unknown(nearest(log))


def _write_report(name: str, log: Log, machine: Machine, found: list[Diagnosis]) -> None:
    lines = "\n".join(line for _number, line in log.lines[-REPORTED:]).replace("```", "'''")
    facts = to_json(machine, indent=2)
    keys = ", ".join(f"{diagnosis.key} ({diagnosis.confidence:g})" for diagnosis in found) or "none"
    text = f"Causes found: {keys}\n\n## Machine\n\n```json\n{facts}\n```\n\n## Log\n\n```text\n{lines}\n```\n"
    try:
        Path(name).write_text(redact_text(text), encoding="utf-8")
    except OSError as error:
        message = _("{file} cannot be written: {reason}.").format(file=name, reason=error.strerror)
        raise WorkFailed(message, hint=_("Choose another place.")) from error

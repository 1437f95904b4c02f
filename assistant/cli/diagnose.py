"""`assistant diagnose`: the causes behind a log, with their ways out."""

from __future__ import annotations

import click

from assistant.cli.inputs import host_of, only_one, print_answers, read_file, write_file
from assistant.cli.terminal import echo, echo_json
from assistant.detect import detect
from assistant.diagnose import Log, nearest, read_log
from assistant.i18n import _, say
from assistant.model.errors import BadInput
from assistant.model.finding import Diagnosis
from assistant.model.machine import Detection, Machine
from assistant.model.record import Record, from_json
from assistant.session.diagnosis import diagnosed, diagnosed_lines, inquiry, machine_of_log
from assistant.session.doctor import judged

MOST = 3  # causes that are drawn


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
    only_one(machine=machine, replay=replay, batch=batch)
    if batch and log:
        raise click.UsageError(say("--batch reads logs from its own file, so no LOG goes with it."))
    if batch:
        print_answers(read_file(batch), _answered)
        return
    if log is None:
        hint = say("Example: `assistant diagnose error.log`")
        raise BadInput(_("Name a log file, or '-' for standard input."), hint=hint)
    read = read_log(read_file(log))
    facts = _machine(read, machine, replay)
    found = diagnosed_lines(read, facts)
    if report:
        write_file(report, inquiry(read, facts, [diagnosis for diagnosis, _line in found]))
    if as_json:
        echo_json(_answer(tuple(diagnosis for diagnosis, _line in found)))
    else:
        _draw(read, found)
        _draw_also(facts if machine or replay else None, {diagnosis.key for diagnosis, _line in found})


def _machine(log: Log, machine: str | None, replay: str | None) -> Machine:
    if machine:
        return from_json(read_file(machine), Machine, machine)
    found = detect(host_of(replay)).machine
    return found if replay else machine_of_log(log, found)


def _answered(line: bytes) -> object:
    case = from_json(line, Case, say("This line"))
    return _answer(diagnosed(read_log(case.log), case.machine))


def _answer(diagnoses: tuple[Diagnosis, ...]) -> dict[str, tuple[Diagnosis, ...]]:
    return {"diagnoses": diagnoses}


def _draw(log: Log, found: tuple[tuple[Diagnosis, int | None], ...]) -> None:
    from assistant.cli.draw_diagnosis import draw_diagnoses, draw_unknown  # noqa: PLC0415 - --json needs no drawing

    if found:
        draw_diagnoses(log, found[:MOST])
    elif log.text.strip():
        draw_unknown(nearest(log))
    else:
        echo(say("This log is empty."))


def _draw_also(machine: Machine | None, told: set[str]) -> None:
    """Say what else is wrong on a machine that was given with the log."""
    from assistant.cli.draw import draw_findings  # noqa: PLC0415 - likewise

    found = judged(Detection(machine=machine)) if machine else ()
    draw_findings([each for each in found if each.wrong and each.key not in told])

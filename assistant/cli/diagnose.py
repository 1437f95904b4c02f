"""`assistant diagnose`: the causes behind a log, with their fixes."""

from __future__ import annotations

from collections.abc import Mapping

import click

from assistant.cli.inputs import (
    host_of,
    only_one,
    print_answers,
    read_file,
    read_lines,
    read_text,
    replay_option,
    write_file,
)
from assistant.cli.terminal import echo, echo_json, json_option
from assistant.detect import detect
from assistant.diagnose import Log, read_log
from assistant.i18n import _, say
from assistant.model.errors import BadInput
from assistant.model.finding import Diagnosis
from assistant.model.machine import Detection, Machine
from assistant.model.record import Record, from_json
from assistant.session.answers import of_log
from assistant.session.diagnosis import diagnosed_lines, machine_of_log, placed_causes, unexplained
from assistant.session.doctor import judged


class Case(Record, frozen=True):
    """A line of a batch: a log and the machine that it comes from."""

    log: str
    machine: Machine = Machine()


@click.command()
@click.argument("log", required=False)
@click.option(
    "--batch", metavar="FILE.jsonl", help="Diagnose many logs: one JSON object per line, one answer per line."
)
@click.option("--machine", metavar="FILE", help="The machine that the log comes from, as `detect --json` prints it.")
@replay_option
@click.option(
    "--report",
    metavar="FILE.md",
    help="Write the answer and the log as Markdown to ask for help with, private data removed.",
)
@click.option(
    "--share", metavar="FILE.html", help="Write the answer as a page to send to somebody, private data removed."
)
@json_option
def diagnose(
    log: str | None,
    batch: str | None,
    machine: str | None,
    replay: str | None,
    *,
    as_json: bool,
    **files: str | None,
) -> None:
    """Find the cause of a failure in a log ('-' for standard input)."""
    only_one(machine=machine, replay=replay, batch=batch)
    if batch and log:
        raise click.UsageError(say("--batch reads its logs from a file and cannot be combined with LOG."))
    if batch:
        print_answers(read_lines(batch), _of_line)
        return
    if log is None:
        hint = say("Example: `assistant diagnose error.log`")
        raise BadInput(_("Name a log file, or '-' for standard input."), hint=hint)
    read = read_log(read_file(log))
    if machine:
        known = from_json(read_text(machine), Machine, machine)
    else:
        found = detect(host_of(replay)).machine
        known = found if replay else machine_of_log(read, found)
    causes = placed_causes(diagnosed_lines(read, known), read, known)
    diagnoses = tuple(diagnosis for diagnosis, _line in causes)
    _write(files, read, known, causes)
    if as_json:
        echo_json(of_log(read, known, diagnoses))
        return
    from assistant.cli.draw import (  # noqa: PLC0415 - --json needs no drawing
        draw_diagnoses,
        draw_findings,
        draw_unknown,
    )

    if causes:
        draw_diagnoses(causes, read, known.os)
    elif read.text.strip():
        draw_unknown(unexplained(read, known))
    else:
        echo(say("This log is empty."))
    if machine or replay:  # what else is wrong on the machine that was given with the log
        keys = {diagnosis.key for diagnosis in diagnoses}
        judged_here = judged(Detection(machine=known))
        draw_findings([each for each in judged_here if each.wrong and each.key not in keys])


def _write(
    files: Mapping[str, str | None], log: Log, machine: Machine, causes: tuple[tuple[Diagnosis, int | None], ...]
) -> None:
    """Write the files that were asked for, by their options."""
    if report := files["report"]:
        from assistant.session.causes import log_report  # noqa: PLC0415 - most ask for no file

        found = (diagnosis for diagnosis, _line in causes)
        write_file(report, log_report(log, machine, found))
    if share := files["share"]:
        from assistant.cli.share import share_page  # noqa: PLC0415 - likewise

        write_file(share, share_page(log, machine, causes))


def _of_line(line: str) -> object:
    case = from_json(line, Case, say("This line"))
    read = read_log(case.log)
    causes = placed_causes(diagnosed_lines(read, case.machine), read, case.machine)
    return of_log(read, case.machine, (diagnosis for diagnosis, _line in causes))

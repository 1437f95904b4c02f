"""`assistant diagnose` and `doctor`: the causes behind a log, what is wrong with a machine, and a report to paste."""

from __future__ import annotations

from pathlib import Path

import click

from assistant import addons
from assistant.cli.commands import translate
from assistant.cli.options import refuse_several
from assistant.cli.terminal import (
    echo,
    echo_json,
    find_host,
    json_option,
    print_answers,
    read_file,
    read_lines,
    read_text,
    replay_option,
    write_file,
)
from assistant.detect import detect
from assistant.diagnose import read_log
from assistant.host.files import full_path
from assistant.i18n import _, ngettext, say
from assistant.install import EnvironmentFolder, Site
from assistant.model.errors import BadInput
from assistant.model.machine import Detection, Machine
from assistant.model.record import Record, from_json, replace
from assistant.session.answers import log_answer
from assistant.session.diagnosis import (
    causes_for_log_python,
    explain_unknown,
    facts_line,
    find_causes_and_lines,
    log_origin,
    log_report,
    machine_of_log,
)
from assistant.session.environments import examine, machine_findings


class Case(Record, frozen=True):
    """A line of a batch: a log and the machine that it comes from, unless the log itself speaks against that."""

    log: str
    machine: Machine = Machine()


@click.command()
@click.argument("log", required=False, type=click.Path())
@click.option(
    "--batch", metavar="FILE.jsonl", help="Diagnose many logs: one JSON object per line, one answer per line."
)
@click.option("--machine", metavar="FILE", help="The machine that the log comes from, as `detect --json` prints it.")
@replay_option
@click.option(
    "--report",
    metavar="FILE.md",
    help="Write the answer and the lines that show it as Markdown to ask for help with, private data removed.",
)
@json_option
def diagnose(
    log: str | None,
    batch: str | None,
    machine: str | None,
    replay: str | None,
    report: str | None,
    *,
    as_json: bool,
) -> None:
    """Find the cause of a failure in a log ('-' for standard input)."""
    refuse_several(machine=machine, replay=replay, batch=batch)
    if batch and log:
        raise click.UsageError(say("--batch reads its logs from a file and cannot be combined with LOG."))
    if batch:
        print_answers(read_lines(batch), _answer_line)
        return
    if log is None:
        hint = say("Example: `assistant diagnose error.log`")
        raise BadInput(_("Name a log file, or '-' for standard input."), hint=hint)
    read = read_log(read_file(log))
    its_machine = from_json(read_text(machine), Machine, machine) if machine else detect(find_host(replay)).machine
    origin = log_origin(read, its_machine)
    given = bool(machine or replay) and origin != "other"
    its_machine = its_machine if given else machine_of_log(read, its_machine, origin)
    causes = causes_for_log_python(find_causes_and_lines(read, its_machine), read, its_machine)
    diagnoses = tuple(diagnosis for diagnosis, _line in causes)
    if report:
        write_file(report, log_report(read, its_machine, causes))
    if as_json:
        echo_json(log_answer(read, its_machine, diagnoses, "given" if given else origin))
        return
    from assistant.cli.draw import (  # noqa: PLC0415 - --json needs no drawing
        draw_diagnoses,
        draw_facts,
        draw_findings,
        draw_question,
        draw_unknown,
    )

    draw_facts(facts_line(read), elsewhere=origin == "other")
    if causes:
        draw_diagnoses(causes, read, its_machine.os)
        draw_question(None if diagnoses[0].sure else explain_unknown(read, its_machine, guessing=False).question)
    elif read.text.strip():
        draw_unknown(explain_unknown(read, its_machine))
    else:
        echo(say("This log is empty."))
    if given:  # what else is wrong on the machine that was given with the log
        keys = {diagnosis.key for diagnosis in diagnoses}
        judged_here = machine_findings(Detection(machine=its_machine))
        draw_findings([each for each in judged_here if each.wrong and each.key not in keys])


def _answer_line(line: str) -> object:
    """Return the answer to a line of a batch, `{"log": …, "machine": …}`: the machine, where the log is from, causes.

    A log that speaks against the given machine is judged by what it says of its own. Raises `BadInput` for other text.
    """
    case = from_json(line, Case, say("This line"))
    read = read_log(case.log)
    is_other = log_origin(read, case.machine) == "other"
    machine = machine_of_log(read, case.machine, "other") if is_other else case.machine
    causes = causes_for_log_python(find_causes_and_lines(read, machine), read, machine)
    origin = "other" if is_other else "given" if case.machine != Machine() else "unknown"
    return log_answer(read, machine, (diagnosis for diagnosis, _line in causes), origin)


@click.command()
@click.argument("what", required=False, type=click.Path())
@replay_option
@click.option("--verbose", "-v", is_flag=True, help="Show remedies for every line, not only for problems.")
@json_option
@click.pass_context
def doctor(context: click.Context, /, what: str | None, replay: str | None, *, verbose: bool, as_json: bool) -> None:
    """Find out what is wrong, and what helps.

    WHAT is an environment's folder, a log ('-' for standard input), an assistant.toml or an ONNX model; without it,
    this machine is checked.
    """
    site = None
    if what and not (Path(what).is_dir() or Path(what).name.startswith("python")):
        _run_for_file(context, what, replay, as_json=as_json)
        return
    if what and replay:
        raise click.UsageError(say("An environment is of this machine and cannot be combined with --replay."))
    host = find_host(replay)
    if what:
        environment = EnvironmentFolder.from_target(str(full_path(what)), host)
        if not environment.exists:
            raise environment.not_an_environment_error()
        site = Site.ask(environment.path, host)
    findings = examine(host, site)
    if as_json:
        echo_json({"findings": findings})
        return
    from assistant.cli.draw import draw_findings  # noqa: PLC0415 - --json need not load the drawing library

    draw_findings(
        finding if finding.wrong or verbose else replace(finding, evidence=(), remedies=()) for finding in findings
    )
    wrong = sum(finding.wrong for finding in findings)
    text = ngettext("{count} problem found.", "{count} problems found.", wrong) if wrong else _("No problems found.")
    echo(text)


def _run_for_file(context: click.Context, file: str, replay: str | None, *, as_json: bool) -> None:
    """Run the command for a file by its suffix: `check` for .toml, the ONNX add-on for .onnx, else `diagnose`.

    `check` compares without verifying; `replay` counts for a log and a configuration. The first two end with their own
    exit codes, by raising click's `Exit`. Raises `BadInput` where the ONNX extra is missing.
    """
    kind = Path(file).suffix.lower()
    if kind == ".toml":
        from assistant.cli.apply import check  # noqa: PLC0415 - draws in the export

        context.invoke(check, config=file, replay=replay, no_verify=True, as_json=as_json)
    elif kind == ".onnx":
        onnx: click.Command = addons.load_from_extra(addons.COMMANDS, "onnx", extra="onnx")
        words = ["check", file, *(["--json"] if as_json else [])]
        context.exit(translate(onnx).main(words, context.command_path, standalone_mode=False) or 0)
    else:
        context.invoke(diagnose, log=file, replay=replay, as_json=as_json)

"""`assistant diagnose` and `doctor`: the causes behind a log, what is wrong with a machine, and a report to paste."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import click

from assistant import __version__, addons
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
from assistant.diagnose import Log, read_log
from assistant.host.files import full_path
from assistant.host.live import private_names_here
from assistant.i18n import _, as_typed, ngettext, render, say
from assistant.install import EnvironmentFolder, Site
from assistant.model.errors import BadInput
from assistant.model.finding import Diagnosis, Remedy
from assistant.model.machine import Detection, Machine
from assistant.model.record import Record, from_json, replace
from assistant.model.shell import shell_of
from assistant.model.visible import Markup, joined, tag, visible, web_page
from assistant.privacy import redact
from assistant.session.answers import log_answer
from assistant.session.diagnosis import (
    causes_for_log_python,
    explain_unknown,
    facts_line,
    find_causes_and_lines,
    lines_that_tell,
    log_origin,
    log_report,
    machine_of_log,
)
from assistant.session.environments import examine, machine_findings
from assistant.views import machine_rows, remedy_blocks


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
    given = bool(machine or replay)
    origin = "given" if given else log_origin(read, its_machine)
    its_machine = its_machine if given else machine_of_log(read, its_machine, origin)
    causes = causes_for_log_python(find_causes_and_lines(read, its_machine), read, its_machine)
    diagnoses = tuple(diagnosis for diagnosis, _line in causes)
    if report := files["report"]:
        write_file(report, log_report(read, its_machine, causes))
    if share := files["share"]:
        write_file(share, share_page(read, its_machine, causes))
    if as_json:
        echo_json(log_answer(read, its_machine, diagnoses, origin))
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
        draw_question(None if diagnoses[0].sure else explain_unknown(read, its_machine).question)
    elif read.text.strip():
        draw_unknown(explain_unknown(read, its_machine))
    else:
        echo(say("This log is empty."))
    if machine or replay:  # what else is wrong on the machine that was given with the log
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


CAUSES = 3  # chosen, as in the terminal
TYPICAL = _("Lines like these are typical of this cause.")
LIKELY = _("This is a likely cause, but lines like these can have other causes, too.")
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
SHEET = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 1.5rem; overflow-wrap: anywhere; } main { max-width: 52rem; margin: auto; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2rem; }
pre { overflow-x: auto; padding: 0.7rem; border: 1px solid #8886; border-radius: 4px; font-size: 0.85rem; }
th { text-align: left; vertical-align: top; padding-right: 1.5rem; font-weight: 600; }
mark { background: #f5c8c8; color: #5c0000; } li { margin-bottom: 0.5rem; } footer { margin-top: 2rem; opacity: 0.8; }
"""


def share_page(log: Log, machine: Machine, causes: Iterable[tuple[Diagnosis, int | None]]) -> str:
    """Return a web page, without secrets: the first `CAUSES` causes of a log, the machine, and the report in Markdown.

    Each cause has the lines of the log that show it (it comes with its line's index), remedies and sources. Without
    causes there are symptoms, findings and a next step.
    """
    found, known = tuple(islice(causes, CAUSES)), private_names_here()
    shown: tuple[Diagnosis, ...] = redact(tuple(cause for cause, _line in found), known=known)
    here: Machine = redact(machine, known=known)
    parts: list[str] = []
    for cause, (_cause, index) in zip(shown, found, strict=True):
        near: list[tuple[int, str]] = [] if index is None else redact(lines_that_tell(log, (index,)), known=known)
        marked = 0 if index is None else log.lines[index][0]
        width = len(str(near[-1][0])) if near else 0
        lines = [
            tag("mark" if number == marked else "span", f"{number:>{width}}  {visible(text)}") + "\n"
            for number, text in near
        ]
        parts += [
            tag("h2", cause.title) if parts else "",
            tag("pre", *lines) if lines else "",
            tag("p", cause.cause),
            tag("p", f"{render(TYPICAL if cause.sure else LIKELY)} ({cause.confidence:.0%})"),
            tag("h3", say("What helps")),
            tag("ol", *(_remedy_markup(remedy, here) for remedy in cause.remedies)),
            tag("h3", say("Sources")),
            tag("ul", *(tag("li", tag("a", source, href=source, rel="noreferrer")) for source in cause.sources)),
        ]
    if not shown:
        answer = redact(explain_unknown(log, here), known=known)
        parts += [tag("p", finding.text) for finding in (*answer.symptoms, *answer.findings)]
        parts += [tag("ul", _remedy_markup(answer.question, here))] if answer.question else []
    rows = machine_rows(here, hide=() if here.gpus else {"gpu"})  # that none was found is not said where nobody looked
    parts += [
        tag("h2", say("The computer")),
        tag("table", *(tag("tr", tag("th", label, scope="row"), tag("td", value)) for label, value in rows)),
        tag("h2", say("As Markdown")),
        tag("details", tag("summary", say("Show the report")), tag("pre", log_report(log, machine, found))),
        tag("footer", _("Written by torch-setup-assistant {version}; private data was removed.", version=__version__)),
    ]
    title = as_typed(shown[0].title) if shown else say("No known problem matches this log.")
    return web_page(title, POLICY, SHEET, joined(parts))


def _remedy_markup(remedy: Remedy, machine: Machine) -> Markup:
    """Return a remedy as an item of a list: its sentence, what to set, type or change, how to check that it worked."""
    parts: list[Markup] = []
    for _kind, lead, lines in remedy_blocks(remedy, shell_of(machine.os)):
        parts += [tag("p", lead)] if lead else []
        parts.append(tag("pre", "\n".join(map(as_typed, lines))))
    return tag("li", as_typed(remedy.text), *parts)

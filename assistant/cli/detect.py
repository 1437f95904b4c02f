"""`assistant detect`: the facts of this machine, of a recording, or of a pasted report."""

from __future__ import annotations

from pathlib import Path

import click

from assistant.cli.terminal import echo_json, find_host, json_option, read_text, replay_option, write_file
from assistant.detect import detect as detect_machine
from assistant.detect import override_facts, read_report
from assistant.host.base import RecordingHost, write_recording
from assistant.i18n import _, say
from assistant.model.errors import BadInput
from assistant.model.finding import Severity
from assistant.model.record import replace


@click.command()
@click.option(
    "--record",
    metavar="FILE",
    help="Save everything read from the machine, and what was found, to a file for --replay, private data removed.",
)
@replay_option
@click.option("--from", "report", metavar="PASTED.txt", help="Read a pasted report instead ('-' for standard input).")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="FACT=VALUE",
    help="Override a fact, such as nvidia_driver=580.95; may be given several times.",
)
@json_option
def detect(
    record: str | None,
    replay: str | None,
    report: str | None,
    overrides: tuple[str, ...],
    *,
    as_json: bool,
) -> None:
    """Find out what this machine is: its system, GPUs, drivers and Python."""
    if report and (record or replay):
        raise click.UsageError(say("--from reads a text and cannot be combined with --record or --replay."))
    facts = dict(map(_split_fact, overrides))
    if report:
        found = override_facts(read_report(read_text(report)), facts)
    elif record:
        recorder = RecordingHost(find_host(replay))
        found = detect_machine(recorder, overrides=facts)
        write_file(record, write_recording(recorder, Path(record).stem))
    else:
        found = detect_machine(find_host(replay), overrides=facts, judging=not as_json)
    if as_json:
        echo_json(found.machine)
        return
    from assistant.cli.draw import draw_detection  # noqa: PLC0415 - --json need not load the drawing library
    from assistant.session.environments import machine_findings  # noqa: PLC0415 - likewise

    findings = tuple(finding for finding in machine_findings(found) if finding.severity is not Severity.OK)
    draw_detection(replace(found, findings=findings))  # what is well, `assistant doctor` says


def _split_fact(text: str) -> tuple[str, str]:
    """Return the name and the value of a fact; raise `BadInput` for a text of another form."""
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise BadInput(
            _("'{text}' is not of the form FACT=VALUE.", text=text),
            hint=_("Example: --set nvidia_driver=580.95"),
        )
    return name, value

"""`assistant detect`: the facts of this machine, of a recording, or of a pasted report."""

from __future__ import annotations

from pathlib import Path

import click

from assistant.cli.inputs import host_of, read_file, write_file
from assistant.cli.terminal import echo_json
from assistant.detect import detect as detect_machine
from assistant.detect import overridden, read_report
from assistant.host.recording import RecordingHost, write_recording
from assistant.i18n import _, say
from assistant.model.errors import BadInput
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Detection
from assistant.model.record import replace


@click.command()
@click.option("--record", metavar="FILE", help="Write every question and raw answer to a file, private things removed.")
@click.option("--replay", metavar="FILE", help="Look at a recorded machine: a file, or the name of a shipped one.")
@click.option("--from", "report", metavar="PASTED.txt", help="Read a pasted report ('-' for standard input).")
@click.option("--set", "overrides", multiple=True, metavar="FACT=VALUE", help="Set a fact yourself.")
@click.option("--json", "as_json", is_flag=True, help="Print the machine as JSON.")
def detect(
    record: str | None, replay: str | None, report: str | None, overrides: tuple[str, ...], *, as_json: bool
) -> None:
    """Find out what this machine is."""
    if report and (record or replay):
        raise click.UsageError(say("--from reads a text, so --record and --replay do not go with it."))
    facts = dict(map(_pair, overrides))
    found = overridden(_read(report), facts) if report else _look(record, replay, facts)
    if as_json:
        echo_json(found.machine)
    else:
        from assistant.cli.draw import draw_detection  # noqa: PLC0415 - --json need not load the drawing library

        draw_detection(replace(found, findings=_bad_news(found)))


def _bad_news(found: Detection) -> tuple[Finding, ...]:
    """Judge the machine; good news is told by `assistant doctor`."""
    from assistant.session.doctor import judged  # noqa: PLC0415 - --json need not judge

    return tuple(finding for finding in judged(found) if finding.severity is not Severity.OK)


def _read(report: str) -> Detection:
    from assistant.parsers.decode import text_pieces  # noqa: PLC0415 - looking at the machine itself needs no decoder

    return read_report("".join(text_pieces(read_file(report))))


def _look(record: str | None, replay: str | None, overrides: dict[str, str]) -> Detection:
    host = host_of(replay)
    if record is None:
        return detect_machine(host, overrides=overrides)
    recorder = RecordingHost(host)
    found = detect_machine(recorder, overrides=overrides)
    write_file(record, write_recording(recorder, Path(record).stem))
    return found


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise BadInput(
            _("'{text}' is not of the form FACT=VALUE.", text=text),
            hint=_("Example: --set nvidia_driver=580.95"),
        )
    return name, value

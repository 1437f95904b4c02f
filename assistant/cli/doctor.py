"""`assistant doctor`: every check of the machine as it stands, one line each."""

from __future__ import annotations

import click

from assistant.cli.console import console
from assistant.cli.inputs import host_of
from assistant.cli.terminal import echo_json
from assistant.host.base import Host
from assistant.i18n import _, ngettext, render, say
from assistant.install import Site, find_target
from assistant.model.errors import BadInput
from assistant.model.finding import Finding
from assistant.session.doctor import examine


@click.command()
@click.option("--replay", metavar="FILE", help="Look at a recorded machine: a file, or the name of a shipped one.")
@click.option("--target", metavar="PATH", help="An environment to judge instead of the Python at hand.")
@click.option("--verbose", "-v", is_flag=True, help="Show remedies and evidence of every line.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(replay: str | None, target: str | None, *, verbose: bool, as_json: bool) -> None:
    """Check the machine as it stands: one line for each check, with ways out."""
    if replay and target:
        raise click.UsageError(say("--target names an environment of this machine, so --replay does not go with it."))
    host = host_of(replay)
    findings = examine(host, _site(target, host) if target else None)
    if as_json:
        echo_json({"findings": findings})
        return
    from assistant.cli.draw import draw_findings  # noqa: PLC0415 - --json need not load the drawing library

    for finding in findings:
        draw_findings([finding if finding.wrong or verbose else _folded(finding)])
    wrong = sum(finding.wrong for finding in findings)
    text = ngettext("{count} thing to mend.", "{count} things to mend.", wrong) if wrong else _("Nothing to mend.")
    console.print(render(text), markup=False)


def _site(target: str, host: Host) -> Site:
    """Look at an environment; raise `BadInput` where there is none."""
    folder, site = find_target(target, host)
    if site is None:
        raise BadInput(
            _("{path} is not an environment.", path=folder),
            hint=_("Give the folder of a virtual environment, or its Python."),
        )
    return site


def _folded(finding: Finding) -> Finding:
    return Finding(key=finding.key, severity=finding.severity, text=finding.text)

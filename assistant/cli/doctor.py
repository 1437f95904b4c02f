"""`assistant doctor`: every check of the machine as it stands, one line each."""

from __future__ import annotations

import click

from assistant.cli.inputs import host_of, replay_option
from assistant.cli.terminal import echo, echo_json, json_option
from assistant.host.base import Host
from assistant.i18n import _, ngettext, say
from assistant.install import Site, find_target, not_an_environment
from assistant.model.record import replace
from assistant.session.doctor import examine


@click.command()
@replay_option
@click.option("--target", metavar="PATH", help="Check the packages of this environment, not those of this Python.")
@click.option("--verbose", "-v", is_flag=True, help="Show remedies for every line, not only for problems.")
@json_option
def doctor(replay: str | None, target: str | None, *, verbose: bool, as_json: bool) -> None:
    """Check this machine: one line for each check, with fixes for what is wrong."""
    if replay and target:
        raise click.UsageError(
            say("--target names an environment of this machine and cannot be combined with --replay.")
        )
    host = host_of(replay)
    findings = examine(host, _site(target, host) if target else None)
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


def _site(target: str, host: Host) -> Site:
    """Look at an environment; raise `BadInput` where there is none."""
    folder, site = find_target(target, host)
    if site is None:
        raise not_an_environment(folder)
    return site

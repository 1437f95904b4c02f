"""`assistant doctor`: every check of the machine as it stands, one line each."""

from __future__ import annotations

import click

from assistant.cli.inputs import host_of
from assistant.detect import detect
from assistant.diagnose import check_up
from assistant.diagnose.checks import PROXIES, passed
from assistant.host.base import Host
from assistant.i18n import _, ngettext
from assistant.install.made import replaced_builds
from assistant.model.finding import Finding, Severity
from assistant.model.record import to_json
from assistant.session.diagnosis import with_ways_out

__all__ = ["doctor"]

_RANK = {Severity.OK: 0, Severity.INFO: 1, Severity.WARNING: 2, Severity.ERROR: 3}


@click.command()
@click.option("--replay", metavar="FILE", help="Look at a recorded machine: a file, or the name of a shipped one.")
@click.option("--verbose", "-v", is_flag=True, help="Show remedies and evidence of every line.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(replay: str | None, *, verbose: bool, as_json: bool) -> None:
    """Check the machine as it stands: one line for each check, with ways out."""
    findings = examine(host_of(replay))
    if as_json:
        click.echo(to_json({"findings": findings}, indent=2))
        return
    from assistant.cli.draw import console, draw_findings  # noqa: PLC0415 - --json need not load the drawing library

    for finding in findings:
        bad = _RANK[finding.severity] > _RANK[Severity.INFO]
        draw_findings([finding if bad or verbose else _folded(finding)])
    wrong = sum(_RANK[finding.severity] > _RANK[Severity.INFO] for finding in findings)
    text = ngettext("{count} thing to mend.", "{count} things to mend.", wrong) if wrong else _("Nothing to mend.")
    console.print(text.format(count=wrong), markup=False)


def examine(host: Host) -> tuple[Finding, ...]:
    """Detect a machine and check its facts; a cause that detection tells is not told twice."""
    found = detect(host)
    proxies = {name: answer.text for name in PROXIES if (answer := host.variable(name))}
    told = {finding.key for finding in found.findings}
    checks = [check for check in check_up(found.machine, proxies) if check.key not in told]
    replaced = () if host.replayed else replaced_builds(host)
    news = passed(found.machine, told, live=not host.replayed)
    return with_ways_out((*checks, *news, *found.findings, *replaced), found.machine)


def _folded(finding: Finding) -> Finding:
    return Finding(key=finding.key, severity=finding.severity, text=finding.text)

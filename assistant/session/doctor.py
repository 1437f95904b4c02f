"""Every check of a machine as it stands: what detection finds, what its facts tell, what became of our environments."""

from __future__ import annotations

from assistant.detect import detect
from assistant.diagnose import check_up
from assistant.diagnose.checks import PROXIES, passed
from assistant.host.base import Host
from assistant.install.made import replaced_builds
from assistant.model.finding import Finding
from assistant.session.diagnosis import with_ways_out

__all__ = ["examine"]


def examine(host: Host) -> tuple[Finding, ...]:
    """Detect a machine and check its facts; a cause that detection tells is not told twice."""
    found = detect(host)
    proxies = {name: answer.text for name in PROXIES if (answer := host.variable(name))}
    told = {finding.key for finding in found.findings}
    checks = [check for check in check_up(found.machine, proxies) if check.key not in told]
    replaced = () if host.replayed else replaced_builds(host)
    news = passed(found.machine, told, live=not host.replayed)
    return with_ways_out((*checks, *news, *found.findings, *replaced), found.machine)

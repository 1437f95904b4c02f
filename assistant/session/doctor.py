"""What is wrong on a machine: what detection saw, what stands between it and a better plan, what its facts tell."""

from __future__ import annotations

from collections.abc import Mapping

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.diagnose import check_packages, check_up
from assistant.host.base import Host
from assistant.install import Site, conflicts, replaced_builds
from assistant.model.errors import BadInput
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Detection, Machine
from assistant.model.plan import Backend, Planning, Rejection
from assistant.model.record import replace
from assistant.plan import make_plans
from assistant.session.diagnosis import with_ways_out

PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
# What the user of a machine can mend, by the planner's keys; each state of NVIDIA's driver is one too.
MENDABLE = {
    "devices-hidden",
    "libc-musl",
    "macos-too-old",
    "mps-x86-python-rosetta",
    "python-32bit",
    "python-not-cpython",
    "rocm-wsl-unsupported-gpu",
    "windows-too-old",
}

# What detection sees in WSL, and what then keeps NVIDIA's driver from answering: the cause is told, not its effect.
CAUSES_OF_DRIVER = {"wsl-host-too-old", "wsl-linux-driver-installed"}


def examine(host: Host, site: Site | None = None) -> tuple[Finding, ...]:
    """Detect a machine and judge it, with what became of our environments where it is the one at hand.

    With `site` it is that environment whose packages are judged, not those of the Python at hand.
    """
    found = detect(host)
    if host.replayed:
        return judged(found)
    if site:
        found = replace(found, machine=replace(found.machine, packages=site.versions, python=site.version))
    proxies = {name: answer.text for name in PROXIES if (answer := host.variable(name))}
    return (*judged(found, proxies, live=True), *(conflicts(site, {}) if site else ()), *replaced_builds(host))


def mixed_packages(
    packages: Mapping[str, str], python: str, machine: Machine, *, gpu_plan: bool = True
) -> tuple[Finding, ...]:
    """Judge which packages (name to version) of an environment would not go together on a machine."""
    there = replace(machine, packages=dict(packages), python=python)
    return with_ways_out(check_packages(there, gpu_plan=gpu_plan), there)


def findings_of(site: Site, machine: Machine, *, gpu_plan: bool = True) -> tuple[Finding, ...]:
    """Judge an environment as it stands."""
    return (*mixed_packages(site.versions, site.version, machine, gpu_plan=gpu_plan), *conflicts(site, {}))


def judged(found: Detection, proxies: dict[str, str] | None = None, *, live: bool = False) -> tuple[Finding, ...]:
    """Give all that is to be said about a machine: nothing twice, and nothing that would not change its plan.

    `proxies` are the variables of that name; with `live` the machine is the one at hand.
    """
    machine = found.machine
    try:
        planning = make_plans(machine, load_catalog())
    except BadInput:  # a Python version that nobody can read: what wants to plan will say so
        planning = Planning()
    causes = CAUSES_OF_DRIVER.intersection(finding.key for finding in found.findings)
    obstacles = tuple(finding for finding in _obstacles(planning) if not (causes and finding.key.startswith("nvidia-")))
    seen = {finding.key for finding in obstacles}
    observed = tuple(finding for finding in found.findings if finding.key not in seen)
    checked = check_up(
        replace(machine, env={**(proxies or {}), **machine.env}),
        {finding.key for finding in (*obstacles, *observed)},
        live=live,
        gpu_plan=any(plan.backend is not Backend.CPU for plan in planning.plans),
    )
    return with_ways_out((*checked, *obstacles, *observed), machine)


def _obstacles(planning: Planning) -> tuple[Finding, ...]:
    """Turn what stands against a better plan into findings, one for each key."""
    found = {
        rejection.key: Finding(
            key=rejection.key,
            severity=_severity(rejection, planning),
            text=rejection.why,
            remedies=(Remedy(text=rejection.would_help),) if rejection.would_help else (),
        )
        for rejection in reversed(planning.rejected)
        if _would_be_better(rejection, planning)
    }
    return tuple(reversed(found.values()))


def _severity(rejection: Rejection, planning: Planning) -> Severity:
    """Call news what nobody can mend, or what would only open a newer release of what works already."""
    choice = planning.choice
    if choice is None:
        return Severity.WARNING
    mendable = rejection.key in MENDABLE or rejection.key.startswith("nvidia-")
    return Severity.WARNING if mendable and choice.backend is not rejection.backend else Severity.INFO


def _would_be_better(rejection: Rejection, planning: Planning) -> bool:
    """Tell whether the backend that is kept away would be taken, were it not: backends are listed best first."""
    order = list(Backend)
    return planning.choice is None or order.index(rejection.backend) <= order.index(planning.choice.backend)

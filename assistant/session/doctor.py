"""What is wrong on a machine: what detection saw, what stands between it and a better plan, what its facts tell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from assistant.catalog import load_catalog
from assistant.detect import detect, find_broken_kernels
from assistant.diagnose import load_rules
from assistant.host.base import Host
from assistant.install import EnvironmentFolder, Site
from assistant.model.errors import BadInput
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Detection, Machine
from assistant.model.plan import Backend, Planning
from assistant.model.record import replace
from assistant.plan import make_plans
from assistant.session.diagnosis import add_rule_remedies

# What a user can change, by the planner's keys; each state of NVIDIA's driver is one too.
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
# What detection sees in WSL and what keeps NVIDIA's driver from answering there: the cause is shown, not its effect.
CAUSES_OF_DRIVER = {"wsl-host-too-old", "wsl-linux-driver-installed"}
DISPROVED = {"vc-runtime-missing"}  # by torch that was imported


def examine(host: Host, site: Site | None = None) -> tuple[Finding, ...]:
    """Detect a machine and return all findings about it; a replayed one is judged by its recording alone.

    For the machine at hand these include torch builds that were replaced in environments. With `site`, the packages of
    that environment are judged instead of those of the Python at hand, with its conflicts.
    """
    found = detect(host)
    if host.replayed:
        return machine_findings(found)
    if site:
        found = replace(found, machine=replace(found.machine, packages=site.versions, python=site.version))
    settings = {name: answer.text for name in load_rules().variables if (answer := host.variable(name))}
    found = replace(found, machine=replace(found.machine, env={**settings, **found.machine.env}))
    folders = [Path(site.prefix)] if site else []
    conflicts = EnvironmentFolder(Path(site.prefix)).conflicts(site) if site else ()
    replaced = EnvironmentFolder.find_all_replaced_builds(host, *folders)
    return (*machine_findings(found, live=True), *conflicts, *replaced)


def package_findings(
    packages: Mapping[str, str], python: str, machine: Machine, *, gpu_plan: bool = True
) -> tuple[Finding, ...]:
    """Return findings, with remedies, about `packages` (name to version) that do not go together on a machine.

    `python` is their full version of Python; without `gpu_plan`, a build for the CPU is right even if there is a GPU.
    """
    there = replace(machine, packages=dict(packages), python=python)
    return add_rule_remedies(load_rules().check_up(there, gpu_plan=gpu_plan, of_packages=True), there)


def environment_findings(site: Site, machine: Machine, *, gpu_plan: bool = True) -> tuple[Finding, ...]:
    """Return the findings about what an environment holds now, with unmet requirements (see `package_findings`)."""
    return (
        *package_findings(site.versions, site.version, machine, gpu_plan=gpu_plan),
        *EnvironmentFolder(Path(site.prefix)).conflicts(site),
    )


def findings_still_true(found: Detection, host: Host, *, passed: bool = False) -> tuple[Finding, ...]:
    """Return detection's findings without those that no longer hold: of Jupyter kernels and this Python's packages.

    All others are kept, as they cannot be checked again, except those that a verification that `passed` disproves.
    """
    now = replace(found.machine, packages={name: str(text) for name, text in host.facts("packages").items()})
    wrong = {finding.text for finding in (*find_broken_kernels(host), *load_rules().check_up(now, of_packages=True))}
    asked = (
        {finding.text for finding in load_rules().check_up(found.machine, of_packages=True)}
        if host.ask("packages")
        else set()
    )
    if host.ask("kernels"):
        asked |= {finding.text for finding in found.findings if finding.key == "kernel-broken"}
    asked |= {finding.text for finding in found.findings if passed and finding.key in DISPROVED}
    return tuple(finding for finding in found.findings if finding.text in wrong or finding.text not in asked)


def machine_findings(found: Detection, *, live: bool = False) -> tuple[Finding, ...]:
    """Return all findings about a machine, with remedies: by its facts, on what rules out a better plan, by detection.

    No two of them say the same. `live` says that the machine is the one at hand.
    """
    machine = found.machine
    try:
        planning = make_plans(machine, load_catalog())
    except BadInput:  # nobody can read the version of its Python; what wants to plan for it will say so
        planning = Planning()
    causes = CAUSES_OF_DRIVER.intersection(finding.key for finding in found.findings)
    obstacles = tuple(finding for finding in _obstacles(planning) if not (causes and finding.key.startswith("nvidia-")))
    seen = {finding.key for finding in obstacles}
    observed = tuple(finding for finding in found.findings if finding.key not in seen)
    checked = load_rules().check_up(
        machine,
        {finding.key for finding in (*obstacles, *observed)},
        live=live,
        gpu_plan=any(plan.backend is not Backend.CPU for plan in planning.plans),
    )
    return add_rule_remedies((*checked, *obstacles, *observed), machine)


def _obstacles(planning: Planning) -> tuple[Finding, ...]:
    """Return what rules out a better plan than the chosen one as findings, the first of each key.

    They are warnings, but information if the user cannot change it, or if it would only bring a newer release of what
    works already. If no plan was chosen, every rejection becomes a warning.
    """
    order, choice = list(Backend), planning.choice
    found: dict[str, Finding] = {}
    for rejection in planning.rejected:
        # Backends are listed best first: only those at or before the choice would be taken instead of it.
        if choice and order.index(rejection.backend) > order.index(choice.backend):
            continue
        mendable = rejection.key in MENDABLE or rejection.key.startswith("nvidia-")
        matters = choice is None or (mendable and choice.backend is not rejection.backend)
        finding = Finding(
            key=rejection.key,
            severity=Severity.WARNING if matters else Severity.INFO,
            text=rejection.why,
            remedies=(Remedy(text=rejection.would_help),) if rejection.would_help else (),
        )
        found.setdefault(rejection.key, finding)
    return tuple(found.values())

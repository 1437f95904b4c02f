"""Judges a machine by its facts alone, before anything fails: checks as data, asked as the rules for logs are."""

from __future__ import annotations

from collections.abc import Collection

from assistant.diagnose.predicates import ask, installed_of
from assistant.diagnose.rules import Case, Check, load_rules
from assistant.i18n import _
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Machine, Vendor

# Facts by which a check is known to be about packages.
_ABOUT_PACKAGES = {"packages", "installed", "builds_differ"}


def check_up(
    machine: Machine, known: Collection[str] = (), *, live: bool = False, gpu_plan: bool = True
) -> tuple[Finding, ...]:
    """Judge a machine's facts: one finding for each check that can be answered, unless its key is `known` already."""
    found = (
        _judged(check, machine, live=live, gpu_plan=gpu_plan) for check in load_rules().checks if check.key not in known
    )
    return tuple(finding for finding in found if finding)


def check_packages(machine: Machine, *, gpu_plan: bool = True) -> tuple[Finding, ...]:
    """Return which of a machine's packages do not go together with one another or with its GPUs."""
    asked = [check for check in load_rules().checks if any(_ABOUT_PACKAGES & set(case.facts) for case in check.case)]
    found = (_judged(check, machine, live=False, gpu_plan=gpu_plan) for check in asked)
    return tuple(finding for finding in found if finding and finding.wrong)


def variables() -> tuple[str, ...]:
    """Name the environment variables that checks ask for, which `Machine.env` should hold where they are set."""
    return tuple(
        dict.fromkeys(name for check in load_rules().checks for case in check.case for name in _variables(case))
    )


def _judged(check: Check, machine: Machine, *, live: bool, gpu_plan: bool) -> Finding | None:
    for case in check.case:
        if (case.live and not live) or (case.gpu_plan and not gpu_plan):
            continue
        if all(ask(machine, case.facts).values()) and not any(ask(machine, case.unless).values()):
            installed = _installed(case, machine)
            values = _values(case, machine, installed)
            wrong = case.severity in {Severity.WARNING, Severity.ERROR}
            return Finding(
                key=check.key,
                severity=case.severity,
                text=_(case.text, **{name: value for name, value in values.items() if f"{{{name}}}" in case.text}),
                evidence=tuple(f"{name}=={machine.packages[name]}" for name in installed) if wrong else (),
            )
    return None


def _values(case: Case, machine: Machine, installed: list[str]) -> dict[str, object]:
    """Return what a case's sentence may name, by its placeholders."""
    targets = {gpu.gfx for gpu in machine.gpus if gpu.vendor is Vendor.AMD and gpu.gfx}
    set_here = [name for name in _variables(case) if machine.env.get(name)]
    return {
        "python": machine.python,
        "torch": machine.packages.get("torch"),
        "numpy": machine.packages.get("numpy"),
        "driver": machine.nvidia_driver,
        "gpus": ", ".join(gpu.name or gpu.vendor.value for gpu in machine.gpus),
        "targets": ", ".join(sorted(targets)),
        "memory": machine.memory_gb,
        "disk": machine.disk_free_gb,
        "names": ", ".join(installed),
        "packages": ", ".join(f"{name} {machine.packages[name]}" for name in installed),
        "variables": ", ".join(set_here),
        "value": machine.env.get(set_here[0]) if set_here else None,
    }


def _installed(case: Case, machine: Machine) -> list[str]:
    """Name the packages that a case asks for and that are there."""
    wanted = case.facts.get("installed")
    asked = wanted.get("of") if isinstance(wanted, dict) else case.facts.get("builds_differ")
    return list(installed_of(machine, asked if isinstance(asked, str) else _names(asked)))


def _variables(case: Case) -> list[str]:
    return [name for fact in ("env", "env_any") for name in _names(case.facts.get(fact))]


def _names(value: object) -> list[str]:
    return list(map(str, value)) if isinstance(value, dict | list) else []

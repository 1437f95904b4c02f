"""Diagnoses with all that is known: the reports inside a log, the machine at hand, and real plans for the remedies."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache

from assistant.catalog import load_catalog
from assistant.detect import read_report
from assistant.diagnose import (
    Log,
    PlanRequest,
    RuleRemedy,
    as_remedy,
    load_rules,
    matches,
    merged,
    relaunched,
    remedies_for,
)
from assistant.host.identity import known_here
from assistant.model.errors import BadInput
from assistant.model.finding import Diagnosis, Finding, Remedy
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan, Request
from assistant.model.record import from_json, replace, to_json
from assistant.plan import make_plans
from assistant.privacy import redact

# What shows that a plan has helped, where its remedy has no check of its own.
CHECKS = {
    Backend.CUDA: 'python -c "import torch; assert torch.cuda.is_available()"',
    Backend.ROCM: 'python -c "import torch; assert torch.cuda.is_available()"',
    Backend.XPU: 'python -c "import torch; assert torch.xpu.is_available()"',
    Backend.MPS: 'python -c "import torch; assert torch.backends.mps.is_available()"',
    Backend.DIRECTML: 'python -c "import torch, torch_directml as d; torch.ones(2, device=d.device()).sum()"',
    Backend.CPU: 'python -c "import torch; torch.ones(2).sum()"',
}
REPORTED = 80  # last lines of a log that go into a report
# Words of the reports that people paste whole: collect_env, nvidia-smi, rocminfo, dxdiag, system_profiler.
REPORTS = ("pytorch version:", "nvidia-smi", "hsa agents", "dxdiag", "spdisplaysdatatype", "graphics/displays")


def diagnosed(log: Log, machine: Machine) -> tuple[Diagnosis, ...]:
    """Return the causes of what a log shows, best first, each remedy with the plan that can be installed."""
    return tuple(diagnosis for diagnosis, _line in diagnosed_lines(log, machine))


def diagnosed_lines(log: Log, machine: Machine) -> tuple[tuple[Diagnosis, int | None], ...]:
    """Return what `diagnosed` does, each cause with the index in `log.lines` of the line that shows it."""
    known = merged(machine, _stated(log))
    found = []
    for match in matches(log, known):
        remedies = _with_plans(zip(match.diagnosis.remedies, match.origins, strict=True), known, log)
        found.append((replace(match.diagnosis, remedies=remedies), match.line))
    return tuple(found)


def machine_of_log(log: Log, here: Machine) -> Machine:
    """Return the machine that a log comes from: what the log states, then the facts of the machine at hand.

    A log of another system is not mixed with the machine at hand.
    """
    stated = _stated(log)
    return stated if stated.os and here.os and stated.os != here.os else merged(stated, here)


def inquiry(log: Log, machine: Machine, found: Iterable[Diagnosis]) -> str:
    """Return a report to paste into an issue: causes, machine and the log's last lines, without private things."""
    known = known_here()
    lines = "\n".join(line for _number, line in log.lines[-REPORTED:]).replace("```", "'''")
    keys = ", ".join(f"{diagnosis.key} ({diagnosis.confidence:g})" for diagnosis in found) or "none"
    facts = to_json(redact(replace(machine, evidence=()), known=known), indent=2)
    cleaned = redact(lines, known=known)
    return f"Causes found: {keys}\n\n## Machine\n\n```json\n{facts}\n```\n\n## Log\n\n```text\n{cleaned}\n```\n"


def with_remedies(findings: Iterable[Finding], machine: Machine) -> tuple[Finding, ...]:
    """Add the remedies of a known cause to findings of its key that have no command of their own."""
    rules = {rule.key: rule for rule in load_rules().rules}

    def helped(finding: Finding) -> Finding:
        able = any(remedy.commands for remedy in finding.remedies)
        if finding.key not in rules or not finding.wrong or able:
            return finding
        more = _with_plans(((as_remedy(each), each) for each in remedies_for(rules[finding.key], machine)), machine)
        return replace(finding, remedies=(*finding.remedies, *more))

    return tuple(map(helped, findings))


@lru_cache(maxsize=1)  # the machine is asked for before the causes are: one reading serves both
def _stated(log: Log) -> Machine:
    """Read what a log says of its machine: the tools' reports that it holds, then what it mentions in passing."""
    if not any(mark in log.text for mark in REPORTS):
        return log.facts
    try:
        return merged(read_report("\n".join(line for _number, line in log.lines)).machine, log.facts)
    except BadInput:
        return log.facts


def _with_plans(
    remedies: Iterable[tuple[Remedy, RuleRemedy | None]], machine: Machine, log: Log | None = None
) -> tuple[Remedy, ...]:
    """Fill in plans, their checks and launch arguments; leave out a remedy whose plan this machine cannot have."""
    facts = to_json(replace(machine, evidence=()))
    filled: list[tuple[Remedy, RuleRemedy | None]] = []
    for remedy, origin in remedies:
        plan = _plan(facts, origin.plan) if machine.os and origin and origin.plan else None
        check = remedy.check or ((CHECKS[plan.backend],) if plan else ())
        filled.append((replace(remedy, plan=plan, check=check), origin))
    first = next((remedy.plan for remedy, _origin in filled if remedy.plan), None)
    possible = tuple(
        replace(remedy, launch=relaunched(log, first.backend, machine.os or ""))
        if origin and origin.launch and first and log and log.text
        else remedy
        for remedy, origin in filled
        if origin is None or origin.plan is None or remedy.plan or remedy.commands or remedy.env
    )
    return possible or tuple(remedy for remedy, _origin in filled)


@cache  # many remedies ask for the same plan; the machine as JSON, since a record with dicts has no hash
def _plan(machine: str, wanted: PlanRequest) -> Plan | None:
    request = Request(backend=wanted.backend, python=wanted.python, pins=wanted.pins)
    try:
        return make_plans(from_json(machine, Machine, "machine"), load_catalog(), request).choice
    except BadInput:
        return None

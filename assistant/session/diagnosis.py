"""Joins what the rooms know: the reports inside a log, the machine at hand, and real plans for the remedies."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache

from assistant.catalog import load_catalog
from assistant.detect import read_report
from assistant.diagnose import (
    Log,
    Match,
    Way,
    Wish,
    load_rules,
    matches,
    merged,
    read_log,
    relaunched,
    remedy,
    ways_out,
)
from assistant.host.identity import known_here
from assistant.model.errors import BadInput
from assistant.model.finding import Diagnosis, Finding, Remedy
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan, Request
from assistant.model.record import from_json, replace, to_json
from assistant.plan import make_plans
from assistant.privacy import redact

CHECKS = {
    Backend.CUDA: 'python -c "import torch; assert torch.cuda.is_available()"',
    Backend.ROCM: 'python -c "import torch; assert torch.cuda.is_available()"',
    Backend.XPU: 'python -c "import torch; assert torch.xpu.is_available()"',
    Backend.MPS: 'python -c "import torch; assert torch.backends.mps.is_available()"',
    Backend.DIRECTML: 'python -c "import torch, torch_directml as d; torch.ones(2, device=d.device()).sum()"',
    Backend.CPU: 'python -c "import torch; torch.ones(2).sum()"',
}
REPORTED = 80  # last lines of a log that go into a report
REPORTS = ("pytorch version:", "nvidia-smi", "hsa agents", "dxdiag", "spdisplaysdatatype", "graphics/displays")


def diagnosed(log: Log, machine: Machine) -> tuple[Diagnosis, ...]:
    """Give the causes of what a log shows, best first, each remedy with the plan that can be installed."""
    return tuple(diagnosis for diagnosis, _line in diagnosed_lines(log, machine))


def diagnosed_lines(log: Log, machine: Machine) -> tuple[tuple[Diagnosis, int | None], ...]:
    """Do as `diagnosed` does, each cause with the index in `log.lines` of the line that shows it."""
    known = merged(machine, _stated(log))
    return tuple((_planned(match, known, log), match.line) for match in matches(log, known))


def machine_of_log(log: Log, here: Machine) -> Machine:
    """Give the machine that a log without a description comes from: what it states, then the machine at hand.

    A log of another system is not mixed with the machine at hand.
    """
    told = _stated(log)
    return told if told.os and here.os and told.os != here.os else merged(told, here)


def inquiry(log: Log, machine: Machine, found: Iterable[Diagnosis]) -> str:
    """Write a report to paste into an issue: causes, machine, the log's last lines, private things out."""
    known = known_here()
    lines = "\n".join(line for _number, line in log.lines[-REPORTED:]).replace("```", "'''")
    keys = ", ".join(f"{diagnosis.key} ({diagnosis.confidence:g})" for diagnosis in found) or "none"
    facts = to_json(redact(replace(machine, evidence=()), known=known), indent=2)
    cleaned = redact(lines, known=known)
    return f"Causes found: {keys}\n\n## Machine\n\n```json\n{facts}\n```\n\n## Log\n\n```text\n{cleaned}\n```\n"


def with_ways_out(findings: Iterable[Finding], machine: Machine) -> tuple[Finding, ...]:
    """Give findings that name a known cause that cause's remedies, where they have no command of their own."""
    rules = {rule.key: rule for rule in load_rules().rules}
    return tuple(
        replace(finding, remedies=(*finding.remedies, *_filled(ways_out(rules[finding.key], machine), machine)))
        if finding.key in rules and finding.wrong and not any(way.commands for way in finding.remedies)
        else finding
        for finding in findings
    )


@lru_cache(maxsize=1)  # the machine is asked for before the causes are: one reading serves both
def _stated(log: Log) -> Machine:
    """Read what a log says of its machine: the tools' reports that it holds, then what it mentions in passing."""
    if not any(mark in log.text for mark in REPORTS):
        return log.facts
    try:
        return merged(read_report("\n".join(line for _number, line in log.lines)).machine, log.facts)
    except BadInput:
        return log.facts


def _planned(match: Match, machine: Machine, log: Log) -> Diagnosis:
    remedies = _kept(zip(match.diagnosis.remedies, match.ways, strict=True), machine, log)
    return replace(match.diagnosis, remedies=remedies)


def _filled(ways: Iterable[Way], machine: Machine) -> tuple[Remedy, ...]:
    return _kept(((remedy(way), way) for way in ways), machine, read_log(""))


def _kept(remedies: Iterable[tuple[Remedy, Way | None]], machine: Machine, log: Log) -> tuple[Remedy, ...]:
    """Put plans and launch arguments in, and leave out a remedy that is only a plan which this machine cannot have."""
    every = [(_with_plan(told, way, machine), way) for told, way in remedies]
    plan = next((told.plan for told, _way in every if told.plan), None)
    possible = tuple(
        replace(told, launch=relaunched(log, plan.backend, machine.os or ""))
        if way and way.launch and plan and log.text
        else told
        for told, way in every
        if way is None or way.plan is None or told.plan or told.commands or told.env
    )
    return possible or tuple(told for told, _way in every)


def _with_plan(told: Remedy, way: Way | None, machine: Machine) -> Remedy:
    """Put in the plan that a way wishes for, with the check of its device where the way has none."""
    plan = _plan(way.plan, machine) if way and way.plan else None
    return replace(told, plan=plan, check=told.check or (CHECKS[plan.backend],)) if plan else told


def _plan(wish: Wish | None, machine: Machine) -> Plan | None:
    return _choice(to_json(replace(machine, evidence=())), wish) if wish and machine.os else None


@cache
def _choice(machine: str, wish: Wish) -> Plan | None:
    request = Request(backend=wish.backend, python=wish.python, pins=wish.pins)
    try:
        return make_plans(from_json(machine, Machine, "machine"), load_catalog(), request).choice
    except BadInput:
        return None

"""What a user tells of a machine on which a build computes right: the machine, the plan, its verification."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from assistant.catalog import load_catalog
from assistant.catalog.rows import CORE
from assistant.host.identity import known_here
from assistant.i18n import _
from assistant.model.errors import BadInput, NothingFits
from assistant.model.machine import Machine, Recording
from assistant.model.plan import Backend, Plan, Request
from assistant.model.record import Record, replace, to_json
from assistant.model.report import Report
from assistant.model.requirement import name_of
from assistant.plan import make_plans
from assistant.privacy import redact

FACTS = {  # of a report: what torch says of itself and its device, and no path
    "torch", "python", "cuda", "hip", "threads", "device", "device name", "device memory", "compute capability",
    "architecture", "cpu capability",
}  # fmt: skip


class Contribution(Record, frozen=True, omit_defaults=False):
    """One build on one machine at one time (`when`, UTC): all answers of the machine, and what was computed there.

    `recording` has no label yet, `plan` is the planner's for the build that is installed, `packages` are the versions
    of what that names. `mark` is the same for each contribution of one machine on one build, and says nothing else.
    """

    schema: Literal[1]
    when: Annotated[datetime, msgspec.Meta(tz=True)]
    assistant: str
    mark: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{32}\Z")]
    recording: Recording
    plan: Plan
    packages: dict[str, str]
    report: Report


def cleaned(told: Contribution) -> Contribution:
    """Remove what must not leave this machine."""
    return redact(told, known=known_here())


def plan_of(machine: Machine, backend: Backend, torch: str, python: str) -> Plan:
    """Return the planner's plan, without words, for a build of torch such as "2.15.0+cu130".

    Raises `NothingFits` where it makes none.
    torch-directml, and what PyPI has for a Mac, do not say in torch's version for what they are built.
    """
    public, _plus, _tag = torch.partition("+")
    release = public if backend is Backend.DIRECTML else torch
    catalog = load_catalog()
    try:
        request = Request(backend=backend, python=python, pins=(f"torch=={release}",))
        plan = make_plans(machine, catalog, request).choice
    except BadInput:  # a release that nobody published
        plan = None
    if plan is None or plan.backend is not backend or plan.torch != public:
        text = _("The assistant would not choose PyTorch {torch} for {backend} on this machine.")
        hint = _("Contribute an environment that it has planned: `assistant setup` makes one.")
        raise NothingFits(text.format(torch=torch, backend=backend.title), hint=hint)
    return replace(plan, reasons=(), warnings=())


def packages_of(plan: Plan) -> frozenset[str]:
    """Name the packages whose versions are told: those that a plan of the tables asks for, and torch's family."""
    return CORE | {name_of(line) for line in plan.requirements}


def file_of(told: Contribution) -> str:
    """Return the text of a contribution's file: a line for each answer of the machine and for each check."""
    text = to_json(told)
    for start in ('{"ask"', '"plan":', '"packages":{', '"report":', '{"key"', '"facts":'):
        text = text.replace(start, f"\n{start}")  # inside a string the quotes are escaped
    return text + "\n"

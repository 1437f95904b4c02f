"""The planner: makes a plan of every candidate, best first, and adds what another Python would open."""

from __future__ import annotations

import re

from assistant.catalog import Catalog, number
from assistant.catalog.recipes import bundle_of
from assistant.model.errors import NothingFits
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan, Planning, Request
from assistant.model.record import replace
from assistant.plan.assemble import plan_of
from assistant.plan.candidates import Candidate, Context, reject
from assistant.plan.gpus import cards_of, driver_of
from assistant.plan.nightly import with_nightly
from assistant.plan.offers import candidates_here, reject_asked
from assistant.plan.order import in_order, why_first
from assistant.plan.pins import read_pins
from assistant.plan.pythons import allowed, other_pythons, outside_project, with_python_reason
from assistant.plan.requirements import with_asked
from assistant.plan.target import USUAL_PYTHON, Refusal, python_tag, target_of

_ANYTHING = Request()


def make_plans(machine: Machine, catalog: Catalog, request: Request = _ANYTHING) -> Planning:
    """Return what to install on a machine: plans best first with the CPU last, and why not the other_backends.

    The first plan uses the machine's own Python; plans with another `python` follow where that opens more. `choice` is
    None when nothing fits, with the reason in `rejected`. Raises `BadInput` for a pin or version that cannot be read,
    and for a bundle that does not exist.
    """
    own = request.python or machine.python
    if own and not allowed(own, request.pythons):
        if request.python:
            return Planning(rejected=(outside_project(own, request),))
        planning = Planning()
    else:
        planning = _planned(machine, catalog, request)
    if planning.choice is None and _python_may_help(planning, request):
        planning = _with_another_python(planning, machine, catalog, request)
    return with_nightly(planning, request, catalog) if request.nightly else planning


def _planned(machine: Machine, catalog: Catalog, request: Request) -> Planning:
    """Plan for the Python of the request, else for the machine's own."""
    asked = request.backend
    target = target_of(machine, request, catalog)
    if isinstance(target, Refusal):
        return Planning(rejected=(reject(asked or Backend.CPU, *target),))
    try:
        pins = read_pins((*request.pins, *_on_torch(request)), catalog, target.markers)
        cards, driver = cards_of(machine), driver_of(machine, catalog)
        bundle = bundle_of(request.bundle).key
        context = Context(machine, catalog, target, pins, cards, driver, asked, bundle, request.nightly)
        candidates, rejected = candidates_here(context)
        if not candidates:
            return Planning(rejected=(*rejected, *reject_asked(rejected, context)))
        own = [plan_of(found, context, rejected if found is candidates[0] else ()) for found in candidates]
        own[0] = replace(own[0], reasons=(*own[0].reasons, *why_first(candidates, context)))
        if catalog.remark:
            own[0] = replace(own[0], warnings=(*own[0].warnings, catalog.remark))
        elsewhere = () if request.python or request.pythons else _elsewhere(candidates[0], context)
    except NothingFits as error:
        return Planning(rejected=(reject(asked or Backend.CPU, "pins-exclude-release", error.message, error.hint),))
    if len(own) > 1 and own[-1].backend is Backend.CPU:  # a CPU plan goes last, and one is enough
        elsewhere = (*(plan for plan in elsewhere if plan.backend is not Backend.CPU), own.pop())
    plans = tuple(with_asked(plan, pins, request) for plan in (*own, *elsewhere))
    return Planning(choice=plans[0], plans=plans, rejected=tuple(rejected))


def _on_torch(request: Request) -> list[str]:
    """Return the constraints and overrides that bound torch itself: a plan always has it."""
    return [line for line in (*request.constraints, *request.overrides) if _names_torch(line)]


def _names_torch(line: str) -> bool:
    return re.match(r"\s*torch(?![\w.-])", line, re.IGNORECASE) is not None


def _python_may_help(planning: Planning, request: Request) -> bool:
    """Return whether another Python may allow what the request rules out on this one.

    Not where no torch has a wheel for the machine's Python: that is reported as the machine's own problem.
    """
    wishes = bool(request.pins or request.constraints or request.overrides or request.pythons)
    return wishes and all(rejection.key not in _WHATEVER_PYTHON for rejection in planning.rejected)


_WHATEVER_PYTHON = {"libc-musl", "python-32bit", "pins-exclude-release", "python-not-cpython"}


def _with_another_python(planning: Planning, machine: Machine, catalog: Catalog, request: Request) -> Planning:
    """Plan for the first other Python that opens a plan; where none does, say why not with the one that is allowed."""
    own = python_tag(machine.python or USUAL_PYTHON)[0]
    for python in other_pythons(machine, request, catalog):
        found = _planned(machine, catalog, replace(request, python=python))
        if found.choice:
            new = (one for one in found.rejected if one not in planning.rejected)
            return replace(with_python_reason(found, own, request), rejected=(*planning.rejected, *new))
        planning = planning if planning.rejected else found
    if planning.rejected:
        return planning
    return Planning(rejected=(outside_project(own, request),))


def _elsewhere(own: Candidate, context: Context) -> tuple[Plan, ...]:
    """Offer another Python where it opens a better backend, or a release that this one has no wheel for."""
    usual = USUAL_PYTHON.replace(".", "")
    if context.target.tag == usual or usual not in context.catalog.pythons(context.target.platform):
        return ()
    other = context._replace(target=context.target._replace(python=USUAL_PYTHON, tag=usual, warnings=()))
    found, rejected = candidates_here(other)
    if not found or not _better(found[0], own, context):
        return ()
    plans = [plan_of(candidate, other, rejected if candidate is found[0] else ()) for candidate in found]
    return (plans[0], plans[-1]) if len(plans) > 1 else tuple(plans)


def _better(other: Candidate, own: Candidate, context: Context) -> bool:
    if other.backend is not own.backend:
        return in_order([own, other], context)[0] is other
    if own.wheel and other.wheel and own.wheel.confirmed is not other.wheel.confirmed:
        return other.wheel.confirmed
    return number(other.version) > number(own.version)

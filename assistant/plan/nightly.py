"""Nightly builds, on request only: the same backend and variant as the best plan, from the index of the last night."""

from __future__ import annotations

import re

from assistant.catalog import AMD_INDEX, Catalog, number
from assistant.i18n import Message, _
from assistant.model.errors import BadInput
from assistant.model.plan import Backend, Plan, Planning, Rejection, Request, of_torch_family
from assistant.model.record import replace

NIGHTLY = "nightly/"


def with_nightly(planning: Planning, request: Request, catalog: Catalog) -> Planning:
    """Put the nightly build of the best plan before the stable plans, or say why there is none.

    Raises `BadInput` where the pins restrict torch itself: what a night brings has no version to pin.
    """
    if any(of_torch_family(_name(pin)) for pin in request.pins):
        raise BadInput(
            _("A pin on torch and --nightly contradict each other."),
            hint=_("Leave one of the two out."),
        )
    if planning.choice is None:
        return planning
    answer = _nightly(planning.choice, catalog)
    if isinstance(answer, Rejection):
        return replace(planning, rejected=(answer, *planning.rejected))
    return replace(planning, choice=answer, plans=(answer, *planning.plans))


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return found[0].lower() if found else ""


def _nightly(plan: Plan, catalog: Catalog) -> Plan | Rejection:
    if plan.variant == AMD_INDEX or plan.backend is Backend.DIRECTML:
        return _none(plan, _("Its packages are not built each night."))
    if plan.torch != catalog.newest_torch:
        why = _("This machine needs torch {version}; nightly builds continue only torch {newest}.")
        return _none(plan, why.format(version=plan.torch, newest=catalog.newest_torch))
    tag = "cpu" if plan.variant == "pypi" else plan.variant  # those of macOS, MPS included, lie with the CPU's
    version = f"{_next(plan.torch)}.dev0"
    lines = tuple(line for line in plan.requirements if not of_torch_family(_name(line)))
    reason = _("You asked for a nightly build: it goes on from torch {version}.", version=plan.torch)
    warning = _("A nightly build is made each night and little tested; take it only for what no release has.")
    return replace(
        plan,
        variant=NIGHTLY + tag,
        torch=version,
        index_url=catalog.index_url(NIGHTLY + tag),
        requirements=(f"torch>={version}", *lines),
        reasons=(reason, *plan.reasons),
        warnings=(warning, *plan.warnings),
    )


def _next(version: str) -> str:
    major, minor = number(version)[:2]
    return f"{major}.{minor + 1}.0"


def _none(plan: Plan, why: Message) -> Rejection:
    helps = _("Leave --nightly out: the release serves this machine.")
    return Rejection(backend=plan.backend, variant=NIGHTLY + plan.variant, key="no-nightly", why=why, would_help=helps)

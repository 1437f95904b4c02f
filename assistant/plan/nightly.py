"""Nightly builds, on request only: the same backend and variant as the best plan, from the index of the last night."""

from __future__ import annotations

import re

from assistant.catalog import AMD_INDEX, Catalog, carried_by_torch_index, number
from assistant.i18n import Message, _
from assistant.model.errors import BadInput
from assistant.model.plan import Backend, Plan, Planning, Request
from assistant.model.record import replace
from assistant.plan.candidates import reject

NIGHTLY = "nightly/"


def with_nightly(planning: Planning, request: Request, catalog: Catalog) -> Planning:
    """Put the nightly build of the best plan before the stable plans, or say why there is none.

    Raises `BadInput` where the pins restrict torch itself: a nightly has no version that could be pinned.
    """
    if any(carried_by_torch_index(_name(pin)) for pin in request.pins):
        message = _("A pin on torch and nightly builds contradict each other.")
        raise BadInput(message, hint=_("Leave one of the two out."))
    plan = planning.choice
    if plan is None or plan.variant.startswith(NIGHTLY):
        return planning
    if why := _why_no_nightly(plan, catalog):
        help_ = _("Use the release: it works on this machine.")
        return replace(
            planning,
            rejected=(reject(plan.backend, "no-nightly", why, help_, NIGHTLY + plan.variant), *planning.rejected),
        )
    # Nightly builds for macOS, MPS included, lie in the CPU's index: https://pytorch.org/get-started/locally/
    variant = NIGHTLY + ("cpu" if plan.variant == "pypi" else plan.variant)
    major, minor = number(plan.torch)[:2]
    version = f"{major}.{minor + 1}.0.dev0"
    lines = tuple(line for line in plan.requirements if not carried_by_torch_index(_name(line)))
    family = tuple(
        _name(line) for line in plan.requirements if carried_by_torch_index(_name(line)) and _name(line) != "torch"
    )
    reason = _("You asked for a nightly build: it continues from torch {version}.", version=plan.torch)
    warning = _("A nightly build is made each night and barely tested; use it only for what no release has.")
    nightly = replace(
        plan,
        variant=variant,
        torch=version,
        index_url=catalog.index_url(variant),
        requirements=(f"torch>={version}", *lines),
        reasons=(reason, *plan.reasons),
        warnings=(warning, *_without(family), *plan.warnings),
    )
    return replace(planning, choice=nightly, plans=(nightly, *planning.plans))


def _without(family: tuple[str, ...]) -> tuple[Message, ...]:
    """Warn that torch's companions stay out: each is built for the torch of its own night."""
    text = _("Without {packages}: their nightly builds fit only the torch of the same night.")
    return (text.format(packages=", ".join(family)),) if family else ()


def _why_no_nightly(plan: Plan, catalog: Catalog) -> Message | None:
    if plan.variant == AMD_INDEX or plan.backend is Backend.DIRECTML:
        return _("Its packages are not built each night.")
    if plan.torch != catalog.newest_torch:
        why = _("This machine needs torch {version}; nightly builds continue only torch {newest}.")
        return why.format(version=plan.torch, newest=catalog.newest_torch)
    return None


def _name(requirement: str) -> str:
    """Return the package that a requirement names, in lower case."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return found[0].lower() if found else ""

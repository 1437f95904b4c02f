"""The reasoning in lines that a person can follow."""

from __future__ import annotations

from collections.abc import Iterator

from assistant.i18n import Message, _
from assistant.model.errors import NothingFits
from assistant.model.machine import Machine
from assistant.model.plan import Planning
from assistant.plan.gpus import cards_of
from assistant.views import plan_title, rejected_name


def explain(planning: Planning, machine: Machine) -> list[Message]:
    """Return the lines of an explanation: which GPUs were seen, what was chosen and why, and why not the rest."""
    return list(_lines(planning, machine))


def _lines(planning: Planning, machine: Machine) -> Iterator[Message]:
    for card in cards_of(machine):
        code = card.gfx or ".".join(map(str, card.capability)) or _("unknown code target")
        yield _("Seen: {name} ({code}).", name=card.name, code=code)
    if not machine.gpus:
        yield _("Seen: no GPU.")
    for place, plan in enumerate(planning.plans):
        yield (_("Chosen: {plan}.") if place == 0 else _("Also possible: {plan}.")).format(plan=plan_title(plan))
        yield from (Message("  + {reason}").format(reason=reason) for reason in plan.reasons)
        yield from (Message("  ! {warning}").format(warning=warning) for warning in plan.warnings)
    for rejection in planning.rejected:
        yield _("Not {name}: {why}", name=rejected_name(rejection), why=rejection.why)
        if rejection.would_help:
            yield Message("  > {help}").format(help=rejection.would_help)


def nothing_fits(planning: Planning) -> NothingFits:
    """Return the error for a planning without a choice: its first reason, and what would help."""
    first = next(iter(planning.rejected), None)
    if first is None:
        text = _("No PyTorch wheel fits this machine.")
        return NothingFits(text, hint=_("Describe it with `assistant plan --machine`."))
    return NothingFits(first.why, hint=first.would_help)

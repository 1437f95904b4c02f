"""What works on a machine: every backend is asked, and the answers are put in order."""

from __future__ import annotations

from collections.abc import Iterator

from assistant.i18n import _
from assistant.model.plan import Backend, Rejection
from assistant.plan import cuda, other_backends, rocm
from assistant.plan.candidates import Candidate, Context, reject
from assistant.plan.order import in_order

_BACKENDS = (cuda.offers, rocm.offers, other_backends.xpu, other_backends.mps, other_backends.directml)


def candidates_here(context: Context) -> tuple[list[Candidate], list[Rejection]]:
    """Ask every backend, or the one asked for; the CPU comes along except where only another one will do."""
    asked = context.asked
    offers = [offer(context) for offer in _BACKENDS] if asked is not Backend.CPU else []
    found = [one for offer in offers for one in offer.candidates if asked in (None, one.backend)]
    rejected = [rejection for offer in offers for rejection in offer.rejected if asked in (None, rejection.backend)]
    if found or asked in (None, Backend.CPU):
        last = other_backends.cpu(context)
        found.extend(last.candidates)
        rejected.extend(last.rejected)
    found, slow = _without_slow(found, context)
    rejected.extend(slow)
    found = in_order(found, context)
    if found and found[0].rank == 0 and not found[0].integrated:
        found = [one for one in found if not (one.backend is Backend.DIRECTML and one.integrated)]
    return found, rejected


def _without_slow(found: list[Candidate], context: Context) -> tuple[list[Candidate], list[Rejection]]:
    """Set aside what computes on no GPU but one that is no faster than the processor.

    It stays where it was asked for, or where nothing else is left.
    """
    slow = {row.gfx: row.text for row in context.catalog.rocm.caveats.rows if row.slow}
    aside = [one for one in found if one.cards and all(card.gfx in slow for card in one.cards)]
    if aside in ([], found) or any(one.backend is context.asked for one in aside):
        return found, []
    rejected = []
    for one in {one.backend: one for one in aside}.values():
        text = next(slow[card.gfx] for card in one.cards if card.gfx)
        why = _(text, name=one.cards[0].name)
        option = f"--backend {one.backend.value}"
        help_ = _("Choose {backend} to use it all the same.", backend=one.backend.title, option=option)
        rejected.append(reject(one.backend, "gpu-no-faster", why, help_))
    return [one for one in found if one not in aside], rejected


def reject_asked(rejected: list[Rejection], context: Context) -> Iterator[Rejection]:
    """Never leave a request unanswered: name the backend that cannot be had here."""
    asked = context.asked
    if rejected or asked is None:
        return
    if asked is Backend.MPS:
        why = _("MPS exists on macOS only.")
    elif asked is Backend.DIRECTML:
        why = _("DirectML needs Windows or WSL, and a GPU with DirectX 12.")
    else:
        why = _("No GPU on this machine works with {backend}.", backend=asked.title)
    yield reject(asked, "backend-not-here", why, _("Leave the backend open to get the best one for this machine."))

"""What works on a machine: every backend is asked, and the answers are put in order by what each card can do."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from assistant.catalog.identity import Rate, rate_of
from assistant.i18n import Message, Text, _, sentences
from assistant.model.machine import Vendor
from assistant.model.plan import Backend, Rejection
from assistant.plan import cuda, other_backends, rocm
from assistant.plan.candidates import Candidate, Context, reject, sentence
from assistant.plan.target import Card, called

_BACKENDS = (cuda.offers, rocm.offers, other_backends.xpu, other_backends.mps, other_backends.directml)
_ORDER = {backend: place for place, backend in enumerate(Backend)}
_UNKNOWN = -99  # below the step of every card: what nobody knows goes before nothing that is known


def candidates_here(context: Context) -> tuple[list[Candidate], list[Rejection]]:
    """Ask every backend, or the one asked for, what works here, best first, and what does not and why.

    The CPU comes along except where only another one will do.
    """
    asked = context.request.backend
    backends = _BACKENDS if asked is not Backend.CPU else ()
    offers = [offer for ask in backends for offer in ask(context) if asked in (None, offer.backend)]
    if asked in (None, Backend.CPU) or any(isinstance(offer, Candidate) for offer in offers):
        offers += other_backends.cpu(context)
    rejected = [offer for offer in offers if isinstance(offer, Rejection)]
    found, slow = _without_slow([offer for offer in offers if isinstance(offer, Candidate)], context)
    found = in_order(found, context)
    if found and found[0].rank == 0 and not found[0].integrated:
        found = [
            candidate for candidate in found if not (candidate.backend is Backend.DIRECTML and candidate.integrated)
        ]
    return found, [*rejected, *slow]


def _without_slow(found: list[Candidate], context: Context) -> tuple[list[Candidate], list[Rejection]]:
    """Set aside what computes on no GPU but one that is no faster than the processor.

    It stays where it was asked for, or where nothing else is left.
    """
    slow = {row.gfx: row.text for row in context.catalog.rows("rocm.caveats") if row.slow}
    aside = [candidate for candidate in found if candidate.cards and all(card.gfx in slow for card in candidate.cards)]
    if aside in ([], found) or any(candidate.backend is context.request.backend for candidate in aside):
        return found, []
    rejected = []
    for candidate in {candidate.backend: candidate for candidate in aside}.values():
        text = next(slow[card.gfx] for card in candidate.cards if card.gfx)
        why = _(text, name=candidate.cards[0].name)
        option = f"--backend {candidate.backend.value}"
        help_ = _("Choose {backend} to use it all the same.", backend=candidate.backend.title, option=option)
        rejected.append(reject(candidate.backend, "gpu-no-faster", why, help_))
    return [candidate for candidate in found if candidate not in aside], rejected


def reject_asked(asked: Backend) -> Rejection:
    """Return why the backend that was asked for cannot be had, where no backend said so itself."""
    reasons = {
        Backend.MPS: _("MPS exists on macOS only."),
        Backend.DIRECTML: _("DirectML needs Windows or WSL, and a GPU with DirectX 12."),
    }
    why = reasons.get(asked, _("No GPU on this machine works with {backend}.", backend=asked.title))
    return reject(asked, "backend-not-here", why, _("Leave the backend open to get the best one for this machine."))


class _Standing(NamedTuple):
    """What backends are sorted by; smaller goes first, and the first field that differs decides."""

    rank: int
    step: int
    doubtful: bool
    room: int
    integrated: bool
    place: int


def in_order(found: list[Candidate], context: Context) -> list[Candidate]:
    """Sort what the backends offer, best first; the candidates of one backend keep their order.

    What counts, in this order, each for the best card that a backend serves:
    1. support: builds of current torch, then DirectML's frozen one, then the CPU;
    2. the card's rate in half precision, in steps of a factor of two, as makers do not count alike; one step less for
       integrated GPUs, which share memory and power with the processor; unknown is last;
    3. a build that its maker tests for this card, before one that is untested or runs a sister card's code;
    4. memory, in steps of two, where that of every card is known;
    5. a discrete card, then the backends' own order, which is that of how much software is written for them.
    """
    standings = _standings(found, context)
    return sorted(found, key=lambda candidate: standings[candidate.backend])


def why_first(found: list[Candidate], context: Context) -> tuple[Message, ...]:
    """Say why the first card goes before each that another backend would use, and how to choose that one instead."""
    first, *others = _first_of_each(found).values()
    standings = _standings(found, context)
    named, said = {_strongest_card(first)}, []
    for other in others:
        card = _strongest_card(other)
        if card is not None and card not in named:
            named.add(card)
            instead = _(
                "To use {second} instead, choose {backend}.",
                second=called(card),
                backend=other.backend.title,
                option=f"--backend {other.backend.value}",
            )
            said.append(sentences((_why(first, other, standings), instead)))
    return tuple(said)


def _first_of_each(found: list[Candidate]) -> dict[Backend, Candidate]:
    """Return the first candidate of each backend."""
    first = {candidate.backend: candidate for candidate in reversed(found)}
    return {candidate.backend: first[candidate.backend] for candidate in found}


def _standings(found: list[Candidate], context: Context) -> dict[Backend, _Standing]:
    """Return what each backend is sorted by: that of its first candidate's strongest card."""
    leaders, system = _first_of_each(found), context.target.os
    cards = {backend: _strongest_card(candidate) for backend, candidate in leaders.items()}
    measured = all(card.memory for card in cards.values() if card)
    return {
        backend: _Standing(
            candidate.rank,
            -_speed_step(card) if (card := cards[backend]) else 0,
            # It runs a sister card's code, or its maker does not test it for the card.
            rocm.OVERRIDE in candidate.env
            or any(system not in context.catalog.amd_targets[gfx].tested for gfx in candidate.targets),
            -round(math.log2(card.memory)) if measured and card and card.memory else 0,
            candidate.integrated,
            _ORDER[backend],
        )
        for backend, candidate in leaders.items()
    }


def _strongest_card(candidate: Candidate) -> Card | None:
    """Return the strongest card that a candidate serves, None for the CPU and Apple's GPUs, which have no rival."""
    return max(candidate.cards, key=_speed_step, default=None)


@lru_cache(maxsize=8192)  # far above the kinds of cards that one fleet has
def _speed_step(card: Card) -> int:
    """Return a card's speed as a power of two, one less for an integrated GPU."""
    rate = _rate(card)
    return round(math.log2(rate.half)) - card.integrated if rate else _UNKNOWN


def _rate(card: Card) -> Rate | None:
    """Return how fast a card computes by the table of rates; None for one that is not listed."""
    if card.vendor is Vendor.NVIDIA:
        code = ".".join(map(str, card.capability))
    else:
        code = card.gfx or (card.identity and card.identity.generation) or ""
    return rate_of(card.vendor, card.name, code, card.memory)


_DECISIVE = {
    "rank": "first-has-current-torch",
    "step": "first-is-discrete",
    "doubtful": "first-is-better-tested",
    "room": "first-has-more-memory",
    "integrated": "first-is-discrete",
    "place": "first-has-more-software",
}


def _why(first: Candidate, other: Candidate, standings: dict[Backend, _Standing]) -> Message:
    """Return the sentence for what decides between two candidates whose cards differ."""
    ours, theirs = standings[first.backend], standings[other.backend]
    card, rival = _strongest_card(first), _strongest_card(other)
    rate, against = card and _rate(card), rival and _rate(rival)
    field = next(name for name, a, b in zip(_Standing._fields, ours, theirs, strict=True) if a != b)
    key, figures = _DECISIVE[field], dict[str, object]()
    if field == "step" and not (rate and against):
        key = "first-has-known-speed"
    elif field == "step" and rate and against and rate.half > against.half:
        key, figures = "first-is-faster", {"ours": _figure(rate), "theirs": _figure(against)}
    elif field == "room" and card and rival:
        figures = {"ours": f"{card.memory:g}", "theirs": f"{rival.memory:g}"}
    names = {"first": called(card) if card else first.backend.title, "second": called(rival) if rival else ""}
    said = sentence(key, **names, **figures, backend=first.backend.title)
    if not (rate and against) or ours[:2] != theirs[:2]:
        return said
    close = _("In half precision they reach {ours} and {theirs} TFLOPS, and makers do not count alike.")
    return sentences((said, close.format(ours=_figure(rate), theirs=_figure(against))))


def _figure(rate: Rate) -> Text:
    """Write a rate in TFLOPS; of a card that is known by its generation alone, as what it reaches at least."""
    figure = f"{rate.half:g}"
    return figure if rate.exact else _("at least {number}", number=figure)

"""Memory of the card: how much there is for a backend, and whether what is to be computed goes in."""

from __future__ import annotations

from enum import Enum

from assistant.catalog.memory import Format, rules
from assistant.model.machine import Machine, Vendor
from assistant.model.plan import Backend
from assistant.model.record import Record
from assistant.plan.gpus import called, card_name, cards_of, driven_by
from assistant.plan.model_config import Shape

GIB = 1024**3
_SHORT = 0.98  # chosen: a driver tells up to 2 % less than what stands on the box ("8 GB" is 7.9 GiB)


def largest_card(machine: Machine, backend: Backend) -> tuple[str, float | None]:
    """Return the card with the most memory that a backend drives, as people call it, and its GiB.

    None where that of some card is not known, as it may be the largest. A GPU inside the processor takes of the
    machine's own memory, and how much is a setting: unknown, where there is no other.
    """
    cards = zip(machine.gpus, cards_of(machine), strict=True)
    own = [(gpu.vram_gb, card) for gpu, card in cards if driven_by(card, backend)]
    discrete = [(size, card) for size, card in own if not card.integrated and card.vendor is not Vendor.APPLE]
    sizes = [(size, called(card)) for size, card in discrete if size]
    if not sizes or len(sizes) < len(discrete):
        unknown = next((called(card) for size, card in discrete if not size), card_name(machine, backend))
        return unknown, None
    size, name = max(sizes)
    return name, size


def holds(has: float, needs: float) -> bool:
    """Return whether a card with `has` GiB is one for what is said to need `needs` GB."""
    return has >= needs * _SHORT


class Verdict(Enum):
    """Whether a model goes into the card's memory; `tight` may, with nothing else on the card."""

    FITS = "fits"
    TIGHT = "tight"
    NOT = "not"
    UNKNOWN = "unknown"


class Estimate(Record, frozen=True, omit_defaults=False):
    """What a language model takes, in GiB: weights, the cache of its context (the least and the most), the rest."""

    weights: float
    cache_least: float
    cache_most: float
    overhead: float

    @property
    def least(self) -> float:
        """The smallest total, without the margin."""
        return self.weights + self.cache_least + self.overhead

    @property
    def most(self) -> float:
        """The largest total, without the margin."""
        return self.weights + self.cache_most + self.overhead

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest total with the margin, as the estimate is told."""
        return self.least * (1 - rules().range), self.most * (1 + rules().range)


def estimate(parameters: int, kind: Format, context: int, shape: Shape | None) -> Estimate:
    """Estimate the memory of a language model for one user; without a `shape` the cache is known roughly."""
    known = rules()
    embedded = min(shape.embedded if shape and kind.embeddings else 0, parameters)
    weights = ((parameters - embedded) * kind.bits + embedded * (kind.embeddings or kind.bits)) / 8 / GIB
    share = known.overhead_share * weights if weights > known.share_from_gib else 0
    least, most = _cache(shape, context) if shape else _rough_cache(parameters, context)
    overhead = max(known.gguf_overhead_gib if kind.gguf else known.overhead_gib, share)
    return Estimate(weights=weights, cache_least=least / GIB, cache_most=most / GIB, overhead=overhead)


def _cache(shape: Shape, context: int) -> tuple[float, float]:
    """Return the bytes of keys and values; at most those of every layer's whole context, where that is not stored.

    A compressed cache (MLA) is as small as its width only in programs that keep it compressed.
    """
    size = rules().cache_bytes
    layer = 2 * shape.kv_heads * shape.head_dim * size
    kept = min(context, shape.window or context)
    whole = layer * (shape.full * context + shape.windowed * kept)
    if shape.latent:
        return shape.latent * size * (shape.full + shape.windowed) * context, whole
    alike = bool(shape.window and not shape.windowed)  # a window is named, but not for which layers
    return (layer * shape.full * kept if alike else whole), whole


def _rough_cache(parameters: int, context: int) -> tuple[float, float]:
    """Return the bytes of keys and values of a usual model with so many parameters: 12 x layers x width²."""
    known = rules()
    layers = (parameters / 12 / known.width_per_layer**2) ** (1 / 3)
    most = 2 * layers * (layers * known.width_per_layer) * known.cache_bytes * context
    return most * known.grouped, most


def judge(need: Estimate, has: float | None) -> Verdict:
    """Return whether it goes into `has` GiB; unknown where that is, or where the cache decides and is not known."""
    if has is None:
        return Verdict.UNKNOWN
    if need.most <= has * rules().tight_from:
        return Verdict.FITS
    if need.least > has:
        return Verdict.NOT
    return Verdict.TIGHT if need.most <= has else Verdict.UNKNOWN

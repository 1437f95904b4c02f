"""How much memory a card has, what a language model takes of it by its config.json, and whether it goes in."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from assistant.api import BadInput, Record, _
from assistant.api.planning import card_name, find_cards, is_driven_by, short_name
from assistant.api.records import Backend, Machine, Vendor
from assistant_addons.projects.tables import load

GIB = 1024**3
_SHORT = 0.98  # chosen: a driver tells up to 2 % less than what stands on the box ("8 GB" is 7.9 GiB)
# Layers that keep a state of fixed size, or none. As transformers names them, now and before (ALLOWED_ATTN_LAYER_TYPES
# and what is remapped, configuration_utils.py of 5.20.0); RecurrentGemma's own is "recurrent".
_WITHOUT_CACHE = {"linear_attention", "mamba", "conv", "moe", "recurrent"}
_LARGEST = 10**9  # chosen: no dimension of a model is larger, and what is would only make figures absurd


class Format(Record, frozen=True):
    """A format of weights: bits for each, scales included; `embeddings` are the bits of those, 0 for the same.

    `also` are other names of it; `gguf` marks those of llama.cpp.
    """

    key: str
    bits: float
    also: tuple[str, ...] = ()
    embeddings: float = 0
    gguf: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """How it stands in a model's name, whose words are joined by hyphens; a bare number says nothing there."""
        return tuple(name.replace("_", "-") for name in (self.key, *self.also) if not name.isdigit())


class Rules(Record, frozen=True):
    """What an estimate adds to weights and cache, in GiB, and where the verdicts part, as shares of the card's memory.

    Above `share_from_gib` of weights the overhead is at least `overhead_share` of them; an estimate is told as a range
    of `range` to both sides. `cache_bytes` are those of one cached value. A model whose shape is not known is taken
    for one of `width_per_layer`, with a cache between `grouped` of the largest and the largest.
    """

    gguf_overhead_gib: float
    overhead_gib: float
    overhead_share: float
    share_from_gib: float
    tight_from: float
    range: float
    cache_bytes: int
    width_per_layer: int
    grouped: float


def rules() -> Rules:
    """Return the rules of an estimate."""
    return load("memory.rules", Rules)[0]


def formats() -> tuple[Format, ...]:
    """Return all formats of weights."""
    return load("memory.formats", Format)


def format_of(name: str) -> Format:
    """Find a format by one of its names, or by plain bits ("4" is llama.cpp's usual one); raise `BadInput` for none."""
    wanted = name.strip().lower()
    for row in formats():
        if wanted in (row.key, *row.also):
            return row
    names = ", ".join(row.key for row in formats())
    raise BadInput(
        _("'{name}' is not a known weight format.", name=name),
        hint=_("Choose one of: {names}.", names=names, option="--bits"),
    )


def largest_card(machine: Machine, backend: Backend) -> tuple[str, float | None]:
    """Return the card with the most memory that a backend drives, as people call it, and its GiB.

    None where that of some card is not known, as it may be the largest. A GPU inside the processor takes of the
    machine's own memory, and how much is a setting: unknown, where there is no other.
    """
    cards = zip(machine.gpus, find_cards(machine), strict=True)
    own = [(gpu.vram_gb, card) for gpu, card in cards if is_driven_by(card, backend)]
    discrete = [(size, card) for size, card in own if not card.integrated and card.vendor is not Vendor.APPLE]
    sizes = [(size, short_name(card)) for size, card in discrete if size]
    if not sizes or len(sizes) < len(discrete):
        unknown = next((short_name(card) for size, card in discrete if not size), card_name(machine, backend))
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


def judge_stated(gb: float, least: float, has: float | None) -> Verdict:
    """Return whether a card of `has` GiB holds what is stated to take `gb`; tight from the `least` that is stated."""
    if has is None:
        return Verdict.UNKNOWN
    if holds(has, gb):
        return Verdict.FITS
    if not least:
        return Verdict.UNKNOWN
    return Verdict.TIGHT if holds(has, least) else Verdict.NOT


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


class Shape(Record, frozen=True):
    """What the memory of a language model follows from; 0 is unknown.

    `full` layers keep the whole context, `windowed` ones at most `window` tokens of it, all others a state of fixed
    size. `latent` is the width of a compressed cache (MLA) for each layer and token. `embedded` is the number of
    parameters in embeddings and output, `parameters` that of all. `format` names how the weights are stored.
    """

    full: int
    kv_heads: int
    head_dim: int
    windowed: int = 0
    window: int = 0
    others: int = 0
    latent: int = 0
    embedded: int = 0
    parameters: int = 0
    format: str = ""


def read_shape(text: str, name: str) -> Shape:
    """Read a model's shape; raise `BadInput` for what is no such file.

    {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096,
     "intermediate_size": 14336, "vocab_size": 128256, "hidden_act": "silu", "torch_dtype": "bfloat16"}
    """
    try:
        config: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise _no_config(name) from error
    inner = config.get("text_config")  # of models that see or hear, too
    whole = config
    if isinstance(inner, dict):
        config = inner
    layers, heads, hidden = (_size(config, key) for key in ("num_hidden_layers", "num_attention_heads", "hidden_size"))
    head_dim = _size(config, "head_dim") or (hidden // heads if heads else 0)
    if not (layers and heads and head_dim):
        raise _no_config(name)
    full, windowed, others = _layers(config, layers)
    shape = Shape(
        full=full,
        windowed=windowed,
        others=others,
        window=_size(config, "sliding_window") if config.get("use_sliding_window", True) else 0,
        kv_heads=_size(config, "num_key_value_heads") or heads,
        head_dim=head_dim,
        latent=_latent(config),
        embedded=_size(config, "vocab_size") * hidden * (1 if config.get("tie_word_embeddings") else 2),
        format=_format(whole) or _format(config),
    )
    return msgspec.structs.replace(shape, parameters=_parameters(config, shape, layers * heads * head_dim))


def _no_config(name: str) -> BadInput:
    return BadInput(
        _("{file} is not the config.json of a language model.", file=name),
        hint=_("That file lies beside the weights and names num_hidden_layers and num_attention_heads."),
    )


def _size(config: dict[str, Any], key: str) -> int:
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _LARGEST else 0


def _layers(config: dict[str, Any], layers: int) -> tuple[int, int, int]:
    """Count the layers that keep the whole context, those with a window, and the others.

    A kind that is not known is taken for the first: its cache may be smaller, and is not larger.
    """
    kinds = config.get("layer_types")
    if not isinstance(kinds, list) or len(kinds) != layers:
        return layers, 0, 0
    windowed, others = kinds.count("sliding_attention"), sum(kind in _WITHOUT_CACHE for kind in map(str, kinds))
    return layers - windowed - others, windowed, others


def _latent(config: dict[str, Any]) -> int:
    rank = _size(config, "kv_lora_rank")
    return rank + _size(config, "qk_rope_head_dim") if rank else 0


def _format(config: dict[str, Any]) -> str:
    """Return how weights are stored, else the type of the numbers; "" if not said.

    {"quantization_config": {"quant_method": "gptq", "bits": 3}} is "gptq-3"; methods that name no other take 4 bits.
    """
    quantized = config.get("quantization_config")
    if isinstance(quantized, dict):
        method, bits = str(quantized.get("quant_method", "")).lower(), quantized.get("bits", 4)
        if quantized.get("load_in_8bit") or bits == 8:  # noqa: PLR2004 - bits
            return "int8"
        return method if bits == 4 else f"{method}-{bits}"  # noqa: PLR2004 - bits
    return str(config.get("dtype") or config.get("torch_dtype") or "")


def _parameters(config: dict[str, Any], shape: Shape, queries: int) -> int:
    """Count the parameters of a dense model with gated layers; 0 for any other. `queries` are all heads' widths."""
    hidden, inner = _size(config, "hidden_size"), _size(config, "intermediate_size")
    layers = shape.full + shape.windowed
    mixture = any("expert" in key for key in config)
    if config.get("hidden_act") != "silu" or mixture or shape.others or shape.latent or not (inner and shape.embedded):
        return 0
    attention = 2 * hidden * queries + layers * 2 * hidden * shape.kv_heads * shape.head_dim
    return shape.embedded + attention + layers * 3 * hidden * inner

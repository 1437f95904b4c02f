"""The shape of a language model, read off the config.json that lies beside its weights."""

from __future__ import annotations

from typing import Any

import msgspec

from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.record import Record

# Layers that keep a state of fixed size, or none. As transformers names them, now and before (ALLOWED_ATTN_LAYER_TYPES
# and what is remapped, configuration_utils.py of 5.20.0); RecurrentGemma's own is "recurrent".
_WITHOUT_CACHE = {"linear_attention", "mamba", "conv", "moe", "recurrent"}
_LARGEST = 10**9  # chosen: no dimension of a model is larger, and what is would only make figures absurd


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

"""Whether a language model fits, held against what others measured and published."""

from __future__ import annotations

import json

import pytest
from tables import each

from assistant.model.errors import BadInput
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend
from assistant_addons.projects.memory import (
    Shape,
    Verdict,
    estimate,
    format_of,
    judge,
    largest_card,
    read_shape,
)

MIB = 1 / 1024
LLAMA_2_7B = Shape(full=32, kv_heads=32, head_dim=128)
LLAMA_31_8B = {
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "hidden_act": "silu",
    "torch_dtype": "bfloat16",
}


def shape_of(**changes: object) -> Shape:
    """Read Llama 3.1's shape, changed."""
    return read_shape(json.dumps({**LLAMA_31_8B, **changes}), "config.json")


def test_llama_2_in_llama_cpp() -> None:
    """llama.cpp's log of Q4_K_M with 2048 tokens: weights 3891 MiB, cache 1024 MiB, compute buffers 164 MiB."""
    need = estimate(6_738_415_616, format_of("q4_k_m"), 2048, LLAMA_2_7B)
    assert need.weights == pytest.approx(3891.25 * MIB, rel=0.02)
    assert need.cache_most == need.cache_least == 1024 * MIB
    assert 5008.95 * MIB + 0.3 <= need.most <= (5008.95 * MIB + 0.3) * 1.2
    assert [judge(need, size) for size in (8, 6, 5)] == [Verdict.FITS, Verdict.TIGHT, Verdict.NOT]


def test_llama_31_in_vllm() -> None:
    """By logs of vLLM, loading took 14.99 GiB, and 19.28 and 26.43 GiB of cache hold 157,936 and 216,512 tokens."""
    shape = shape_of()
    assert shape.parameters == pytest.approx(8_030_261_248, rel=1e-4)
    need = estimate(shape.parameters, format_of(shape.format), 157_936, shape)
    assert need.weights == pytest.approx(14.99, rel=0.01)
    assert need.cache_most == pytest.approx(19.28, rel=0.001)
    assert estimate(shape.parameters, format_of("16"), 216_512, shape).cache_most == pytest.approx(26.43, rel=0.001)
    short = estimate(shape.parameters, format_of("16"), 8192, shape)
    assert [judge(short, size) for size in (16, 24)] == [Verdict.NOT, Verdict.FITS]
    assert judge(estimate(shape.parameters, format_of("16"), 131_072, shape), 24) is Verdict.NOT


def test_llama_31_in_4_bit_keeps_its_embeddings() -> None:
    """Unsloth's log on a T4: weights 5.3541 GiB, 6.72 GiB with all but the cache; half a byte each would be 3.7."""
    shape = shape_of(quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True})
    need = estimate(shape.parameters, format_of(shape.format), 512, shape)
    assert need.weights == pytest.approx(5.3541, rel=0.02)
    assert need.most - need.cache_most == pytest.approx(6.72, rel=0.03)


def test_without_a_shape_the_cache_is_a_range_that_holds_the_true_one() -> None:
    """Llama 2 and 3.1 lie within; where the answer depends on it, it is told to be unknown."""
    need = estimate(8_030_261_248, format_of("4"), 8192, None)
    assert need.cache_least < 1.0 < need.cache_most
    assert estimate(6_738_415_616, format_of("4"), 2048, None).cache_most == pytest.approx(1.0, rel=0.15)
    assert [judge(need, size) for size in (24, 8, 4, None)] == [
        Verdict.FITS,
        Verdict.UNKNOWN,
        Verdict.NOT,
        Verdict.UNKNOWN,
    ]


def test_windows_and_compressed_caches_are_smaller() -> None:
    """A layer with a window keeps no more than that; MLA is told from its width to the whole of its heads."""
    kinds = ["sliding_attention"] * 24 + ["full_attention"] * 8
    windowed = shape_of(layer_types=kinds, sliding_window=1024)
    need = estimate(windowed.parameters, format_of("16"), 8192, windowed)
    assert need.cache_least == need.cache_most == pytest.approx((8 * 8192 + 24 * 1024) * 4096 / 1024**3)
    unsaid = shape_of(sliding_window=1024)  # for some of the layers, and it is not said which
    assert estimate(8 * 10**9, format_of("16"), 8192, unsaid).cache_least == pytest.approx(0.125)
    latent = shape_of(kv_lora_rank=512, qk_rope_head_dim=64)
    need = estimate(8 * 10**9, format_of("16"), 8192, latent)
    assert need.cache_least == pytest.approx(576 * 2 * 32 * 8192 / 1024**3)
    assert need.cache_most == 1.0
    hybrid = shape_of(layer_types=["linear_attention"] * 24 + ["full_attention"] * 8)
    assert estimate(8 * 10**9, format_of("16"), 8192, hybrid).cache_most == 0.25
    unused = shape_of(sliding_window=1024, use_sliding_window=False)
    assert estimate(8 * 10**9, format_of("16"), 8192, unused).cache_least == 1.0


@each(
    ("kinds", "layers"),
    [
        (["mamba"] * 28 + ["attention"] * 4, 4),  # Granite 4
        (["chunked_attention"] * 24 + ["full_attention"] * 8, 32),  # Llama 4: its chunks are of the length here
        (["conv"] * 20 + ["full_attention"] * 12, 12),  # LFM 2
        (["something_new"] * 32, 32),
    ],
)
def test_a_layer_of_an_unknown_kind_has_a_cache(kinds: list[str], layers: int) -> None:
    """Only those that are known to keep a state of fixed size have none: a cache is never told too small."""
    shape = shape_of(layer_types=kinds)
    assert estimate(8 * 10**9, format_of("16"), 8192, shape).cache_most == layers / 32


@each(
    ("quantization", "gib"),
    [
        ({"quant_method": "gptq", "bits": 4}, 5.42),
        ({"quant_method": "gptq", "bits": 3}, 4.6),
        ({"quant_method": "gptq", "bits": 2}, 3.79),
        ({"quant_method": "gptq", "bits": 8}, 8.46),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8.46),
        ({"quant_method": "fp8"}, 8.46),
    ],
)
def test_the_bits_of_quantized_weights_are_counted(quantization: dict[str, object], gib: float) -> None:
    """Llama 3.1 8B: its 1.05 billion parameters of embeddings and output stay in 16 bits."""
    shape = shape_of(quantization_config=quantization)
    assert estimate(shape.parameters, format_of(shape.format), 512, shape).weights == pytest.approx(gib, abs=0.01)


@each("method", ["compressed-tensors", "hqq"])
def test_a_format_that_is_not_known_names_the_option(method: str) -> None:
    """The bits can be given in its place."""
    with pytest.raises(BadInput) as refused:
        format_of(shape_of(quantization_config={"quant_method": method}).format)
    assert refused.value.hint.params["option"] == "--bits"


@each("text", ["", "[]", "{", '{"num_hidden_layers": "x"}', '{"num_hidden_layers": -1, "hidden_size": 1}'])
def test_what_is_no_config_is_refused(text: str) -> None:
    """With a sentence that names the file."""
    with pytest.raises(BadInput, match=r"m\.json is not the config\.json of a language model"):
        read_shape(text, "m.json")


def test_the_number_of_parameters_is_not_guessed() -> None:
    """A mixture of experts, or layers that are not gated, have another count: none is told."""
    assert shape_of(num_experts=64).parameters == 0
    assert shape_of(hidden_act="gelu").parameters == 0


def test_shared_memory_is_unknown() -> None:
    """A GPU in the processor takes of the machine's memory; of two cards the larger counts."""
    radeon = Gpu(vendor=Vendor.AMD, name="AMD Radeon 780M", gfx="gfx1103", integrated=True, vram_gb=4)
    cards = (Gpu(vendor=Vendor.NVIDIA, vram_gb=8, compute_capability="8.9", integrated=False), radeon)
    assert largest_card(Machine(gpus=cards), Backend.CUDA)[1] == 8
    assert largest_card(Machine(gpus=cards), Backend.ROCM) == ("Radeon 780M", None)
    assert largest_card(Machine(gpus=(Gpu(vendor=Vendor.APPLE, vram_gb=36),)), Backend.MPS)[1] is None


def test_the_card_that_is_named_is_the_one_whose_memory_is_told() -> None:
    """The first need not be the largest; one of unknown memory may be, and is named."""
    small, large, unknown = (
        Gpu(vendor=Vendor.NVIDIA, name=f"NVIDIA GeForce RTX {name}", vram_gb=size, integrated=False)
        for name, size in (("4060", 8), ("3090", 24), ("5090", None))
    )
    assert largest_card(Machine(gpus=(small, large)), Backend.CUDA) == ("GeForce RTX 3090", 24)
    assert largest_card(Machine(gpus=(small, unknown)), Backend.CUDA) == ("GeForce RTX 5090", None)
    assert largest_card(Machine(), Backend.CUDA) == ("", None)

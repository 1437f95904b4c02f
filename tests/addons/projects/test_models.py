"""A model by its name: what is stated of it, or the size that the name carries; any other name asks for the size."""

from __future__ import annotations

import pytest
from tables import each

from assistant.model.errors import BadInput
from assistant_addons.projects.memory import Verdict, format_of, judge_stated
from assistant_addons.projects.models import Named, find_model
from assistant_addons.projects.tables import load


@each(
    ("name", "billions", "kind"),
    [
        ("llama3.1-8b", 8, ""),
        ("llama3.1:8b-instruct-q4_K_M", 8, "q4_k_m"),
        ("Qwen/Qwen2.5-7B-Instruct", 7, ""),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", 7, "gptq"),
        ("Qwen/Qwen3-30B-A3B", 30, ""),  # of which 3B are active
        ("HuggingFaceTB/SmolLM2-135M", 0.135, ""),
        ("unsloth/Llama-3.2-3B-Instruct-bnb-4bit", 3, "nf4"),
        ("TheBloke/Llama-2-13B-chat-GPTQ", 13, "gptq"),
        ("neuralmagic/Meta-Llama-3.1-70B-Instruct-FP8", 70, "fp8"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 46.7, ""),
        ("deepseek-ai/DeepSeek-R1", 671, "fp8"),
        ("deepseek-r1:8b", 8, ""),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", 32, ""),
        ("microsoft/phi-4", 14.7, ""),
        ("microsoft/Phi-4-mini-instruct", 3.8, ""),
        ("unsloth/phi-4-bnb-4bit", 14.7, "nf4"),
        ("mistralai/Mistral-Nemo-Instruct-2407", 12.2, ""),
    ],
)
def test_a_language_model_is_known_by_its_name(name, billions, kind):
    """The whole model counts, whatever part of it is active, in the format that the name states."""
    model = find_model(name)
    assert model.parameters == pytest.approx(billions * 1e9)
    assert (model.format, model.gb) == (kind, 0)


@each(
    ("name", "gb"),
    [
        ("sdxl", 8),
        ("stabilityai/stable-diffusion-xl-base-1.0", 8),
        ("flux.1-dev", 10),
        ("black-forest-labs/FLUX.1-schnell", 10),
        ("whisper-large-v3", 10),
        ("openai/whisper-large-v3-turbo", 6),
        ("openai/gpt-oss-20b", 16),
        ("Wan-AI/Wan2.1-T2V-1.3B", 8.2),
    ],
)
def test_of_others_counts_what_somebody_states(name, gb):
    """What they take does not follow from their parameters alone."""
    model = find_model(name)
    assert model.gb == gb
    assert model.by


@each(
    "name",
    [
        "llama",
        "no-such-model",
        "google/gemma-3n-E4B-it",  # 8 billion, of which 4 are effective
        "microsoft/Phi-4-multimodal-instruct",  # not the size of phi-4
        "tencent/HunyuanVideo-1.5",  # nor that of its first version
        "meta-llama/Llama-4-Maverick-17B-128E-Instruct",  # 400 billion, which it does not say
        "zai-org/CogVideoX-5b",  # video takes more than its parameters
        "mistralai/Some-8x9B",
        "draft-1b-for-70b",
        "",
    ],
)
def test_a_name_that_does_not_say_how_large_the_model_is_asks_for_it(name):
    """In one sentence, with the options that tell it."""
    with pytest.raises(BadInput) as raised:
        find_model(name)
    assert "--parameters 8B" in str(raised.value.hint)


def test_the_table_is_sound():
    """No name stands twice, each row has a source and one kind of figure, and each format is one."""
    rows = load("memory.models", Named)
    names = [name for row in rows for name in (row.key, *row.also)]
    assert len(names) == len(set(names))
    for row in rows:
        assert row.source.startswith("https://"), row.key
        assert bool(row.parameters) is not bool(row.gb), row.key
        assert bool(row.gb) is bool(row.by), row.key
        assert row.least < row.gb or not row.least, row.key
        assert find_model(row.key) == row
        assert not row.format or format_of(row.format)


def test_less_than_is_stated_is_slow_and_less_than_ever_ran_does_not_fit():
    """A card of 8 GB tells 7.9; where nobody states the least, a quarter is that of 4 bits, and more is unknown."""
    judged = [judge_stated(10, 2.9, has) for has in (24, 9.9, 8, 2, None)]
    assert judged == [Verdict.FITS, Verdict.FITS, Verdict.TIGHT, Verdict.NOT, Verdict.UNKNOWN]
    assert [judge_stated(80, 0, has) for has in (80, 40, 4)] == [Verdict.FITS, Verdict.UNKNOWN, Verdict.UNKNOWN]

"""Texts whose cause nobody can name for certain, and the causes that they are most like."""

from __future__ import annotations

import pytest

from assistant.diagnose import next_step, read_log
from assistant.model.machine import Gpu, Machine, Vendor

RADEON = Machine(os="linux", gpus=(Gpu(vendor=Vendor.AMD, name="AMD Radeon RX 7900 XTX"),))
RTX = Machine(os="linux", gpus=(Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 4060"),))

STORIES = {
    "rocm-igpu-enumeration": (
        RADEON,
        (
            "The model server goes down as soon as a model is loaded. It counts two devices, one must be the tiny "
            "integrated graphics of the processor. Another program was ill until I switched the iGPU off."
        ),
    ),
    "nvidia-uvm-stale": (
        RTX,
        (
            "合上盖子睡一觉再打开，同一个模型就慢得像蜗牛，监控里全是 CPU 在转。只有整机重启才行。"
            "网上说重新加载 nvidia_uvm 内核模块，提示正在被占用，卸不掉。"
        ),
    ),
    "miopen-find-mode": (
        RADEON,
        (
            "Sampling is quick. Decoding the latent took thirty-seven minutes the first time, with a busy GPU. The "
            "second picture is fast, until I choose another resolution: MIOpen seems to search for kernels each time."
        ),
    ),
}


@pytest.mark.parametrize("key", STORIES)
def test_a_story_names_causes_to_try(key: str) -> None:
    """The likest ones, each with what helps, and the sentence of the story that speaks for it."""
    machine, story = STORIES[key]
    step = next_step(read_log(story), machine)
    found = {match.diagnosis.key: match.diagnosis for match in step.possible}
    assert key in found
    assert 1 <= len(found) <= 3
    for cause in found.values():
        assert cause.remedies
        assert len(cause.evidence) == 1
        assert cause.evidence[0] in story
        assert cause.evidence[0] != story
        assert not cause.sure


@pytest.mark.parametrize("text", ["all is well", "Thanks, solved: after a reboot it works.", "RuntimeError: odd", ""])
def test_what_is_like_no_cause_gets_none(text: str) -> None:
    """No list of guesses for a text that tells nothing of the kind."""
    assert next_step(read_log(text), RTX).possible == ()


def test_a_cause_that_the_machine_cannot_have_is_no_guess() -> None:
    """The same story on a machine with a card of another maker has other causes."""
    _radeon, story = STORIES["rocm-igpu-enumeration"]
    keys = {match.diagnosis.key for match in next_step(read_log(story), RTX).possible}
    assert not any(key.startswith("rocm-") for key in keys)
    assert not any("wsl" in match.diagnosis.key for match in next_step(read_log(story), RADEON).possible)

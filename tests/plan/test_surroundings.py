"""What goes along with the packages that a user asks for, beside a plan's torch."""

from __future__ import annotations

from assistant.catalog import load_catalog
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Request
from assistant.plan import make_plans

CARD = Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 4090", compute_capability="8.9", vram_gb=24)
PC = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12.4", gpus=(CARD,), nvidia_driver="590.44")


def planned(*pins, backend=None):
    """Plan for a Linux machine with an RTX 4090 and a driver for CUDA 13."""
    return make_plans(PC, load_catalog(), Request(pins=pins, backend=backend)).choice


def test_ctranslate2_gets_its_cublas_beside_a_torch_for_cuda_13():
    """It is built for CUDA 12: the library is planned, and where the loader has to look is said."""
    plan = planned("faster-whisper")
    assert plan.variant.startswith("cu13")
    assert "nvidia-cublas-cu12" in plan.requirements
    assert any("nvidia/cublas/lib" in str(warning.params.get("folder")) for warning in plan.warnings)
    for other in (planned("faster-whisper", "torch==2.14.1+cu126"), planned("faster-whisper", backend=Backend.CPU)):
        assert "nvidia-cublas-cu12" not in other.requirements
        assert not any("nvidia/cublas" in str(warning) for warning in other.warnings)


def test_what_the_system_has_to_bring_is_said_with_the_way_to_it():
    """FFmpeg comes with no package of Python."""
    said = [f"{warning}" for warning in planned("torchcodec").warnings]
    assert any("FFmpeg" in text and "sudo apt install ffmpeg" in text for text in said), said
    assert not any("FFmpeg" in str(warning) for warning in planned("einops").warnings)

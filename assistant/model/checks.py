"""The checks of a quick and of a full verification, in order, with their names for people."""

from __future__ import annotations

from typing import Literal

from assistant.i18n import Message, _, verbatim

__all__ = ["CHECKS", "FULL", "QUICK", "Level", "check_title"]

Level = Literal["quick", "full"]


def check_title(key: str) -> Message:
    """Name a check in the user's language; an unknown key names itself."""
    return {**_first(), **_arithmetic(), **_work()}.get(key, verbatim(key))


def _first() -> dict[str, Message]:
    return {
        "import": _("Import torch"),
        "device": _("Allocate on the device"),
        "copy": _("Copy to the device and back"),
        "matmul": _("Multiply matrices"),
        "linalg.solve": _("Solve a linear system"),
        "linalg.solve.batched": _("Solve a batch of linear systems"),
        "linalg.solve.broadcast": _("Solve linear systems with shared right-hand sides"),
        "conv2d": _("Convolve images"),
        "training": _("Take one training step"),
        "reductions": _("Sums, means, maxima and softmax"),
        "onnxruntime": _("Run a model with ONNX Runtime"),
    }


def _arithmetic() -> dict[str, Message]:
    return {
        "linalg.svd": _("Find singular values and vectors"),
        "linalg.qr": _("Decompose matrices by QR"),
        "linalg.cholesky": _("Decompose matrices by Cholesky"),
        "linalg.eigh": _("Find eigenvalues and eigenvectors"),
        "conv1d": _("Convolve sequences"),
        "conv_transposed": _("Convolve transposed"),
        "attention": _("Attend over a sequence"),
        "indexing": _("Gather, scatter, mask and sort"),
        "random": _("Draw random numbers"),
        "complex": _("Complex numbers and Fourier transforms"),
        "integers": _("Compute with 64-bit integers"),
        "float16": _("Compute in float16"),
        "bfloat16": _("Compute in bfloat16"),
        "float64": _("Compute in float64"),
        "autocast": _("Train in mixed precision"),
        "out_of_memory": _("Refuse too much memory and go on"),
        "memory": _("Give memory back"),
    }


def _work() -> dict[str, Message]:
    return {
        "small_kernels": _("Run many small operators"),
        "workload.llm": _("Generate tokens with a language model"),
        "workload.tts": _("Turn text into a spectrogram"),
        "workload.vocoder": _("Turn a spectrogram into sound"),
        "workload.lora": _("Fine-tune a model with LoRA"),
        "speed.bandwidth": _("Speed of copying"),
        "speed.matmul.float32": _("Speed of multiplying in float32"),
        "speed.matmul.float16": _("Speed of multiplying in float16"),
        "speed.matmul.bfloat16": _("Speed of multiplying in bfloat16"),
        "speed.conv2d": _("Speed of convolving"),
        "speed.attention": _("Speed of attention"),
        "speed.softmax": _("Speed of softmax"),
        "compile": _("Compile with torch.compile"),
    }


QUICK = tuple(_first())  # they take a few tenths of a second after `import torch`
FULL = (*QUICK, *_arithmetic(), *_work())
CHECKS: dict[Level, tuple[str, ...]] = {"quick": QUICK, "full": FULL}

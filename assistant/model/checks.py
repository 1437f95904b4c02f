"""The checks of a quick and of a full verification in their order: one table of all that is known of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assistant.i18n import Message, _, verbatim

Level = Literal["quick", "full"]

BASE = _("The device itself")
ALGEBRA = _("Arithmetic and linear algebra")
NETWORKS = _("Parts of networks")
WHOLE = _("Whole models")
SPEED = _("Speed")


@dataclass(frozen=True)
class Known:
    """What a check is called and what kind it is; how much hangs on it.

    A `quick` one takes a few tenths of a second after `import torch`. Without an `essential` one nothing that people
    bring can run; a `spare` one a device may lack and still pass: types that many devices do not have, and a compiler
    that speeds up at most.
    """

    title: Message
    kind: Message
    quick: bool = False
    essential: bool = False
    spare: bool = False


_TABLE = {
    "import": Known(_("Import torch"), BASE, quick=True, essential=True),
    "device": Known(_("Allocate on the device"), BASE, quick=True, essential=True),
    "copy": Known(_("Copy to the device and back"), BASE, quick=True, essential=True),
    "matmul": Known(_("Multiply matrices"), ALGEBRA, quick=True, essential=True),
    "linalg.solve": Known(_("Solve a linear system"), ALGEBRA, quick=True),
    "linalg.solve.batched": Known(_("Solve a batch of linear systems"), ALGEBRA, quick=True),
    "linalg.solve.broadcast": Known(_("Solve linear systems with shared right-hand sides"), ALGEBRA, quick=True),
    "conv2d": Known(_("Convolve images"), NETWORKS, quick=True),
    "training": Known(_("Take one training step"), NETWORKS, quick=True, essential=True),
    "reductions": Known(_("Sums, means, maxima and softmax"), ALGEBRA, quick=True),
    "onnxruntime": Known(_("Run a model with ONNX Runtime"), WHOLE, quick=True),
    "linalg.svd": Known(_("Find singular values and vectors"), ALGEBRA),
    "linalg.qr": Known(_("Decompose matrices by QR"), ALGEBRA),
    "linalg.cholesky": Known(_("Decompose matrices by Cholesky"), ALGEBRA),
    "linalg.eigh": Known(_("Find eigenvalues and eigenvectors"), ALGEBRA),
    "conv1d": Known(_("Convolve sequences"), NETWORKS),
    "conv_transposed": Known(_("Convolve transposed"), NETWORKS),
    "attention": Known(_("Attend over a sequence"), NETWORKS),
    "indexing": Known(_("Gather, scatter, mask and sort"), BASE),
    "random": Known(_("Draw random numbers"), BASE),
    "complex": Known(_("Complex numbers and Fourier transforms"), ALGEBRA, spare=True),
    "integers": Known(_("Compute with 64-bit integers"), ALGEBRA),
    "float16": Known(_("Compute in float16"), ALGEBRA, spare=True),
    "bfloat16": Known(_("Compute in bfloat16"), ALGEBRA, spare=True),
    "float64": Known(_("Compute in float64"), ALGEBRA, spare=True),
    "autocast": Known(_("Train in mixed precision"), NETWORKS, spare=True),
    "out_of_memory": Known(_("Refuse too much memory and go on"), BASE),
    "memory": Known(_("Give memory back"), BASE),
    "small_kernels": Known(_("Run many small operators"), BASE),
    "workload.llm": Known(_("Generate tokens with a language model"), WHOLE),
    "workload.tts": Known(_("Turn text into a spectrogram"), WHOLE),
    "workload.vocoder": Known(_("Turn a spectrogram into sound"), WHOLE),
    "workload.lora": Known(_("Fine-tune a model with LoRA"), WHOLE),
    "speed.bandwidth": Known(_("Speed of copying"), SPEED),
    "speed.matmul.float32": Known(_("Speed of multiplying in float32"), SPEED),
    "speed.matmul.float16": Known(_("Speed of multiplying in float16"), SPEED),
    "speed.matmul.bfloat16": Known(_("Speed of multiplying in bfloat16"), SPEED),
    "speed.conv2d": Known(_("Speed of convolving"), SPEED),
    "speed.attention": Known(_("Speed of attention"), SPEED),
    "speed.softmax": Known(_("Speed of softmax"), SPEED),
    "compile": Known(_("Compile with torch.compile"), BASE, spare=True),
}
QUICK = tuple(key for key, known in _TABLE.items() if known.quick)
FULL = tuple(_TABLE)
CHECKS: dict[Level, tuple[str, ...]] = {"quick": QUICK, "full": FULL}
ESSENTIAL = frozenset(key for key, known in _TABLE.items() if known.essential)
SPARE = frozenset(key for key, known in _TABLE.items() if known.spare)


def check_title(key: str) -> Message:
    """Name a check; an unknown key names itself."""
    return _TABLE[key].title if key in _TABLE else verbatim(key)


def check_kind(key: str) -> Message:
    """Name the kind of a check; one of an older or newer report counts with the whole models."""
    return _TABLE[key].kind if key in _TABLE else WHOLE

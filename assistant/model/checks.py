"""The checks of a quick and a full verification, in order, with all that is known about each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assistant.i18n import Message, _, ngettext, verbatim

Level = Literal["quick", "full"]

BASE = _("The device itself")
ALGEBRA = _("Arithmetic and linear algebra")
NETWORKS = _("Network layers")
WHOLE = _("Whole models")
SPEED = _("Speed")
ASKED = _("The packages that you asked for")
PACKAGE = "package."  # begins the key of the check that imports a distribution; its name follows
RECIPE = "recipe."  # begins the key of the check that runs a recipe's verification call; the recipe's key follows
PACKAGES = "packages."  # begins that of several in one row; their number follows


@dataclass(frozen=True)
class CheckInfo:
    """Title and kind of a check, and how much depends on it.

    A `quick` check takes a few tenths of a second after `import torch`. If an `essential` one fails, no user's program
    can run. A device passes without a `spare` one: types that many devices lack, and a compiler that is only faster.
    """

    title: Message
    kind: Message
    quick: bool = False
    essential: bool = False
    spare: bool = False


_TABLE = {
    "import": CheckInfo(_("Import torch"), BASE, quick=True, essential=True),
    "device": CheckInfo(_("Allocate memory on the device"), BASE, quick=True, essential=True),
    "copy": CheckInfo(_("Copy to the device and back"), BASE, quick=True, essential=True),
    "matmul": CheckInfo(_("Multiply matrices"), ALGEBRA, quick=True, essential=True),
    "linalg.solve": CheckInfo(_("Solve a linear system"), ALGEBRA, quick=True),
    "linalg.solve.batched": CheckInfo(_("Solve a batch of linear systems"), ALGEBRA, quick=True),
    "linalg.solve.broadcast": CheckInfo(_("Solve linear systems with shared right-hand sides"), ALGEBRA, quick=True),
    "conv2d": CheckInfo(_("Convolve images"), NETWORKS, quick=True),
    "training": CheckInfo(_("Take one training step"), NETWORKS, quick=True, essential=True),
    "reductions": CheckInfo(_("Compute sums, means, maxima and softmax"), ALGEBRA, quick=True),
    "onnxruntime": CheckInfo(_("Run a model with ONNX Runtime"), WHOLE, quick=True),
    "linalg.svd": CheckInfo(_("Compute singular values and vectors"), ALGEBRA),
    "linalg.qr": CheckInfo(_("Compute QR decompositions"), ALGEBRA),
    "linalg.cholesky": CheckInfo(_("Compute Cholesky decompositions"), ALGEBRA),
    "linalg.eigh": CheckInfo(_("Compute eigenvalues and eigenvectors"), ALGEBRA),
    "conv1d": CheckInfo(_("Convolve sequences"), NETWORKS),
    "conv_transposed": CheckInfo(_("Apply a transposed convolution"), NETWORKS),
    "attention": CheckInfo(_("Compute attention over a sequence"), NETWORKS),
    "indexing": CheckInfo(_("Gather, scatter, mask and sort"), BASE),
    "random": CheckInfo(_("Draw random numbers"), BASE),
    "complex": CheckInfo(_("Compute with complex numbers and Fourier transforms"), ALGEBRA, spare=True),
    "integers": CheckInfo(_("Compute with 64-bit integers"), ALGEBRA),
    "float16": CheckInfo(_("Compute in float16"), ALGEBRA, spare=True),
    "bfloat16": CheckInfo(_("Compute in bfloat16"), ALGEBRA, spare=True),
    "float64": CheckInfo(_("Compute in float64"), ALGEBRA, spare=True),
    "autocast": CheckInfo(_("Train in mixed precision"), NETWORKS, spare=True),
    "out_of_memory": CheckInfo(_("Survive a request for too much memory"), BASE),
    "memory": CheckInfo(_("Release memory"), BASE),
    "small_kernels": CheckInfo(_("Run many small operators"), BASE),
    "workload.llm": CheckInfo(_("Generate tokens with a language model"), WHOLE),
    "workload.tts": CheckInfo(_("Turn text into a spectrogram"), WHOLE),
    "workload.vocoder": CheckInfo(_("Turn a spectrogram into sound"), WHOLE),
    "workload.lora": CheckInfo(_("Fine-tune a model with LoRA"), WHOLE),
    "speed.matmul.float32": CheckInfo(_("Matrix product speed in float32"), SPEED),
    "compile": CheckInfo(_("Compile with torch.compile"), BASE, spare=True),
}
QUICK = tuple(key for key, known in _TABLE.items() if known.quick)
FULL = tuple(_TABLE)
CHECKS: dict[Level, tuple[str, ...]] = {"quick": QUICK, "full": FULL}
ESSENTIAL = frozenset(key for key, known in _TABLE.items() if known.essential)
SPARE = frozenset(key for key, known in _TABLE.items() if known.spare)


def package_check(name: str) -> str:
    """Return the key of the check that imports a distribution, by its canonical name."""
    return PACKAGE + name


def recipe_check(key: str) -> str:
    """Return the key of the check that runs a recipe's verification call, by the recipe's key."""
    return RECIPE + key


def checked_package(key: str) -> str:
    """Return the distribution or the recipe that a check tries, as it was asked for; "" for any other check."""
    return next((key.removeprefix(start) for start in (PACKAGE, RECIPE) if key.startswith(start)), "")


def check_title(key: str) -> Message:
    """Return a check's title; an unknown key is its own."""
    if name := checked_package(key):
        text = _("{name}: verification call") if key.startswith(RECIPE) else _("{name}: import")
        return text.format(name=name)
    if key.startswith(PACKAGES):
        return ngettext("{count} package: import", "{count} packages: import", int(key.removeprefix(PACKAGES)))
    return _TABLE[key].title if key in _TABLE else verbatim(key)


def check_kind(key: str) -> Message:
    """Return a check's kind; an unknown check, from another version's report, counts as a whole model."""
    if key.startswith((PACKAGE, PACKAGES, RECIPE)):
        return ASKED
    return _TABLE[key].kind if key in _TABLE else WHOLE

"""Tries a model in child processes: does it load, what runs where, does it agree with FP32 on the CPU, how fast."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assistant.api import Message, _, render
from assistant_addons.onnx.answers import TRY_SECONDS, Agreement, Attempt, Provider, Run
from assistant_addons.onnx.child import Ended, call, limits
from assistant_addons.onnx.conversion import read_samples
from assistant_addons.onnx.load import load_model
from assistant_addons.onnx.proof import distance

TOLERANCE = 1e-2  # of the largest number, as the rounding of FP16 makes it in deep networks (chosen)
FEW_CHANGED = 0.01  # of integers and truths
REPEATS = 5  # of which the median time counts


def try_model(
    model: str | Path,
    reference: str | Path | None = None,
    provider: Provider = "dml",
    *,
    inputs: str | Path = "",
    limit: float = TRY_SECONDS,
    python: str = sys.executable,
) -> Attempt:
    """Try a model on a provider against `reference`, its source or itself, in FP32 on the CPU.

    `inputs` is a file of arrays to run both on. A child that crashes or exceeds `limit` seconds is an answer, not a
    failure of ours. Raises `BadInput` for files that nothing could load.
    """
    model = Path(model)
    reference = Path(reference) if reference else source_of(model) or model
    for file in (reference, model):
        load_model(file, weights=False)  # which refuses what nothing could load
    with tempfile.TemporaryDirectory(prefix="onnx-try-") as name:
        folder = Path(name)
        if inputs:
            np.savez(folder / "inputs.npz", **read_samples(inputs))
        run = partial(_run, folder, limit=limit, python=python)
        before = run("reference", reference, "cpu")
        after = Run(error=before.error) if before.error else run("model", model, provider)
        rounded = Run() if before.error else run("rounded", model, "rounded")
        agreement, strict = (_compare(folder, name) for name in ("model", "rounded"))
    return Attempt(
        model=str(model),
        reference=str(reference),
        wanted=provider,
        reference_run=before,
        run=after,
        agreement=agreement,
        strict=strict,
        notes=tuple(_notes(provider, after, rounded)),
        verdict=_verdict(before, after, agreement, strict),
        passed=not after.error and all(one.agrees for one in (*agreement, *strict)) and bool(agreement),
    )


def source_of(model: Path) -> Path | None:
    """Find the model that a conversion started from, by the name that its result has."""
    source = model.with_name(model.name.replace(".dml.", "."))
    return source if source != model and source.is_file() else None


def _run(folder: Path, name: str, model: Path, provider: str, *, limit: float, python: str) -> Run:
    """Run a model in a child; what it computes is kept under a name in the folder, where its inputs are, too."""
    files = {"inputs": str(folder / "inputs.npz"), "outputs": str(folder / f"{name}.npz")}
    arguments = {"model": str(model.resolve()), "provider": provider, "repeats": REPEATS, **files}
    bounds = limits(limit)
    try:
        return call("assistant_addons.onnx.runs:run", arguments, Run, bounds, python=python)
    except Ended as end:
        if end.reached == "time":
            return Run(error=_("It took longer than {limit:g} s.", limit=limit))
        if end.reached:
            return Run(error=_("It needs more than {size:.1f} GB of memory.", size=bounds.memory / 2**30))
        return Run(error=_("The process died with code {code}.", code=end.code))


def _compare(folder: Path, name: str) -> tuple[Agreement, ...]:
    """Compare a run's outputs with the reference's one by one, in order; empty where one of them has none."""
    expected, found = folder / "reference.npz", folder / f"{name}.npz"
    if not (expected.exists() and found.exists()):
        return ()
    with np.load(expected, allow_pickle=False) as one, np.load(found, allow_pickle=False) as other:
        pairs = zip(one.files, other.files, strict=False)
        return tuple(_agreement(name, one[name], other[second]) for name, second in pairs)


def _agreement(name: str, one: NDArray[Any], other: NDArray[Any]) -> Agreement:
    error = distance(one, other)
    if one.shape != other.shape:
        return Agreement(output=name, agrees=False, note=f"{other.shape} ≠ {one.shape}")
    if one.dtype.kind != "f":
        return Agreement(output=name, agrees=error <= FEW_CHANGED, error=error)
    if error == math.inf:
        return Agreement(output=name, agrees=False, note=_("NaN or infinity where there was none, or the reverse"))
    return Agreement(output=name, agrees=error <= TOLERANCE, error=error)


def _notes(wanted: Provider, run: Run, rounded: Run) -> Iterator[Message]:
    if wanted == "dml" and run.provider == "cpu":
        yield _(
            "DirectML is not available: it needs Windows and the package onnxruntime-windowsml. "
            "The model ran on the CPU."
        )
    if rounded.error:
        text = _("The model could not be evaluated with every node rounded: {reason}.")
        yield text.format(reason=_first_line(rounded))


def _verdict(before: Run, after: Run, agreement: Sequence[Agreement], strict: Sequence[Agreement]) -> Message:
    if before.error:
        return _("The reference does not run on the CPU: {reason}.", reason=_first_line(before))
    if after.error:
        return _("The model does not run: {reason}.", reason=_first_line(after))
    wrong = [one.output for one in agreement if not one.agrees]
    if wrong:
        return _("It runs, but its outputs differ: {names}.", names=", ".join(wrong))
    if lost := [one.output for one in strict if not one.agrees]:
        text = _("It agrees on the CPU, but not in {names} where every node rounds to FP16, as on a GPU.")
        return text.format(names=", ".join(lost))
    return _("It runs and agrees with the reference.")


def _first_line(run: Run) -> str:
    return render(run.error).splitlines()[0].rstrip(".")

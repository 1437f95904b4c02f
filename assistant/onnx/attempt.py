"""Tries a model in child processes: does it load, what runs where, does it agree with FP32 on the CPU, how fast."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from assistant.host.files import read_plain
from assistant.host.process import CancelToken
from assistant.host.sandbox import Limits, confine, share_of_memory
from assistant.i18n import Message, _, render
from assistant.onnx.answers import Agreement, Attempt, Run
from assistant.onnx.calibrate import Feeds, is_small
from assistant.onnx.load import load_model
from assistant.onnx.values import program

TOLERANCE = 1e-2  # of the largest number, as the rounding of FP16 makes it in deep networks
SMALLEST_SCALE = 1e-3  # outputs that are all smaller count as this large: their last digits are noise
FEW_CHANGED = 0.01  # of integers and truths
CLASSES = 5  # from so many numbers in the last dimension on, their order is compared as well
LIMIT_SECONDS = 300.0
REPEATS = 5
SHARE, LEAST_MEMORY = 0.75, 2 << 30  # of the machine's memory, in bytes: what a model may use; the rest is others'


def try_model(
    model: str | Path,
    reference: str | Path | None = None,
    provider: str = "dml",
    *,
    samples: Sequence[Feeds] = (),
    limit: float = LIMIT_SECONDS,
    python: str = sys.executable,
    cancel: CancelToken | None = None,
) -> Attempt:
    """Try a model on "dml" or "cpu" against `reference`, or against itself, in FP32 on the CPU.

    A child that crashes or exceeds `limit` seconds is an answer, not a failure of ours. Raises `BadInput` for files
    that nothing could load and `Cancelled` when asked to stop.
    """
    model = Path(model)
    reference = Path(reference) if reference else source_of(model) or model
    small = is_small(program(load_model(model)))
    load_model(reference, weights=False)
    with tempfile.TemporaryDirectory(prefix="onnx-try-") as folder:
        bench = Bench(Path(folder), limit, python, cancel)
        if samples:
            np.savez(bench.inputs, **samples[0])
        before = bench.run(reference, "cpu", "reference")
        after = bench.run(model, provider, "model") if not before.error else Run(error=before.error)
        agreement = bench.compare("reference", "model")
        rounded = bench.run(model, provider, "strict", strict=True) if small and not before.error else None
        strict = bench.compare("reference", "strict")
    notes = tuple(_notes(provider, after, rounded, small=small))
    passed = not after.error and all(one.agrees for one in (*agreement, *strict)) and bool(agreement)
    return Attempt(
        model=str(model),
        reference=str(reference),
        wanted=provider,
        reference_run=before,
        run=after,
        agreement=agreement,
        strict=strict,
        notes=notes,
        verdict=_verdict(before, after, agreement, strict),
        passed=passed,
    )


def source_of(model: Path) -> Path | None:
    """Find the model that a conversion started from, by the log beside it."""
    log = model.with_name(f"{model.name}.log.json")
    try:
        source = msgspec.json.decode(read_plain(log, follow=True), type=dict[str, Any]).get("source")
    except (OSError, msgspec.DecodeError):
        return None
    return Path(source) if isinstance(source, str) and Path(source).is_file() else None


class Bench:
    """A folder where children leave their outputs, and how they are started."""

    def __init__(self, folder: Path, limit: float, python: str, cancel: CancelToken | None) -> None:
        self.folder, self.limit, self.python, self.cancel = folder, limit, python, cancel
        self.inputs = folder / "inputs.npz"

    def run(self, model: Path, provider: str, name: str, *, strict: bool = False) -> Run:
        """Run a model in a child; what it computes is kept under `name`."""
        request = {
            "model": str(model.resolve()),
            "provider": provider,
            "inputs": str(self.inputs),
            "outputs": str(self.folder / f"{name}.npz"),
            "runs": REPEATS,
            "strict": strict,
        }
        limits = Limits(self.limit, share_of_memory(SHARE, LEAST_MEMORY))
        stdin = msgspec.json.encode(request).decode()
        module = "assistant.onnx.child"
        done = confine(module, limits, self.folder, stdin=stdin, python=self.python, cancel=self.cancel)
        if done.reached == "time":
            return Run(error=_("It took longer than {limit:g} s.", limit=self.limit))
        if done.reached:
            size = limits.memory / 2**30
            return Run(error=_("It needs more than {size:.1f} GB of memory.", size=size))
        if done.code or not done.lines:
            return Run(error=_("The process died with code {code}.", code=done.code))
        return msgspec.json.decode(done.lines[-1], type=Run)

    def compare(self, expected: str, found: str) -> tuple[Agreement, ...]:
        """Compare two runs output by output, in order; empty where one of them has none."""
        paths = [self.folder / f"{name}.npz" for name in (expected, found)]
        if not all(path.exists() for path in paths):
            return ()
        with np.load(paths[0], allow_pickle=False) as one, np.load(paths[1], allow_pickle=False) as other:
            pairs = zip(one.files, other.files, strict=False)
            return tuple(_agreement(name, one[name], other[second]) for name, second in pairs)


def _agreement(name: str, one: NDArray[Any], other: NDArray[Any]) -> Agreement:
    if one.shape != other.shape:
        return Agreement(output=name, agrees=False, note=f"{other.shape} ≠ {one.shape}")
    if one.dtype.kind != "f":
        changed = float(np.mean(one != other)) if one.size else 0.0
        return Agreement(output=name, agrees=changed <= FEW_CHANGED, error=changed)
    expected, found = one.astype(np.float64), other.astype(np.float64)
    if (np.isnan(expected) != np.isnan(found)).any() or (np.isinf(expected) != np.isinf(found)).any():
        return Agreement(output=name, agrees=False, note=_("NaN or infinity where there was none, or the reverse"))
    fine = np.isfinite(expected)
    pair = expected[fine], found[fine]
    scale = max(SMALLEST_SCALE, float(np.abs(pair[0]).max(initial=0)))
    error = float(np.abs(pair[0] - pair[1]).max(initial=0)) / scale
    return Agreement(
        output=name, agrees=error <= TOLERANCE, error=error, cosine=_cosine(*pair), top=_top(expected, found)
    )


def _cosine(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one.ravel() @ other.ravel()) / lengths if lengths else None


def _top(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """Give the share of rows whose largest number is among the same place's, as a classifier's answer would be."""
    if not one.ndim or not one.size or one.shape[-1] < CLASSES:
        return None
    return float(np.mean(one.argmax(-1) == other.argmax(-1)))


def _notes(wanted: str, run: Run, rounded: Run | None, *, small: bool) -> list[Message]:
    notes = []
    if wanted == "dml" and run.provider == "cpu":
        notes.append(
            _("DirectML is not there: it needs Windows and the package onnxruntime-directml. The model ran on the CPU.")
        )
    if not small:
        notes.append(_("The model is too large for the evaluation in which every node rounds to its type."))
    elif rounded is not None and rounded.error:
        text = _("The evaluation in which every node rounds was not possible: {reason}.")
        notes.append(text.format(reason=_first_line(rounded)))
    return notes


def _verdict(before: Run, after: Run, agreement: Sequence[Agreement], strict: Sequence[Agreement]) -> Message:
    if before.error:
        return _("The reference does not run on the CPU: {reason}.", reason=_first_line(before))
    if after.error:
        return _("The model does not run: {reason}.", reason=_first_line(after))
    wrong = [one.output for one in agreement if not one.agrees]
    if wrong:
        return _("It runs, but its outputs differ: {names}.", names=", ".join(wrong))
    if lost := [one.output for one in strict if not one.agrees]:
        text = _("It agrees on the CPU, but loses {names} where every node rounds to FP16, as a GPU does.")
        return text.format(names=", ".join(lost))
    return _("It runs and agrees with the reference.")


def _first_line(run: Run) -> str:
    return render(run.error).splitlines()[0].rstrip(".")

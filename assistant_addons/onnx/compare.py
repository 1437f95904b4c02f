"""Tries a model in child processes: does it load, what runs where, does it agree with FP32 on the CPU, how fast."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from assistant.api import Message, _, render, sentences
from assistant.api.records import decoder
from assistant.api.system import read_regular
from assistant_addons.onnx.answers import TRY_SECONDS, Agreement, Attempt, Provider, Run
from assistant_addons.onnx.defects import cause
from assistant_addons.onnx.inputs import Feeds
from assistant_addons.onnx.isolated import limits
from assistant_addons.onnx.load import load_model
from assistant_addons.onnx.operators import foreign_domains, remedy, unknown
from assistant_addons.onnx.program import program
from assistant_addons.onnx.proof import distance
from assistant_addons.onnx.sandbox import confine

TOLERANCE = 1e-2  # of the largest number, as the rounding of FP16 makes it in deep networks (chosen)
FEW_CHANGED = 0.01  # of integers and truths
CLASSES = 5  # from so many numbers in the last dimension on, their order is compared as well
REPEATS = 5  # of which the median time counts


def try_model(
    model: str | Path,
    reference: str | Path | None = None,
    provider: Provider = "dml",
    *,
    samples: Sequence[Feeds] = (),
    limit: float = TRY_SECONDS,
    python: str = sys.executable,
) -> Attempt:
    """Try a model on a provider against `reference`, or itself, in FP32 on the CPU.

    A child that crashes or exceeds `limit` seconds is an answer, not a failure of ours. Raises `BadInput` for files
    that nothing could load.
    """
    model = Path(model)
    reference = Path(reference) if reference else source_of(model) or model
    models = [load_model(file, weights=False) for file in (model, reference)]
    with tempfile.TemporaryDirectory(prefix="onnx-try-") as folder:
        runner = Runner(Path(folder), limit, python)
        if samples:
            np.savez(runner.inputs, **samples[0])
        before = runner.run(reference, "cpu", "reference")
        after = runner.run(model, provider, "model") if not before.error else Run(error=before.error)
        agreement = runner.compare("reference", "model")
        rounded = runner.run(model, provider, "strict", strict=True) if not before.error else None
        strict = runner.compare("reference", "strict")
    notes = tuple(_notes(provider, after, rounded))
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
        verdict=_obstacle(models, before, after) or _verdict(before, after, agreement, strict),
        passed=passed,
    )


def source_of(model: Path) -> Path | None:
    """Find the model that a conversion started from, by the log beside it."""
    log = model.with_name(f"{model.name}.log.json")
    try:
        source = msgspec.json.decode(read_regular(log, follow=True), type=dict[str, Any]).get("source")
    except (OSError, msgspec.DecodeError):
        return None
    return Path(source) if isinstance(source, str) and Path(source).is_file() else None


class Runner:
    """Runs child processes and collects their outputs in one folder."""

    def __init__(self, folder: Path, limit: float, python: str) -> None:
        self.folder, self.limit, self.python = folder, limit, python
        self.inputs = folder / "inputs.npz"

    def run(self, model: Path, provider: Provider, name: str, *, strict: bool = False) -> Run:
        """Run a model in a child; what it computes is kept under `name`."""
        request = {
            "model": str(model.resolve()),
            "provider": provider,
            "inputs": str(self.inputs),
            "outputs": str(self.folder / f"{name}.npz"),
            "runs": REPEATS,
            "work": "strict" if strict else "run",
        }
        allowed = limits(self.limit)
        stdin = msgspec.json.encode(request).decode()
        module = "assistant_addons.onnx.child"
        done = confine(module, allowed, self.folder, stdin=stdin, python=self.python)
        if done.reached == "time":
            return Run(error=_("It took longer than {limit:g} s.", limit=self.limit))
        if done.reached:
            return Run(error=_("It needs more than {size:.1f} GB of memory.", size=allowed.memory / 2**30))
        if done.code or not done.lines:
            return Run(error=_("The process died with code {code}.", code=done.code), died=True)
        return decoder(Run).decode(done.lines[-1])

    def compare(self, expected: str, found: str) -> tuple[Agreement, ...]:
        """Compare two runs output by output, in order; empty where one of them has none."""
        paths = [self.folder / f"{name}.npz" for name in (expected, found)]
        if not all(path.exists() for path in paths):
            return ()
        with np.load(paths[0], allow_pickle=False) as one, np.load(paths[1], allow_pickle=False) as other:
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
    expected, found = one.astype(np.float64), other.astype(np.float64)
    top = None
    if expected.size and expected.ndim and expected.shape[-1] >= CLASSES:
        top = float(np.mean(expected.argmax(-1) == found.argmax(-1)))
    fine = np.isfinite(expected)
    expected, found = expected[fine], found[fine]
    lengths = float(np.linalg.norm(expected) * np.linalg.norm(found))
    cosine = float(expected.ravel() @ found.ravel()) / lengths if lengths else None
    return Agreement(output=name, agrees=error <= TOLERANCE, error=error, cosine=cosine, top=top)


def _notes(wanted: str, run: Run, rounded: Run | None) -> list[Message]:
    notes = []
    if wanted == "dml" and run.provider == "cpu":
        notes.append(
            _(
                "DirectML is not available: it needs Windows and the package onnxruntime-windowsml. "
                "The model ran on the CPU."
            )
        )
    if rounded is not None and rounded.error:
        text = _("The model could not be evaluated with every node rounded: {reason}.")
        notes.append(text.format(reason=_first_line(rounded)))
    return notes


def _obstacle(models: Sequence[ModelProto], before: Run, after: Run) -> Message | None:
    """Return what is known to keep a model from running, where it did not: a library that lacks, or a defect."""
    if not (before.error or after.error):
        return None
    foreign = [domain for model in models for domain in foreign_domains(model)]
    if foreign:
        return sentences((_("The model does not load as it is."), unknown(foreign[0]), remedy(foreign[0])[0]))
    model, run = (models[1], before) if before.error else (models[0], after)
    return cause(program(model), "cpu", render(run.error), died=run.died)


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

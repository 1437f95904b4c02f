"""What a conversion does for a target unless the user says otherwise: by the target's data, not by its name."""

from __future__ import annotations

from pathlib import Path

from assistant.i18n import Message, _
from assistant.model.record import Record
from assistant.onnx.check import examine
from assistant.onnx.target_advice import suited_opset, wants_fixed_sizes
from assistant.onnx.targets import target


class Suit(Record, frozen=True):
    """Whether to convert to FP16, to which opsets (best first; None: those that suit DirectML), what else is needed."""

    fp16: bool
    opsets: tuple[int, ...] | None
    notes: tuple[Message, ...] = ()


def suit(model: str | Path, name: str) -> Suit:
    """Return what suits a target; raise `BadInput` for an unknown one, and for a file that nothing could load."""
    one = target(name)
    if name == "dml":  # whose opsets depend on what its runtime makes of them (opset.best_opsets)
        return Suit(fp16=one.fp16, opsets=None)
    exam = examine(model, name)
    best = suited_opset(exam)
    notes = []
    if wants_fixed_sizes(exam):
        text = _(
            "{target} takes fixed sizes only: fix those that the model leaves open with `assistant onnx fix-shapes`."
        )
        notes.append(text.format(target=one.title))
    return Suit(fp16=one.fp16, opsets=(best,) if best < exam.opset else (), notes=tuple(notes))

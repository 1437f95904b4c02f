"""Writes a model's file with all its sizes fixed, once ONNX Runtime has run it where there is one."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path

from onnx import ModelProto

from assistant.i18n import _
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import replace
from assistant.onnx.answers import FixedShapes
from assistant.onnx.feeds import refuse_unfit, shapes_of
from assistant.onnx.fixed_shapes import Shapes, fix_shapes, given_sizes, likely
from assistant.onnx.inputs import Feeds, Inputs, Size
from assistant.onnx.load import load_model, result_path, save_model
from assistant.onnx.program import program
from assistant.onnx.runtime import opened, run


def fix_file(
    source: str | Path,
    output: str | Path | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    shapes: Shapes | None = None,
    samples: Sequence[Feeds] = (),
    force: bool = False,
    folder: Path | None = None,
) -> FixedShapes:
    """Fix the sizes of a file as `fix_shapes` does and write the result, `NAME.fixed.onnx` unless `output` names it.

    The shapes of `samples` count as given. Where ONNX Runtime is there, chosen sizes are such that it runs the model,
    and it runs the result. With `folder` the result is left there. Raises `BadInput` as `fix_shapes` does, for an
    output that exists unless `force`, and for given sizes that the model does not run with; `WorkFailed` where nothing
    was open.
    """
    source = Path(source)
    output = result_path(source, output, "fixed", force=force)
    model = load_model(source)
    for sample in samples:
        refuse_unfit(model, sample)
    asked = {**(shapes_of(samples[0]) if samples else {}), **(shapes or {})}
    trial = _Trial(model, samples)
    size = trial.size(sizes or {}, asked)
    fixed, done = fix_shapes(model, sizes, asked, size)
    if not done.sizes and not _changed(model, fixed):
        raise WorkFailed(
            _("{file} has no open sizes, so nothing was written.", file=source), hint=_("Use the model as it is.")
        )
    done = replace(done, source=str(source), output=str(output), ran=trial.runs(fixed), note=trial.failure)
    save_model(fixed, output, source=source, folder=folder)
    return done


def _changed(one: ModelProto, other: ModelProto) -> bool:
    return [*one.graph.input, *one.graph.output] != [*other.graph.input, *other.graph.output]


class _Trial:
    """Runs in ONNX Runtime, where it is there: of the original to choose sizes, and of the result."""

    def __init__(self, model: ModelProto, samples: Sequence[Feeds]) -> None:
        self._model, self._samples = model, samples
        self._missing = importlib.util.find_spec("onnxruntime") is None
        self._fed: Feeds = {}
        self.failure = ""

    def size(self, sizes: Mapping[str, int], shapes: Shapes) -> Size | None:
        """Return the first size for what is left open that the model runs with; None where that is not known."""
        source = program(self._model)
        given = given_sizes(source, sizes, shapes)
        inputs = Inputs(source, given)
        choices = likely(source, inputs)
        found = None if self._missing else self._first(inputs, choices)
        if self._missing or found or not (sizes or shapes):
            return found
        reason, free = self.failure, Inputs(source)
        if self._first(free, likely(source, free), made_up=True):
            message = _("The model does not run with the given sizes: {reason}.", reason=reason)
            raise BadInput(message, hint=_("Without them it runs; leave out what you do not need."))
        return None

    def _first(self, inputs: Inputs, choices: Sequence[Size], *, made_up: bool = False) -> Size | None:
        try:
            session = opened(self._model)
        except Exception as error:  # noqa: BLE001 - the runtime's errors share no base
            self.failure = _reason(error)
            return None
        for size in choices:
            try:
                given = self._samples[0] if self._samples and not made_up else inputs.make(size, inputs.draws[0])
                run(session, given)
            except Exception as error:  # noqa: BLE001 - likewise; the next one may do
                self.failure = self.failure or _reason(error)
            else:
                self._fed, self.failure = given, ""
                return size
        return None

    def runs(self, fixed: ModelProto) -> bool | None:
        """Return whether the result runs; raise `WorkFailed` where the original ran and it does not."""
        if self._missing:
            return None
        if not self._fed:
            return False
        try:
            run(opened(fixed), self._fed)
        except Exception as error:
            message = _("The model runs, but not with its sizes fixed: {reason}.", reason=_reason(error))
            raise WorkFailed(message, hint=_("Give other sizes, or use the model as it is.")) from error
        return True


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")

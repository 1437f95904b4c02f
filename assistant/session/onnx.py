"""Examines an ONNX model: checked, converted for DirectML and tried, each in a child with limits."""

from __future__ import annotations

from pathlib import Path

from assistant.i18n import _
from assistant.install import Tools
from assistant.model.errors import BadInput
from assistant.model.event import Progress, Step
from assistant.model.record import replace
from assistant.onnx import isolated
from assistant.onnx.answers import CHECK_SECONDS, CONVERT_SECONDS, TRY_SECONDS, default_output
from assistant.onnx.worker import Request
from assistant.session.interpreters import onnx_python
from assistant.session.state import Examined, State, known


def examined(state: State, tools: Tools) -> Examined:
    """Do the first part of an examination that is still to do, so that its result is shown while the next one runs.

    Raises `BadInput` for what is no model, and `WorkFailed` where the part could not be done.
    """
    found = known(state.onnx)
    if not found.model:
        raise BadInput(_("No model was given."), hint=_("Upload one, with its weights, or name a file."))
    request = Request(work="check", model=found.model, here=str(Path.cwd()))
    if found.checked is None:
        tools.sink(Progress(step=Step.DIAGNOSE, text=_("Checking the model")))
        checked = isolated.check(request, isolated.limits(CHECK_SECONDS), cancel=tools.cancel)
        return replace(found, checked=checked)
    if found.conversion is None:
        tools.sink(Progress(step=Step.DIAGNOSE, text=_("Converting the model")))
        output = str(Path(found.folder, default_output(Path(found.model)).name))
        request = replace(request, work="convert", output=output, force=True)
        converted = isolated.convert(request, isolated.limits(CONVERT_SECONDS), cancel=tools.cancel)
        return replace(found, conversion=converted)
    tools.sink(Progress(step=Step.DIAGNOSE, text=_("Trying the converted model")))
    request = replace(request, work="try", model=found.conversion.output, reference=found.model, python=onnx_python())
    return replace(found, attempt=isolated.try_model(request, isolated.limits(TRY_SECONDS), cancel=tools.cancel))

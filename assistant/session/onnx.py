"""Examines an ONNX model: surveyed, converted for this machine's target and tried, each in a child with limits."""

from __future__ import annotations

from pathlib import Path

from assistant.i18n import _, language
from assistant.install import Tools
from assistant.model.errors import BadInput
from assistant.model.event import Progress, Step
from assistant.model.record import replace
from assistant.onnx import isolated
from assistant.onnx.answers import CHECK_SECONDS, CONVERT_SECONDS, TRY_SECONDS, default_output
from assistant.onnx.targets import ordered
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
    targets = ordered(state.detection.machine if state.detection else None)
    request = Request(work="survey", model=found.model, here=str(Path.cwd()), picture=True, language=language())
    if found.checked is None:
        tools.sink(Progress(step=Step.DIAGNOSE, text=_("Checking the model")))
        request = replace(request, targets=targets, provider=targets[0])
        survey, checked, picture = isolated.survey(request, isolated.limits(CHECK_SECONDS), cancel=tools.cancel)
        return replace(found, survey=survey, checked=checked, picture=picture)
    if found.conversion is None:
        tools.sink(Progress(step=Step.DIAGNOSE, text=_("Converting the model")))
        name = default_output(Path(found.model), found.checked.provider).name
        output = str(Path(found.folder, name))
        request = replace(request, work="convert", provider=found.checked.provider, output=output, force=True)
        converted = isolated.convert(request, isolated.limits(CONVERT_SECONDS), cancel=tools.cancel)
        return replace(found, conversion=converted)
    tools.sink(Progress(step=Step.DIAGNOSE, text=_("Trying the converted model")))
    # DirectML falls to the CPU where there is none; of other targets the installed runtime may be for any.
    provider = found.checked.provider if found.checked.provider == "dml" else "cpu"
    request = replace(request, work="try", provider=provider, model=found.conversion.output, reference=found.model)
    request = replace(request, python=onnx_python())
    return replace(found, attempt=isolated.try_model(request, isolated.limits(TRY_SECONDS), cancel=tools.cancel))

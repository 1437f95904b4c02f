"""Examines an ONNX model for the wizard: checked, converted for DirectML and tried, each in a child with limits."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from assistant.api import BadInput, Record, _, replace
from assistant.api.records import PartDone, Progress, Step
from assistant.api.steps import Store, Tools
from assistant_addons.onnx import isolated
from assistant_addons.onnx.answers import (
    CHECK_SECONDS,
    CONVERT_SECONDS,
    TRY_SECONDS,
    Attempt,
    Checked,
    Conversion,
    default_output,
)
from assistant_addons.onnx.worker import Request


class Examined(Record, frozen=True):
    """How far the examination of a model is: checked for DirectML, converted into `folder`, then tried."""

    model: str
    folder: str
    checked: Checked | None = None
    conversion: Conversion | None = None
    attempt: Attempt | None = None


def examine(found: Examined, tools: Tools) -> Examined:
    """Examine the model that is named; what each part finds is shown while the next one runs.

    Raises `BadInput` for what is no model, and `WorkFailed` where a part could not be done.
    """
    if not found.model:
        raise BadInput(_("No model was given."), hint=_("Upload one, with its weights, or name a file."))
    request = Request(work="check", model=found.model, here=str(Path.cwd()))
    tools.sink(Progress(step=Step.DIAGNOSE, text=_("Checking the model")))
    checked = isolated.check(request, isolated.limits(CHECK_SECONDS), cancel=tools.cancel)
    found = Examined(model=found.model, folder=found.folder, checked=checked)
    tools.sink(PartDone(value=found))

    tools.sink(Progress(step=Step.DIAGNOSE, text=_("Converting the model")))
    output = str(Path(found.folder, default_output(Path(found.model)).name))
    request = replace(request, work="convert", output=output, force=True)
    found = replace(found, conversion=isolated.convert(request, isolated.limits(CONVERT_SECONDS), cancel=tools.cancel))
    tools.sink(PartDone(value=found))

    tools.sink(Progress(step=Step.DIAGNOSE, text=_("Trying the converted model")))
    request = replace(request, work="try", model=output, reference=found.model, python=python_with_onnxruntime())
    return replace(found, attempt=isolated.try_model(request, isolated.limits(TRY_SECONDS), cancel=tools.cancel))


def python_with_onnxruntime() -> str:
    """Return a Python with ONNX Runtime and onnx: that of the last setup, as it may reach the device, else ours.

    Raises `BadInput` for none.
    """
    environment = Store().environment()
    if environment and not Path(environment.python).is_file():  # removed since
        environment = None
    packages = environment.packages if environment else {}
    if environment and "onnx" in packages and any(name.partition("-")[0] == "onnxruntime" for name in packages):
        return environment.python
    if find_spec("onnxruntime"):
        return sys.executable
    if environment is None:
        raise BadInput(
            _("The assistant's own Python has no ONNX Runtime to run the model with."),
            hint=_("Run `assistant setup` first, or name a Python that has it.", option="--python"),
        )
    return environment.python

"""Checks, converts and tries models of anybody, each in a child with limits: for the terminal, and as one task.

Nothing of onnx is imported here. The functions do in a child what those of the same name for Python do in this process.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from assistant.api import BadInput, Record, _, replace
from assistant.api.records import PartDone, Progress, Step
from assistant.api.steps import Store, Tools
from assistant.api.system import CancelToken, require_extra
from assistant_addons.onnx.answers import (
    CHECK_SECONDS,
    CONVERT_SECONDS,
    TRY_SECONDS,
    Attempt,
    Checked,
    Conversion,
    Provider,
    default_output,
)
from assistant_addons.onnx.child import kept_aside, limits, work_on

RUNS = 3  # of a trial: the reference, the model, and the one in which every node rounds
LOADING_SECONDS = 600.0  # for reading the models before that (chosen)


class Examined(Record, frozen=True):
    """How far the examination of a model is: checked for DirectML, converted into `folder`, then tried."""

    model: str
    folder: str
    checked: Checked | None = None
    conversion: Conversion | None = None
    attempt: Attempt | None = None


def check(
    model: str, provider: Provider = "dml", limit: float = CHECK_SECONDS, cancel: CancelToken | None = None
) -> Checked:
    """Check a model. Raises `BadInput` and `WorkFailed`."""
    require_extra("onnx")
    arguments = {"model": model, "provider": provider}
    return work_on(model, "assistant_addons.onnx.check:check_model", arguments, Checked, limits(limit), cancel=cancel)


def convert(
    model: str,
    output: str | None = None,
    limit: float = CONVERT_SECONDS,
    cancel: CancelToken | None = None,
    **options: object,
) -> Conversion:
    """Convert a model; its result is put in place only when all is well. Raises `BadInput` and `WorkFailed`."""
    require_extra("onnx")
    goal = Path(output) if output else default_output(Path(model))
    function = "assistant_addons.onnx.conversion:convert"
    with kept_aside(goal) as folder:
        arguments = {"source": model, "output": str(goal), "folder": str(folder.resolve()), **options}
        return work_on(model, function, arguments, Conversion, limits(limit), cancel=cancel)


def try_model(
    model: str, limit: float = TRY_SECONDS, cancel: CancelToken | None = None, python: str = "", **options: object
) -> Attempt:
    """Try a model, each run within `limit` seconds, in the Python of `python_with_onnxruntime` unless one is given.

    Raises `BadInput` for files that nothing could load.
    """
    require_extra("onnx")
    arguments = {"model": model, "limit": limit, **options, "python": python or python_with_onnxruntime()}
    bounds = limits(RUNS * limit + LOADING_SECONDS)
    return work_on(model, "assistant_addons.onnx.trial:try_model", arguments, Attempt, bounds, cancel=cancel)


def examine(found: Examined, tools: Tools) -> Examined:
    """Examine the model that is named; what each part finds is shown while the next one runs.

    Raises `BadInput` for what is no model, and `WorkFailed` where a part could not be done.
    """
    if not found.model:
        raise BadInput(_("No model was given."), hint=_("Upload one, with its weights, or name a file."))
    tools.sink(Progress(step=Step.DIAGNOSE, text=_("Checking the model")))
    found = Examined(model=found.model, folder=found.folder, checked=check(found.model, cancel=tools.cancel))
    tools.sink(PartDone(value=found))
    tools.sink(Progress(step=Step.DIAGNOSE, text=_("Converting the model")))
    output = str(Path(found.folder, default_output(Path(found.model)).name))
    found = replace(found, conversion=convert(found.model, output, cancel=tools.cancel, force=True))
    tools.sink(PartDone(value=found))
    tools.sink(Progress(step=Step.DIAGNOSE, text=_("Trying the converted model")))
    return replace(found, attempt=try_model(output, cancel=tools.cancel, reference=found.model))


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

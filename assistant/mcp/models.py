"""The tool about ONNX models, which answers what `assistant onnx check` prints with `--json`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mcp.types import CallToolResult
from pydantic import Field

from assistant.detect import detect
from assistant.host.live import LiveHost
from assistant.i18n import language
from assistant.mcp.arguments import Line
from assistant.mcp.desk import Here
from assistant.mcp.work import Job, worked
from assistant.model.record import replace
from assistant.onnx import isolated
from assistant.onnx.answers import CHECK_SECONDS
from assistant.onnx.targets import chosen, ordered
from assistant.onnx.worker import Request

Targets = Annotated[list[Line], Field(max_length=20, description="dml, cuda, webnn, …, or all; none for an overview")]


async def check_onnx(context: Here, model: Line, targets: Targets = []) -> CallToolResult:  # noqa: B006 - never changed
    """Say what of an ONNX model runs where, and what to do about the rest; the model is read in a child."""

    def work(job: Job) -> object:
        named, bounds = chosen(tuple(targets)), isolated.limits(CHECK_SECONDS)
        file = str(Path(model).expanduser())
        asked = Request(work="check", model=file, here=str(Path.cwd()), language=language())
        if len(named) > 1:
            return {"targets": isolated.check_all(replace(asked, targets=named), bounds)}
        if named:
            return isolated.check(replace(asked, provider=named[0]), bounds, cancel=job.token)[0]
        asked = replace(asked, work="survey", targets=ordered(detect(LiveHost()).machine))
        survey, checked, _picture = isolated.survey(asked, bounds, cancel=job.token)
        return replace(checked, targets=survey.targets)

    return await worked(context, work)

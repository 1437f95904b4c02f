"""The tool about ONNX models, which answers what `assistant onnx check` prints with `--json`."""

from __future__ import annotations

from pathlib import Path

from mcp.types import CallToolResult

from assistant.mcp.arguments import Line
from assistant.mcp.desk import Here
from assistant.mcp.work import Job, worked
from assistant.onnx import isolated
from assistant.onnx.answers import CHECK_SECONDS, Provider
from assistant.onnx.worker import Request


async def check_onnx(context: Here, model: Line, target: Provider = "dml") -> CallToolResult:
    """Say node by node what of an ONNX model runs on DirectML, or on the CPU, and what to do about the rest.

    The model is read in a child.
    """

    def work(job: Job) -> object:
        file = str(Path(model).expanduser())
        asked = Request(work="check", model=file, here=str(Path.cwd()), provider=target)
        return isolated.check(asked, isolated.limits(CHECK_SECONDS), cancel=job.token)

    return await worked(context, work)

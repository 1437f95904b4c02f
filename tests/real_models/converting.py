"""Converts one model with one tool, timed: `converting.py TOOL MODEL OUTPUT`, in the environment that has the tool."""

from __future__ import annotations

import sys
import time
from collections import Counter
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import onnx
from children import limit_memory, peak_mb, tell

# By tool: the distribution, and the module that holds `convert_float_to_float16`.
FLOAT16 = {
    "onnxruntime": ("onnxruntime", "onnxruntime.transformers.float16"),
    "onnxconverter-common": ("onnxconverter-common", "onnxconverter_common.float16"),
}


def ours(source: Path, output: Path) -> None:
    """Convert as `assistant onnx convert MODEL --to OUTPUT` does in its child."""
    import_module("onnxruntime")  # loaded before the clock starts, as the peers' own modules are
    from assistant import __version__  # noqa: PLC0415 - the peers' environment lacks it
    from assistant.model.errors import AssistantError  # noqa: PLC0415 - likewise
    from assistant.onnx.conversion import convert  # noqa: PLC0415 - likewise

    start = time.perf_counter()
    try:
        done = convert(source, output, force=True)
    except AssistantError as error:
        tell(error=str(error.message), seconds=time.perf_counter() - start, tool_version=__version__)
        return
    tell(seconds=time.perf_counter() - start, tool_version=__version__, converted=True)
    half = done.half
    if half:
        kept = Counter(one.why for one in half.kept)
        tell(proved=half.proved, obstacle=half.obstacle, calibration=half.calibration, kept=kept, fp16=half.converted)


def peer(tool: str, source: Path, output: Path) -> None:
    """Convert with one of the tools that are measured beside ours, types of inputs and outputs kept where it can."""
    if tool == "onnxslim":
        slim = import_module("onnxslim").slim
        start = time.perf_counter()
        onnx.save(slim(str(source), dtype="fp16"), output)
    else:
        convert = import_module(FLOAT16[tool][1]).convert_float_to_float16
        start = time.perf_counter()
        onnx.save(convert(onnx.load(source), keep_io_types=True), output)
    distribution = FLOAT16.get(tool, (tool,))[0]
    tell(seconds=time.perf_counter() - start, tool_version=version(distribution), converted=True)


def main(tool: str, source: Path, output: Path) -> None:
    """Convert, and tell seconds and memory; what the tool raises is told as it says it."""
    limit_memory()
    output.parent.mkdir(parents=True, exist_ok=True)
    try:
        if tool == "assistant":
            ours(source, output)
        else:
            peer(tool, source, output)
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is its answer
        tell(error=f"{type(error).__name__}: {error}"[:300])
    tell(peak_mb=peak_mb())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))

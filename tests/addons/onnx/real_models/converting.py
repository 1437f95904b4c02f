"""Converts one model with one tool, timed: `converting.py TOOL MODEL OUTPUT`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import onnx
from children import limit_memory, peak_mb, tell
from onnxruntime.transformers.float16 import convert_float_to_float16

from assistant_addons.onnx.conversion import convert


def ours(source: Path, output: Path) -> None:
    """Convert as `assistant onnx convert MODEL --to OUTPUT` does in its child."""
    start = time.perf_counter()
    convert(source, output, force=True)
    tell(seconds=time.perf_counter() - start, converted=True)


def peer(source: Path, output: Path) -> None:
    """Convert with ONNX Runtime's own converter, types of inputs and outputs kept."""
    start = time.perf_counter()
    onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), output)
    tell(seconds=time.perf_counter() - start, converted=True)


TOOLS = {"assistant": ours, "onnxruntime": peer}


def main(tool: str, source: Path, output: Path) -> None:
    """Convert, and tell seconds and memory; what the tool raises is told as it says it."""
    limit_memory()
    output.parent.mkdir(parents=True, exist_ok=True)
    try:
        TOOLS[tool](source, output)
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is its answer
        tell(error=f"{type(error).__name__}: {error}"[:300])
    tell(peak_mb=peak_mb())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))

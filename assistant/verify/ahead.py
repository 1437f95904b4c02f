"""A fresh environment holds no bytecode: compile on another core what `import torch` reaches last."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from assistant.host.lock import Lock
from assistant.host.process import CancelToken, stream
from assistant.model.errors import AssistantError

# What `import torch` (2.13) reaches in its second half, in its own order; a name that a release lacks is passed over.
TORCH = (
    *("distributions", "jit", "fx", "optim", "ao/quantization", "masked", "export", "_subclasses", "_export"),
    *("_higher_order_ops", "_prims_common", "_decomp", "_prims", "_refs", "_meta_registrations.py", "_native"),
)
LATE = (*(f"torch/{name}" for name in TORCH), "onnxruntime/capi")
CODE = """
import compileall, importlib.util, pathlib, sys
site = pathlib.Path(importlib.util.find_spec("torch").origin).parents[1]
for path in (site / name for name in sys.argv[1:]):
    compileall.compile_dir(path, quiet=2) if path.is_dir() else compileall.compile_file(path, quiet=2)
"""


def compile_ahead(python: str | Path, cancel: CancelToken, lock: Lock | None = None) -> None:
    """Compile until done or stopped; a failure is no matter, since the import compiles what it misses."""
    with suppress(AssistantError):
        stream([python, "-I", "-c", CODE, *LATE], lambda _line: None, cancel=cancel, lock=lock)

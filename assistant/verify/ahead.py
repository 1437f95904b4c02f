"""A fresh environment holds no bytecode: compile on another core what `import torch` reaches last."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from assistant.host.process import CancelToken, stream
from assistant.model.errors import AssistantError

__all__ = ["compile_ahead"]

# What torch 2.x imports late and is costly to compile; a name that a release lacks is passed over.
LATE = (
    *("_meta_registrations.py", "export", "_decomp", "_refs", "_higher_order_ops", "nn", "optim", "distributions"),
    *("jit", "masked", "profiler", "_functorch", "autograd"),
)
CODE = """
import compileall, importlib.util, pathlib, sys
root = pathlib.Path(importlib.util.find_spec("torch").origin).parent
for path in (root / name for name in sys.argv[1:]):
    compileall.compile_dir(path, quiet=2) if path.is_dir() else compileall.compile_file(path, quiet=2)
"""


def compile_ahead(python: str | Path, cancel: CancelToken) -> None:
    """Compile until done or stopped; a failure is no matter, since the import compiles what it misses."""
    with suppress(AssistantError):
        stream([python, "-I", "-c", CODE, *LATE], lambda _line: None, cancel=cancel)

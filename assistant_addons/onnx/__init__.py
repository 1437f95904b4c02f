"""What runs where on DirectML and the CPU: checks ONNX models by ONNX Runtime's rules, converts and tries them.

The functions are found here by name and their modules, which need NumPy and onnx, imported only then.
"""

from __future__ import annotations

import importlib
from typing import Any

MODULES = {
    "check_model": "check",
    "load_model": "load",
    "try_model": "trial",
    "convert": "conversion",
    "to_fp16": "fp16",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the module holds under that name
    """Import the module that holds a public function."""
    if name not in MODULES:
        raise AttributeError(name)
    return getattr(importlib.import_module(f"assistant_addons.onnx.{MODULES[name]}"), name)

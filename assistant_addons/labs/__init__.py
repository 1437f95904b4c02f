"""Break-and-fix labs: a really broken environment in a scratch folder, hints, a check that runs, and a score.

The names are found here and their modules, which need a good part of the assistant, imported only then.
"""

from __future__ import annotations

import importlib
from typing import Any

MODULES = {"Lab": "lab", "environment_with_torch": "scene"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the module holds under that name
    """Import the module that holds a public name."""
    if name not in MODULES:
        raise AttributeError(name)
    return getattr(importlib.import_module(f"assistant_addons.labs.{MODULES[name]}"), name)

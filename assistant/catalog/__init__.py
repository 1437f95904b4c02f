"""What is known, as data: sourced, dated tables and the records they decode into."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from assistant.catalog.identity import GpuIdentity, identify_gpu, vendor_of

if TYPE_CHECKING:
    from assistant.catalog.catalog import (
        AMD_INDEX,
        AMD_NIGHTLY,
        JETSON_INDEX,
        Catalog,
        Number,
        TorchWheel,
        has_code,
        load_catalog,
        number,
        python_range,
    )
    from assistant.catalog.companions import carried_by_torch_index


def __getattr__(name: str) -> object:
    """Import what plans rest on when it is first named: detection, which names GPUs alone, does without (5 ms)."""
    home = "companions" if name == "carried_by_torch_index" else "catalog"
    return getattr(import_module(f"assistant.catalog.{home}"), name)

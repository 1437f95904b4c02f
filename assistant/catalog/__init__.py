"""What is known, as data: sourced, dated tables and the records they decode into."""

from __future__ import annotations

from assistant.catalog.catalog import AMD_INDEX, Catalog, Number, TorchWheel, load_catalog, number, python_range
from assistant.catalog.identity import GpuIdentity, identified, identify, identify_name
from assistant.catalog.names import vendor_of

__all__ = [
    "AMD_INDEX",
    "Catalog",
    "GpuIdentity",
    "Number",
    "TorchWheel",
    "identified",
    "identify",
    "identify_name",
    "load_catalog",
    "number",
    "python_range",
    "vendor_of",
]

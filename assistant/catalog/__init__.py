"""What is known, as data: sourced, dated tables and the records they decode into."""

from __future__ import annotations

from assistant.catalog.identity import GpuIdentity, gpu_by_pci_id, identified, identify, identify_name, vendor_of

__all__ = ["GpuIdentity", "gpu_by_pci_id", "identified", "identify", "identify_name", "vendor_of"]

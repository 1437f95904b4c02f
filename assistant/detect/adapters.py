"""Sorts what sits on the PCI bus: GPUs, and the adapters that only look like one."""

from __future__ import annotations

import re

from assistant.catalog.names import idle_adapter, patterns, vendor_of
from assistant.detect.observations import Notes
from assistant.i18n import Text, _
from assistant.model.finding import Severity
from assistant.model.machine import Gpu, Vendor
from assistant.parsers.windows import nvidia_version


def not_a_gpu(pci_id: str, kind: str = "0300", name: str | None = None) -> Text:
    """Return why an adapter does not count as a GPU, as one sentence; "" for one that does."""
    idle = idle_adapter(pci_id)
    if idle and idle.kind == "console":
        text = _("{name} ({pci_id}) is a server's console adapter and cannot compute.")
        return text.format(name=name or idle.maker, pci_id=pci_id)
    if idle:
        return _("{name} is a virtual display adapter and cannot compute.", name=name or f"{idle.maker} ({pci_id})")
    if name and patterns("idle_names")["idle_names"].search(name):
        return _("{name} is a virtual display adapter and cannot compute.", name=name)
    if kind.startswith("12") and vendor_of(pci_id) in {Vendor.INTEL, Vendor.OTHER}:
        text = _("{pci_id} is an accelerator (an NPU or the like) that PyTorch's wheels do not drive.")
        return text.format(pci_id=pci_id)
    return ""


def note_adapter(
    gpu: Gpu,
    source: str,
    notes: Notes,
    *,
    kind: str = "0300",
    bus: str | None = None,
    revision: str | None = None,
    reason: Text = "",
) -> bool:
    """Note an adapter as a GPU, or as a finding that says why it is none; return whether it is one.

    `kind` is its PCI class and subclass, `reason` what else speaks against it. A driver that is numbered as Windows
    does it gives NVIDIA's own number as a fact.
    """
    reason = not_a_gpu(gpu.pci_id or "", kind, gpu.name) or reason
    if reason:
        notes.finding("adapter-skipped", Severity.INFO, reason, evidence=(source,) if bus else ())
        return False
    notes.gpu(gpu, source, bus=bus, revision=revision)
    note_nvidia(gpu, source, notes)
    return True


def note_nvidia(gpu: Gpu, source: str, notes: Notes) -> None:
    """Note NVIDIA's own number of its driver, which Windows hides in a number of its own."""
    if gpu.vendor is Vendor.NVIDIA and gpu.driver:
        own = gpu.driver if re.fullmatch(r"\d{3}\.\d{2,3}(?:\.\d{1,2})?", gpu.driver) else nvidia_version(gpu.driver)
        notes.fact("nvidia_driver", own, source)

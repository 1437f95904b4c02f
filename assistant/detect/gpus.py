"""Tells GPUs from adapters that only look like one, and makes one list of them from what several sources saw."""

from __future__ import annotations

import re
from collections.abc import Iterable

from assistant.catalog.identity import identify, identify_name
from assistant.catalog.names import idle_adapter, patterns, vendor_of
from assistant.detect.common import Notes, Sighting
from assistant.i18n import Text, _
from assistant.model.finding import Severity
from assistant.model.machine import Evidence, Gpu, Vendor
from assistant.parsers.windows import nvidia_version

FIELDS = tuple(name for name in Gpu.__struct_fields__ if name != "vendor")


def merge(sightings: Iterable[Sighting], notes: Notes) -> tuple[Gpu, ...]:
    """Unite sightings of the same card, discrete cards first, else in the order of the bus; evidence goes to notes."""
    cards: list[list[Sighting]] = []
    for sighting in sightings:
        same = next((card for card in cards if _same(card, sighting)), None)
        if same is None:
            cards.append([sighting])
        else:
            same.append(sighting)
    united = sorted(map(_united, cards), key=lambda pair: bool(pair[0].integrated))
    for index, (_gpu, sources) in enumerate(united):
        notes.evidence.extend(
            Evidence(fact=f"gpus[{index}].{field}", source=source) for field, source in sources.items()
        )
    return tuple(gpu for gpu, _sources in united)


def _same(card: list[Sighting], new: Sighting) -> bool:
    """Return whether a sighting is of this card: by bus address, else the first of its kind that this source lacks."""
    if any(seen.source == new.source for seen in card):
        return False
    buses = {seen.bus for seen in card if seen.bus}
    if buses and new.bus:
        return new.bus in buses
    if new.gpu.vendor not in {seen.gpu.vendor for seen in card}:
        return False
    # Tools name AMD's and Intel's cards too differently for a name to tell two apart.
    identifying = ("pci_id", "gfx", "name") if new.gpu.vendor is Vendor.NVIDIA else ("pci_id", "gfx")
    for field in identifying:
        values = {getattr(seen.gpu, field) for seen in card} - {None}
        if values and getattr(new.gpu, field) not in {None, *values}:
            return False
    return True


def _united(card: list[Sighting]) -> tuple[Gpu, dict[str, str]]:
    """Take each field from the first source that has it, then from the catalogue, by PCI id or else by exact name."""
    revision = next((seen.revision for seen in card if seen.revision), None)
    by_id = (identify(seen.gpu.pci_id, revision) for seen in card if seen.gpu.pci_id)
    by_name = (identify_name(seen.gpu.vendor, seen.gpu.name) for seen in card if seen.gpu.name)
    known = next((identity for identity in (*by_id, *by_name) if identity), None)
    catalogued: list[tuple[object, str]] = [(known, "catalogue")] if known else []
    found: dict[str, object] = {}
    sources: dict[str, str] = {}
    for record, source in [*((seen.gpu, seen.source) for seen in card), *catalogued]:
        for field in FIELDS:
            value = getattr(record, field, None)
            if value is not None and field not in found:
                found[field], sources[field] = value, source
    vendor = next((seen.gpu.vendor for seen in card if seen.gpu.vendor is not Vendor.UNKNOWN), Vendor.UNKNOWN)
    return Gpu(vendor=vendor, **found), sources  # type: ignore[arg-type]  # each value came out of a Gpu


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
    if gpu.vendor is Vendor.NVIDIA and gpu.driver:
        own = gpu.driver if re.fullmatch(r"\d{3}\.\d{2,3}(?:\.\d{1,2})?", gpu.driver) else nvidia_version(gpu.driver)
        notes.fact("nvidia_driver", own, source)
    return True

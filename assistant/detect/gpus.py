"""Makes one list of GPUs from what several sources saw, and adds what the catalogue knows of each."""

from __future__ import annotations

from collections.abc import Iterable

from assistant.catalog.identity import identify, identify_name
from assistant.detect.observations import Notes, Sighting
from assistant.model.machine import Evidence, Gpu, Vendor

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
        known = {getattr(seen.gpu, field) for seen in card} - {None}
        if known and getattr(new.gpu, field) not in {None, *known}:
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

"""Makes one list of GPUs from what several sources saw, and tells from the catalogue what each one is."""

from __future__ import annotations

from collections.abc import Iterable

from assistant.catalog.identity import identify, identify_name
from assistant.detect.notes import Notes, Sighting
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
    named = [_united(card) for card in cards]
    named.sort(key=lambda pair: bool(pair[0].integrated))
    for index, (_gpu, sources) in enumerate(named):
        notes.evidence.extend(
            Evidence(fact=f"gpus[{index}].{field}", source=source) for field, source in sources.items()
        )
    return tuple(gpu for gpu, _sources in named)


def _same(card: list[Sighting], new: Sighting) -> bool:
    """Tell whether a sighting is of this card: by bus address, else the first of its kind that this source lacks."""
    if any(seen.source == new.source for seen in card):
        return False
    buses = {seen.bus for seen in card if seen.bus}
    if buses and new.bus:
        return new.bus in buses
    known = [seen.gpu for seen in card]
    if new.gpu.vendor not in {gpu.vendor for gpu in known}:
        return False
    telling = ("pci_id", "gfx", "name") if new.gpu.vendor is Vendor.NVIDIA else ("pci_id", "gfx")
    return not any(_contradict({getattr(gpu, field) for gpu in known}, getattr(new.gpu, field)) for field in telling)


def _contradict(known: set[str | None], new: str | None) -> bool:
    told = known - {None}
    return bool(told) and new is not None and new not in told


def _united(card: list[Sighting]) -> tuple[Gpu, dict[str, str]]:
    """Take each field from the first source that tells it, then from the catalogue."""
    found: dict[str, object] = {}
    sources: dict[str, str] = {}
    for sighting in [*card, *_catalogued(card)]:
        for field in FIELDS:
            value = getattr(sighting.gpu, field)
            if value is not None and field not in found:
                found[field], sources[field] = value, sighting.source
    vendor = next((s.gpu.vendor for s in card if s.gpu.vendor is not Vendor.UNKNOWN), Vendor.UNKNOWN)
    return Gpu(vendor=vendor, **found), sources  # type: ignore[arg-type]  # each value came out of a Gpu


def _catalogued(card: list[Sighting]) -> list[Sighting]:
    """Look the card up by PCI id, else by its exact name."""
    revision = next((seen.revision for seen in card if seen.revision), None)
    by_id = (identify(seen.gpu.pci_id, revision) for seen in card if seen.gpu.pci_id)
    by_name = (identify_name(seen.gpu.vendor, seen.gpu.name) for seen in card if seen.gpu.name)
    known = next((identity for identity in (*by_id, *by_name) if identity), None)
    if known is None:
        return []
    gpu = Gpu(
        vendor=known.vendor,
        name=known.name,
        compute_capability=known.compute_capability,
        gfx=known.gfx,
        integrated=known.integrated,
    )
    return [Sighting(gpu=gpu, source="catalogue")]

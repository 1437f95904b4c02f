"""GPUs as tools report them: the record, the fields that their readers share, and names that a table cut short."""

from __future__ import annotations

import re
from itertools import takewhile

from assistant.catalog.identity import cut_names, identified, identify_name
from assistant.catalog.names import vendor_of_name
from assistant.model.machine import Gpu, Vendor
from assistant.model.record import Record


class Device(Record, frozen=True):
    """One GPU as a tool reports it, with its address on the bus (`0000:03:00.0`) and the tool's own number."""

    gpu: Gpu
    bus: str | None = None
    index: int | None = None


class Reading(Record, frozen=True):
    """What a tool's report says of its machine: facts named as in `Machine`, and GPUs.

    `absence` is its own word where it says that it is not there or sees no GPU.
    """

    facts: dict[str, object] = {}
    devices: tuple[Device, ...] = ()
    absence: str = ""


def field(block: str, name: str) -> str:
    """Return what follows a name (a pattern) on its line: `Name: X`, `Name = X` or `Name   X`; "" for nothing."""
    found = re.search(rf"^[ \t]{{0,40}}{name}[ \t]{{0,80}}[:=]?[ \t]{{1,80}}(\S[^\n]{{0,100}})$", block, re.MULTILINE)
    return found[1].strip() if found else ""


def gib(mib: str | float | None) -> float | None:
    """Turn MiB into GiB; none and zero tell nothing."""
    return round(float(mib) / 1024, 1) if mib and float(mib) else None


def bus_address(text: str) -> str | None:
    """Spell a PCI address as Linux does, `0000:01:00.0`: NVIDIA's tools write the domain with eight digits."""
    found = re.fullmatch(r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])", text.lower())
    return f"{found[1][-4:]}:{found[2]}" if found else None


def cut_card(shown: str, vram_gb: float | None = None) -> Gpu:
    """Read a name as a table shows it, cut off at either end or whole: `NVIDIA GeForce RTX 4060 ...`.

    Where several names go on like that, one that tells the memory is held against it; else the name stays unknown.
    """
    shown = shown.strip()
    part = _CUT.sub("", shown).strip()
    vendor, at_end = _maker(part), bool(_CUT.match(shown))
    if part == shown or (at_end and identify_name(vendor, part)):
        return Gpu(vendor=vendor, name=part or None)
    names = cut_names(vendor, part, at_end=at_end, longer=len(shown))
    names = tuple(name for name in names if not vram_gb or _memory_fits(name, vram_gb))
    capabilities = {found.compute_capability for name in names if (found := identify_name(vendor, name))}
    return Gpu(
        vendor=vendor,
        name=(names[0] if len(names) == 1 else None) if at_end else _continued(vendor, shown, part, names),
        compute_capability=capabilities.pop() if len(capabilities) == 1 else None,
    )


def _maker(name: str) -> Vendor:
    """Return who made a GPU, by the words of its name or else by the product: `GA100 [A100 PCIe 40GB]`, `Navi 31`."""
    vendor = vendor_of_name(name)
    identity = identified(Gpu(name=name)) if vendor is Vendor.UNKNOWN else None
    return identity.vendor if identity else vendor


def _continued(vendor: Vendor, shown: str, part: str, names: tuple[str, ...]) -> str | None:
    """Go on with a cut name as far as all the products do that begin so; None where that is the name of one of them."""
    if not names:
        return shown
    rests = [name[len(part) :] for name in names]
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*rests, strict=False))
    whole = part + "".join(letters[0] for letters in same)
    whole = whole if len(names) == 1 else whole.rpartition(" ")[0]
    return whole if len(names) == 1 or (len(whole) > len(part) and not identify_name(vendor, whole)) else None


_CUT = re.compile(r"^(?:\.{2,3}|…)|(?:\.{2,3}|…)$")


_KEPT_BACK = 0.85  # drivers and error correction keep some of the memory back; measured: 14.9 of 16, 39.4 of 40


def _memory_fits(name: str, vram_gb: float) -> bool:
    named = re.search(r"\b(\d{1,3}) ?GB\b", name)
    return named is None or _KEPT_BACK * int(named[1]) <= vram_gb <= int(named[1])

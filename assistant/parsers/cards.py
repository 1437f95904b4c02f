"""Finds the names of GPUs within text: whole, with more around them, or cut short by a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from assistant.catalog.identity import cut_names, identified, identify_name
from assistant.catalog.names import other_devices, products, vendor_of_name
from assistant.model.machine import Gpu, Vendor

LONGEST = 300  # characters of a line in which a name is looked for (chosen)


class Card(NamedTuple):
    """A GPU's name as a text spells it, with its maker, and where it ends in the text."""

    name: str
    vendor: Vendor
    end: int = 0


# Names that no table of cards holds: "AMD Radeon(TM) Graphics", "Intel(R) Arc(TM) Graphics", "Apple M2 Max".
_GENERIC = re.compile(
    r"(?:.{0,60}?\b(?:Graphics(?: Family)?|Series)\b|Apple M\d{1,2}(?: (?:Pro|Max|Ultra)\b)?"
    r"|(?:NVIDIA |AMD |Intel(?:\(R\))? )?"
    r"(?:GeForce|Quadro|Tesla|TITAN|Jetson|Radeon|Instinct|Arc(?:\(TM\))?|[RG]TX|RX|Iris)"
    r"(?:\((?:R|TM)\))?(?: (?=\S{0,9}[A-Z\d])[\w()-]{1,16}){1,5})"
)


# Mesa names some integrated GPUs after their processor: AMD Ryzen 9 9900X 12-Core Processor (RADV RAPHAEL_MENDOCINO)
_PROCESSOR = re.compile(r"AMD Ryzen [^()\n]{3,60} \(RADV \w{3,30}\)")


def cards_in(text: str) -> Iterator[Card]:
    """Yield the GPUs that a line names, each cut to what the catalogue knows, or else to what looks like a name."""
    text, start = text[:LONGEST], 0
    if own := _PROCESSOR.match(text):
        yield Card(own[0], Vendor.AMD, own.end())
        return
    while found := products().search(text, start):
        card = _cut(found[0])
        start = found.start() + len(card.name) if card else found.end()
        if card:
            yield card._replace(end=start)


def _cut(text: str) -> Card | None:
    text = re.sub(
        r"(?: \d{1,3}(?: GB\b|G(?!\w))|(?<!GPU) ?\(\d{1,3} ?GB| \( \d{1,5} [GM]B).*$", "", text
    )  # the memory beside a name
    vendor, words = vendor_of_name(text), text.split(" ")
    for count in range(len(words), 0, -1):
        name = " ".join(words[:count]).rstrip(".,;:/-(")
        known = identify_name(vendor, name) if vendor is not Vendor.UNKNOWN else identified(Gpu(name=name))
        if known:
            return Card(name, known.vendor)
    generic = _GENERIC.match(text)
    return Card(generic[0].strip(), vendor) if generic and vendor is not Vendor.UNKNOWN else None


def is_card(text: str) -> bool:
    """Return whether a device's name is that of a GPU, not of a processor, a sound card or a bridge."""
    if _PROCESSOR.match(text):
        return True
    if not products().search(text[:LONGEST]) or re.search(r"\bRyzen\b.{0,40}\bwith\b", text):
        return False
    # "AMD Ryzen AI MAX+ 395 w/ Radeon 8060S" is a processor; "Intel Xeon E3-1200 v2/3rd Gen Core processor Graphics"
    # and "Core(TM) … Graphics" end as a GPU's name does.
    return not other_devices().search(text) or bool(
        re.search(r"(?<!Audio )(?:Graphics|Controller)(?: \(rev \w\w\))?$", text)
    )


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
    known = {found.compute_capability for name in names if (found := identify_name(vendor, name))}
    return Gpu(
        vendor=vendor,
        name=(names[0] if len(names) == 1 else None) if at_end else _continued(vendor, shown, part, names),
        compute_capability=known.pop() if len(known) == 1 else None,
    )


def _maker(name: str) -> Vendor:
    """Return who made a GPU, by the words of its name or else by the product: `GA100 [A100 PCIe 40GB]`, `Navi 31`."""
    vendor = vendor_of_name(name)
    known = identified(Gpu(name=name)) if vendor is Vendor.UNKNOWN else None
    return known.vendor if known else vendor


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
    told = re.search(r"\b(\d{1,3}) ?GB\b", name)
    return told is None or _KEPT_BACK * int(told[1]) <= vram_gb <= int(told[1])

"""What a GPU is, from its PCI id or its exact name, and how fast; nothing is guessed from part of a name.

And what the words and numbers of reports mean: vendors, systems, processors, adapters that cannot compute.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from assistant.catalog.tables import Row, load_table, rows
from assistant.model.machine import Gpu, Vendor
from assistant.model.record import Record


@cache
def patterns(table: str) -> dict[str, re.Pattern[str]]:
    """Return patterns by the names of what they find: vendors, systems, processor architectures, adapters.

    `table` is "vendors", "systems", "architectures", "mentions" (vendors by product names in the midst of a lower-case
    log), "hints" (what only a system's programs print: paths, wheel tags, errors), "spoken" (how people name a system)
    or "idle_names" (a single pattern, of that name). Letters are ASCII's: a Chinese character ends a word.
    """
    systems, makers = rows("names.systems"), rows("names.vendors")
    written = {
        "vendors": {row.vendor: _words(row.words) for row in makers},
        "mentions": {row.vendor: "|".join(row.mentions) for row in makers if row.mentions},
        "systems": {row.name: "|".join([*row.patterns, _words(row.words)]) for row in systems},
        "hints": {row.name: "|".join(row.hints) for row in systems},
        "spoken": {row.name: "|".join(row.spoken) for row in systems},
        "architectures": {row.name: _words(row.words) for row in rows("names.architectures")},
        "idle_names": {table: rf"\b(?:{'|'.join(map(re.escape, load_table('names.idle_names', str).rows))})"},
    }[table]
    return {name: re.compile(pattern, re.IGNORECASE | re.ASCII) for name, pattern in written.items()}


def _words(words: Iterable[str]) -> str:
    return rf"\b(?:{'|'.join(map(re.escape, words))})\b"


def _first_named(table: str, texts: Iterable[str]) -> str | None:
    return next((name for text in texts for name, found in patterns(table).items() if found.search(text)), None)


def find_system(*texts: str) -> str | None:
    """Return "linux", "windows" or "macos" by the first text that names one; None if none does."""
    return _first_named("systems", texts)


def find_architecture(*texts: str) -> str | None:
    """Return the processor architecture by the first text that names one; None if none does."""
    return _first_named("architectures", texts)


def vendor_of_name(name: str) -> Vendor:
    """Return the vendor whose whole words a GPU's name holds; `UNKNOWN` for none."""
    return Vendor(_first_named("vendors", [name]) or Vendor.UNKNOWN)


def vendor_of(pci_id: str | None) -> Vendor:
    """Return the vendor of a PCI id, `vendor:device` or `vendor`; `UNKNOWN` for none, `OTHER` for anyone else."""
    if not pci_id:
        return Vendor.UNKNOWN
    number = pci_id.partition(":")[0].lower().removeprefix("0x")
    return next((Vendor(row.vendor) for row in rows("names.vendors") if row.pci == number), Vendor.OTHER)


def pci_id(vendor: Vendor, device: str | None) -> str | None:
    """Return the PCI id `vendor:device` (hex) of a device of a vendor; None if the id of either is unknown."""
    maker = next((row.pci for row in rows("names.vendors") if row.vendor == vendor.value), None)
    return f"{maker}:{device.lower():0>4}" if maker and device else None


def profiler_vendor(word: str) -> Vendor:
    """Return the vendor by system_profiler's word for it (`sppci_vendor_amd`); `UNKNOWN` for any other word."""
    return Vendor(next((row.vendor for row in rows("names.vendors") if word and row.profiler == word), "unknown"))


def find_idle_adapter(pci_id: str) -> Row | None:
    """Return the row of a display adapter that cannot compute, by its PCI id or vendor; None for any other.

    Its `kind` is "console" or "virtual".
    """
    adapters = {row.pci: row for row in rows("names.idle_adapters")}
    return adapters.get(pci_id) or adapters.get(pci_id.partition(":")[0])


def windows_release(build: int) -> str | None:
    """Return the name of the Windows that a build belongs to; None before Windows 10."""
    return next((row.name for row in rows("names.windows") if build >= row.build), None)


Support = Literal["supported", "undocumented", "unsupported"]


class GpuIdentity(Record, frozen=True):
    """What is known of a GPU; a field on which several cards of one id or name disagree is None.

    `candidates` are the compute capabilities of cards that share the name, ascending.
    `xpu` is how PyTorch's Intel backend treats it, `since` (and `since_linux`) from which torch on.
    `directx12` is False for cards without a DirectX 12 driver.
    """

    vendor: Vendor
    name: str
    compute_capability: str | None = None
    candidates: tuple[str, ...] = ()
    gfx: str | None = None
    generation: str | None = None
    integrated: bool | None = None
    xpu: Support | None = None
    since: str | None = None
    since_linux: str | None = None
    directx12: bool | None = None


class CardRow(Record, frozen=True):
    """One card or chip: its names, PCI device ids (`73bf`, or `73bf:c0,c1` with revisions) and what it can do.

    A `generic` name ("Radeon Graphics") is worn by many cards and never looked up.
    """

    names: tuple[str, ...]
    ids: tuple[str, ...] = ()
    cc: str | None = None
    gfx: str | None = None
    generation: str | None = None
    integrated: bool = False
    xpu: Support | None = None
    since: str | None = None
    since_linux: str | None = None
    directx12: bool = True
    generic: bool = False


_SHARED = ("generation", "integrated", "xpu", "since", "since_linux", "directx12")


def _hex(text: str) -> str:
    return text.lower().removeprefix("0x")


def identify(pci_id: str | None, revision: str | None = None) -> GpuIdentity | None:
    """Return what is known of the GPUs with a PCI id `vendor:device` (hex); None if no table has it.

    `revision` (hex) tells apart cards that share an id; without a known one, only what they all agree on is filled in.
    """
    vendor = vendor_of(pci_id)
    if pci_id is None or vendor not in _FILES:
        return None
    rows = _by_device(vendor).get(_hex(pci_id.partition(":")[2]))
    if not rows:
        return None
    own = _hex(revision or "").zfill(2)
    exact = [row for row, revisions in rows if own in revisions]
    return _merge_rows(vendor, exact or [row for row, _revisions in rows])


def identify_name(vendor: Vendor, name: str | None) -> GpuIdentity | None:
    """Return what is known of the GPUs with a product name; None for a name that no table has, or a generic one.

    It may be spelt as by drivers, lspci (`GA104 [GeForce RTX 3070]`) or Windows. The whole name must match; makers,
    trademarks and dashes do not matter, nor a product line that people leave out.
    """
    if not name or vendor not in _FILES:
        return None
    names = _by_name(vendor)
    return next((_merge_rows(vendor, rows, name) for key in name_keys(vendor, name) if (rows := names.get(key))), None)


# What people leave out of a name: "RTX 4090", "4090", "RX 7900 XTX", "MI300X", "A770".
_LINES = {
    Vendor.NVIDIA: ("geforce", "geforce rtx", "geforce gtx", "tesla"),
    Vendor.AMD: ("radeon", "radeon rx", "instinct"),
    Vendor.INTEL: ("arc",),
}


def name_keys(vendor: Vendor, name: str) -> tuple[str, ...]:
    """Return the keys to look a card up by, in order: its name as it is, then with a product line before it.

    Of a name these are the whole and the parts that name a chip or a product by themselves: lspci writes
    "GA104 [GeForce RTX 3070]", processors "Ryzen AI 9 HX 370 w/ Radeon 890M", some drivers add the memory.
    """
    name = re.sub(_AROUND, "", name.strip()).strip()
    chip, bracket, product = name.partition("[")
    if bracket:
        key = name_key(chip)
        base = re.match(_CHIP, key)
        spellings = [name_key(name), key, *([base[0]] if base else []), name_key(product.rstrip("] "))]
    else:
        whole, within = name_key(name), name_key(name.partition(" w/ ")[2])
        spellings = [part for part in (whole, within, re.sub(_MEMORY, "", whole)) if part]
    return (*spellings, *(f"{line} {key}" for line in _LINES.get(vendor, ()) for key in spellings))


def identify_gpu(gpu: Gpu) -> GpuIdentity | None:
    """Return what is known of a machine's GPU by its PCI id, else by its name; None if both are unknown.

    If its vendor is unknown and it has no PCI id, a name that the cards of only one vendor have tells the vendor.
    """
    found = identify(gpu.pci_id) or identify_name(gpu.vendor, gpu.name)
    if found or gpu.vendor is not Vendor.UNKNOWN or gpu.pci_id:
        return found
    identities = [identity for vendor in _FILES if (identity := identify_name(vendor, gpu.name))]
    return identities[0] if len(identities) == 1 else None


def complete_cut_name(part: str, *, at_end: bool, width: int) -> tuple[str, ...]:
    """Return, sorted, the names of NVIDIA's cards, as drivers spell them, that a table may have cut off to `part`.

    `part` is the beginning of a name of more than `width` characters, the room that the table has, or, with `at_end`,
    the end of a name of any length. Case is ignored, and hyphens count as spaces; the names begin with "NVIDIA" if
    `part` does. A laptop's "X with Max-Q Design" is left out if "X Laptop GPU" fits, too.
    """
    part, found = part.lower().replace("-", " "), set()
    maker = "nvidia " if part.startswith("nvidia ") and not at_end else ""
    for name in (f"{maker}{name}" for row in _rows(Vendor.NVIDIA) if not row.generic for name in row.names):
        spelt = name.lower().replace("-", " ")
        fits = spelt.endswith(part) if at_end else spelt.startswith(part) and len(name) > width
        if fits and not re.search(_LISTED, name):
            found.add(name)
    laptops = (name.removesuffix(" Laptop GPU") for name in found if name.endswith(" Laptop GPU"))
    return tuple(sorted(found.difference(f"{name} with Max-Q Design" for name in laptops)))


# How lists of PCI ids, and no drivers, spell cards: "GeForce RTX 4060 Max-Q / Mobile", "… 3060 Lite Hash Rate".
_LISTED = r" Mobile(?: Refresh)?$| / | Rev\. \w$| Lite Hash Rate$| GDDR\dX?$"

_FILES = {Vendor.NVIDIA: "gpus_nvidia", Vendor.AMD: "gpus_amd", Vendor.INTEL: "gpus_intel"}
_WITH_CHIPS = {Vendor.NVIDIA, Vendor.AMD}  # whose chips are known by their code names, too


@cache
def _rows(vendor: Vendor) -> tuple[CardRow, ...]:
    """Return a vendor's cards and chips; a card without a generation gets that of the chip with its code."""
    cards = load_table(f"{_FILES[vendor]}.cards", CardRow).rows
    if vendor not in _WITH_CHIPS:
        return cards
    chips = load_table(f"{_FILES[vendor]}.chips", CardRow).rows
    generations = {row.gfx or row.cc: row.generation for row in chips}
    completed = (
        row if row.generation else replace(row, generation=generations.get(row.gfx or row.cc)) for row in cards
    )
    return (*completed, *chips)


@cache
def _by_device(vendor: Vendor) -> dict[str, list[tuple[CardRow, frozenset[str]]]]:
    """Return a vendor's cards by PCI device id, each with its revisions."""
    found: dict[str, list[tuple[CardRow, frozenset[str]]]] = defaultdict(list)
    for row in _rows(vendor):
        for entry in row.ids:
            device, _colon, revisions = entry.partition(":")
            found[device].append((row, frozenset(filter(None, revisions.split(",")))))
    return dict(found)


@cache
def _by_name(vendor: Vendor) -> dict[str, list[CardRow]]:
    """Return a vendor's cards by the key of each of their names; laptop cards also without the "Mobile" of pci.ids.

    Generic names are left out.
    """
    found: dict[str, list[CardRow]] = defaultdict(list)
    without_mobile: dict[str, list[CardRow]] = defaultdict(list)
    for row in _rows(vendor):
        if not row.generic:
            for key in dict.fromkeys(map(name_key, row.names)):
                found[key].append(row)
    for key, cards in found.items():
        without_mobile[key.partition(" mobile")[0]] += cards
    return {**without_mobile, **found}


def _merge_rows(vendor: Vendor, rows: Iterable[CardRow], name: str | None = None) -> GpuIdentity:
    """Return an identity of the fields in which all rows agree; `candidates` are the capabilities of all of them.

    It is called `name`, or else by the first names of up to three rows.
    """
    rows = tuple(rows)
    names = dict.fromkeys(row.names[0] for row in rows)
    return GpuIdentity(
        vendor=vendor,
        name=name or " / ".join(list(names)[:3]),
        compute_capability=_common_value(rows, "cc"),
        candidates=tuple(sorted({row.cc for row in rows if row.cc}, key=lambda cc: tuple(map(int, cc.split("."))))),
        gfx=_common_value(rows, "gfx"),
        **{field: _common_value(rows, field) for field in _SHARED},
    )


def _common_value(rows: tuple[CardRow, ...], field: str) -> Any:  # noqa: ANN401 - the field decides
    values = {getattr(row, field) for row in rows}
    return values.pop() if len(values) == 1 else None


_NOISE = r"(?i)\((?:tm|r|\d+ ?gb)\)|[®™]|\b(?:nvidia|amd|ati|intel)\b| (?:graphics|series|gpu|oam|vf|hf)$"
# People write "RTX4090" and "GTX 1080Ti".
_GLUED = r"(?i)\b(rtx|gtx|gt|rx|mx)(?=\d)|(\d{3})(?=(?:ti|super|xtx?|gre)\b)"
# "GA104M" and "GM204GL" are packages of the chips GA104 and GM204; "Navi 21 GL-XL" is a cut of Navi 21.
_CHIP = r"^(?:[a-z]{2}\d{3}(?=[a-z]+$)|(?:navi|vega|polaris) \d+(?= ))"

# What lspci and OpenGL write around a name: maker, revision, driver.
_AROUND = (
    r"(?i)^(?:advanced micro devices, inc\.|nvidia corporation|intel corporation)(?: \[amd/ati\])?|^mesa (?=intel)"
    r"|\((?:dg\d|[a-z]{3}(?: gt\d\S{0,2})?)\)$"
    r"|\(rev [0-9a-f]{2}\)$|/pcie/sse2$|\(nvgpu\)$|\((?:radv |nvk |navi|[^()]{0,40}\bllvm )[^()]{0,60}\)$"
)
_MEMORY = r" \d+ ?gb$"


def name_key(name: str) -> str:
    """Return a product name as it is looked up: without vendor, trademarks, memory size and dashes, in lower case."""
    name = re.sub(_GLUED, lambda found: f"{found[0]} ", name.replace("-", " ").replace("/", " / "))
    single = " ".join(name.split())  # so that no pattern has to run over spaces
    plain = " ".join(re.sub(_NOISE, " ", single).split())
    return re.sub(_NOISE, " ", plain).strip().lower()


SAME_MEMORY = 1.0  # GiB by which what a driver reports may differ from what the box says (chosen)


class Rate(NamedTuple):
    """TFLOPS in half precision; not `exact` where the card is only known to be no weaker than its generation."""

    half: float
    exact: bool


@lru_cache(maxsize=8192)  # far above the kinds of cards that one fleet has
def find_rate(vendor: Vendor, name: str, code: str, memory: float | None = None) -> Rate | None:
    """Return a card's rate by its name, else its generation's lowest one (not `exact`); None if both are unknown.

    `code` is the compute capability ("8.6"), the gfx target or Intel's generation; `memory` in GiB tells cards of one
    name apart.
    """
    for row in (row for key in name_keys(vendor, name) for row in _rates_by_name(vendor).get(key, ())):
        size = row.get("gb")
        if size is None or (memory is not None and abs(size - memory) < SAME_MEMORY):
            return Rate(row.half, exact=True)
    # A generation is known by the codes of its chips, of Intel's by how they begin; `words` narrow it to some names.
    # The first row that fits counts; its `entry` is the rate of the weakest card known.
    for row in rows("generations.generations"):
        named = row.vendor == vendor.value and (not row.words or re.search(row.words, name))
        if named and any(code == own or (vendor is Vendor.INTEL and code.startswith(own)) for own in row.codes):
            return Rate(row.entry, exact=False)
    return None


@cache
def _rates_by_name(vendor: Vendor) -> dict[str, list[Row]]:
    """Return rows with cards' rates by the keys of their names: every maker's data sheets, then `vendor`'s own table.

    `half` is dense and, on tensor cores, summed in float32; `gb` of memory tell cards of one name apart.
    """
    tables = ["datacenter", "geforce", "radeon", *([vendor.value] if vendor in _FILES else [])]
    found: dict[str, list[Row]] = defaultdict(list)
    for row in (row for table in tables for row in rows(f"generations.{table}")):
        for key in map(name_key, row.names):
            found[key].append(row)
    return found

"""Tells what the entries of a report mean: the GPUs that it lists and the facts of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from assistant.catalog.identity import identify, identify_name, name_key
from assistant.catalog.names import idle_adapter, patterns, pci_id, vendor_of, vendor_of_name
from assistant.catalog.vocabulary import meaning, other_devices, tool_marks
from assistant.model.machine import Gpu, Vendor
from assistant.parsers.cards import cards_in, cut_card, is_card
from assistant.parsers.entry import Entry
from assistant.parsers.fields import Device, bus_address
from assistant.parsers.windows import pci_id_of

_MAKERS = {Vendor.NVIDIA, Vendor.AMD, Vendor.INTEL, Vendor.APPLE}
_COUNTS = {"gpunumber", "numberofgpus", "gpucount"}  # LLaMA-Factory: GPU type: NVIDIA L20, GPU number: 2
_MOST = 64  # devices of one entry, written as "8 x NVIDIA A100" (chosen)
# Keys that name a GPU and nothing else, so that any name below them is one: "Device 66a1", "3060".
_SURE = frozenset(
    {"gputype", "gpumodel", "gpuname", "marketname", "marketingname", "chipsetmodel", "cardname", "显卡型号"}
)
_LOOSE = frozenset({"gpu", "显卡", "usinggpuinscript", "graphicscard", "card"})
_BARE_MODEL = re.compile(r"^(?:yes,? )?(\d{4}(?: ?(?:Ti|SUPER|XTX?))?)(?=$| \d{1,2} ?G)", re.IGNORECASE)
_CHIP = re.compile(r"(?:Navi|Vega|Polaris) ?\d\d(?: \w{2,3})?|[A-Z]{2}\d{3}\w{0,3}")  # GPU-Z: GPU   Navi 22
_LAST = 1000  # behind every key that names the product
_MAKER_FIRST = re.compile(r"(?:AMD/ATI|AMD|Intel|NVIDIA) (?!Ryzen|Corporation$)[A-Z][\w -]{2,40}$")  # AMD/ATI Renoir
# Around a name: `cuda:0 X : cudaMallocAsync`, `X (UUID: GPU-…)`, `X, 16376MiB`, `X @ 1.45 GHz [Integrated]`, `X n=1 …`
_AROUND = re.compile(
    r"^(?:(?:cuda|xpu|hip):\d{1,2} \(?|device=)|\((?:UUID|arch=|gfx|rev )[^)]{0,60}\)|,? \(?\d{3,7} ?Mi?B\)?.{0,40}$"
    r"| :(?: |$).{0,40}$| @ [\d.]{1,6} ?[GM]Hz|\[(?:Discrete|Integrated|ZLUDA)\]|\([\d.]{1,6} Gi?B\)|/PCIe/SSE2"
    r"| \( \d{1,5} [MG]B / .{0,60}$"
    r"|(?<!GPU) ?\(\d{1,3} ?G(?:i?B)?\)$|(?: \[\d{2,3}\])?(?:,| (?=\d{1,3} )) ?\d{1,3} ?Gi?B$| \d{1,3}G$"
    r"|, [a-z].{0,80}$|,? compute capability \d.{0,80}$| n=\d.{0,200}$| VRAM \d.{0,80}$"
    r"|[ (][x*] ?\d{1,2}\)?$|^\d{1,2} ?x |\) ?$(?<=[^(]\))(?<!\(TM\))(?<!\(R\))(?<!\w\))"
)
_GFX = re.compile(r"\bgfx(?:9\d1\d|\d{3,4}|9\d[0-9a-f])\b")
_SIZE = re.compile(r"([\d.,]{1,20}) ?(TB|TiB|GB|GiB|G|MB|MiB|Mi|M|KB|KiB|B|bytes)?(?![\w.])", re.IGNORECASE)
_UNITS = {"t": 2.0**10, "g": 1.0, "m": 2.0**-10, "k": 2.0**-20, "b": 2.0**-30}
_CAPPED = 4095 * 2**20  # bytes; Windows' 32-bit AdapterRAM ends here, whatever a card has


def gigabytes(text: str, default: str = "m") -> float | None:
    """Read GiB off `24576 MiB`, `551MiB / 8192MiB` (the total), `25757220864`, `0x200000000` or `32,605 MB`."""
    if found := re.search(r"\b0x[0-9a-f]{8,12}$", text, re.IGNORECASE):
        return round(int(found[0], 16) / 2**30, 1)
    first = text.partition(", ")[0]  # OpenCL-Benchmark: "512 MB, 0 KB global / 32 KB local"
    total = (first if re.search(r"\d", first) else text).rpartition("/")[2]
    found = _SIZE.search(total)
    number = re.sub(r"[,.](?=\d{3}\b)", "", found[1]) if found else ""
    if not found or not re.fullmatch(r"\d{1,18}(?:[.,]\d{1,6})?", number):
        return None
    value = float(number.replace(",", "."))
    unit = (found[2] or ("b" if value >= 2**28 else default)).lower()[0]
    size = value * _UNITS[unit]
    return round(size, 1) if 0 < size < 2**14 else None


def devices(found: Iterable[Entry], text: str) -> dict[str, list[Device]]:
    """Return the GPUs of each list in a text, in their order; a list is told by its label."""
    seen = [row for row, mark in tool_marks() if row.vendor and mark.search(text)]
    makers = {row.vendor for row in seen}
    maker = makers.pop() if len(makers) == 1 else None
    lists: dict[str, list[Device]] = {}
    for entry in found:
        for device in _devices(entry, maker):
            lists.setdefault(entry.label, []).append(device)
    return {label: listed for label, listed in lists.items() if listed}


def _devices(entry: Entry, maker: Vendor | None) -> Iterator[Device]:
    facts = _facts(entry)
    kind = facts.get("kind", "")
    if re.search(r"\bCPU\b|ACCELERATOR|\bcpu\b|DISK", kind) and "GPU" not in kind.replace("iGPU", ""):
        return
    shown, times = _name(entry)
    counted = next((value for key, value, _raw in entry.pairs if key in _COUNTS and value.isdigit()), "")
    times = min(int(counted), _MOST) if times == 1 and counted else times
    ids = _ids(facts, shown, maker) or _named_by_id(entry)
    vram = gigabytes(facts.get("vram", ""))
    if "adapterram" in facts.get("vram_key", ""):
        vram = _adapter_ram(facts["vram"])
    named = cut_card(shown, vram) if shown else Gpu()
    gfx = _GFX.search(" ".join([facts.get("gfx", ""), *(value for _key, value, _raw in entry.pairs[:40])]))
    vendor = _vendor(facts, named, ids, gfx=bool(gfx))
    vendor = vendor if vendor in _MAKERS else maker if maker and (shown or entry.numbered) else vendor
    bus = bus_address(_bus(facts.get("bus") or facts.get("pci_id", "")))
    numbered = entry.numbered and maker is not None and bool(bus or vram or _bare(entry))
    bare = any(_CONTROLLER.match(value) for key, value, _raw in entry.pairs if key == "description")
    if not (shown or ids or gfx or numbered or bare or (kind == "xpu" and vram)) or vendor is Vendor.UNKNOWN:
        return
    version = _CC.search(facts.get("cc", "")) or _CC_BESIDE.search(_first(entry))
    gpu = Gpu(
        vendor=vendor,
        name=named.name if named.name and not re.fullmatch(r"gfx\w+|0x\w+", named.name) else None,
        pci_id=ids,
        vram_gb=vram or _inline_size(entry),
        compute_capability=f"{version[1]}.{version[2]}"
        if version and vendor is Vendor.NVIDIA
        else named.compute_capability,
        gfx=target(gfx[0]) if gfx and vendor is Vendor.AMD else None,
        driver=_driver(facts),
        integrated=True if vendor is Vendor.APPLE else None,
    )
    for _copy in range(times):
        yield Device(gpu=gpu, bus=bus)


def _vendor(facts: Mapping[str, str], named: Gpu, pci_id: str | None, *, gfx: bool) -> Vendor:
    """Return who made a GPU: by its id, by what names its maker, by its name, or by what only one maker's have."""
    sort = Vendor.INTEL if facts.get("kind") == "xpu" else Vendor.AMD if gfx else Vendor.UNKNOWN
    told = (vendor_of(pci_id), vendor_of_name(facts.get("vendor", "")), named.vendor, sort)
    return next((vendor for vendor in told if vendor in _MAKERS), sort)


_CONTROLLER = re.compile(r"(?:VGA|3D|Display)\b.{0,20} controller$")  # lshw of a card that it has no name for
_CC = re.compile(r"\b(\d{1,2})[., ]{1,2}(\d)\b")
# compute capability 8.6    arch=8.6    Arch (8, 6)    cap=(8, 6)
_CC_BESIDE = re.compile(r"(?:compute capability:? |arch=|Arch \(|cap=\()(\d{1,2})(?:\.|, )(\d)\b")


def _first(entry: Entry) -> str:
    return entry.pairs[0][1][:300] if entry.pairs else ""


def _bare(entry: Entry) -> bool:
    """Return whether an entry has keys that only a tool of one maker's lists: BDF, UUID, a row of clocks."""
    return bool({key for key, _value, _raw in entry.pairs} & {"bdf", "kfdid", "uuid", "gpuuuid", "vramused", "power"})


_UNTOLD = {"n/a", "unknown", "none", "null", "-"}


def _facts(entry: Entry) -> dict[str, str]:
    """Return the best value of each fact of a GPU; `vram_key` is the key that the memory stands under."""
    best: dict[str, tuple[int, str]] = {}
    for key, value, _raw in entry.pairs:
        told = meaning("gpu", key)
        if not told or value.lower() in _UNTOLD or not _has_form(told[0], key, value):
            continue
        if told[0] not in best or told[1] < best[told[0]][0]:
            best[told[0]] = (told[1], value)
            if told[0] == "vram":
                best["vram_key"] = (told[1], key)
    return {fact: value for fact, (_rank, value) in best.items()}


_DRIVER = re.compile(r"(?:NVIDIA |Mesa )?(\d{1,5}(?:\.\d{1,6}){1,3}(?:[+-][\w.+~]{1,30})?)(?=$| [\[(])")


def _has_form(fact: str, key: str, value: str) -> bool:
    """Return whether a value can be what its key tells: a driver's number, a size; "size=34881" has no unit."""
    if fact == "driver":
        return bool(_DRIVER.match(value)) and (key not in _VAGUE or _windows_driver(value))
    return fact != "vram" or bool(gigabytes(value) and (key != "size" or not re.fullmatch(r"\d{1,8}", value)))


_VAGUE = {"version", "版本"}


def _windows_driver(value: str) -> bool:
    return any(form.match(value) for form in patterns("wddm").values())


def _name(entry: Entry) -> tuple[str, int]:
    """Return the GPU's name that an entry tells under its best key, or in bare text, and how many bear it."""
    told: list[tuple[int, str, int]] = []
    vendor = next((value for key, value, _raw in entry.pairs if key == "gpuvendor"), "")
    for key, value, _raw in entry.pairs:
        found = meaning("gpu", key)
        if key == "":
            card = next(iter(cards_in(value)), None)
            whole = card and (not entry.label.startswith("line") or _is_whole(value, card.name))
            if card and whole and is_card(card.name):
                told.append((0, _with_id(value, card.name, card.end), _times(value)))
        elif found and found[0] == "name":
            name, certain = _keyed(key, value, vendor, certain=entry.label.startswith("Graphics/"))
            if certain:
                told.append((found[1] + (_LAST if _CHIP.fullmatch(name) else 0), name, _times(value)))
            elif key in _SURE | _LOOSE and (bare := _BARE_MODEL.search(name)):
                told += [(found[1], name, 1) for name in _lines_of(bare[1])]
    told.sort(key=lambda one: one[0])
    return (told[0][1], told[0][2]) if told else ("", 1)


def _lines_of(number: str) -> list[str]:
    """Return the products that bear a number: RTX 3060, GTX 1080, RX 7800XT."""
    named = [(vendor, f"{line} {number}") for line, vendor in _LINES.items()]
    return [name for vendor, name in named if identify_name(vendor, name)]


_LINES = {"RTX": Vendor.NVIDIA, "GTX": Vendor.NVIDIA, "RX": Vendor.AMD}
_CUT_OFF = re.compile(
    r"(?:AMD|Intel|NVIDIA) [A-Z][\w-]{2,20}(?: \w{2,5})? \[[^\[\]]{2,30}$"
)  # Intel TigerLake-H GT1 [UHD Grap
# Mesa in WSL: D3D12 (NVIDIA GeForce RTX 3060)    Microsoft Direct3D12 (Intel(R) Iris(R) Xe Graphics)
_THROUGH_WINDOWS = re.compile(r"^(?:D3D12|Microsoft Direct3D12) \((.{3,80})\)$")
# Mesa of a chip that it has no product for: AMD TURKS (DRM 2.50.0 / 5.15.0-72-generic, LLVM 15.0.7)
_KERNEL = re.compile(r" \([^()]{0,40}\bDRM [^()]{0,60}\)$")


def _keyed(key: str, value: str, vendor: str, *, certain: bool) -> tuple[str, bool]:
    """Return the name under a key without what stands around it, and whether it is a GPU's."""
    value = _THROUGH_WINDOWS.sub(r"\1", value.partition("  ")[0])
    name = _AROUND.sub("", _AROUND.sub("", value)).strip(" ,;(")
    if "=" in name:  # keys within a value
        return "", False
    if is_card(name):
        return name, True
    name = plain if _MAKER_FIRST.match(plain := _KERNEL.sub("", name)) else name
    by_maker = _MAKER_FIRST.match(name) or (key in _LOOSE and _CUT_OFF.match(name))
    sure = (key in _SURE or by_maker) and not other_devices().search(name)
    makers = {vendor_of_name(name), vendor_of_name(vendor)} & _MAKERS
    return name, bool((sure or certain) and makers and not name.startswith("gfx"))


def _named_by_id(entry: Entry) -> str | None:
    """Return the PCI id that stands in place of a name: `Intel Corporation [8086:56C0]`, `name=1002:73bf`."""
    named = (value for key, value, _raw in entry.pairs if (told := meaning("gpu", key)) and told[0] == "name")
    for value in named:
        device = re.search(r"\(0x([0-9a-f]{4})\)$", value.lower())  # Mesa: AMD Radeon RX 5500 XT (navi14, …) (0x7340)
        whole = re.search(r"(?:^|\[)([0-9a-f]{4}:[0-9a-f]{4})(?:$|\])", value.lower())
        found = pci_id(vendor_of_name(value), device[1]) if device else whole[1] if whole else None
        if found and identify(found):
            return found
    return None


def _is_whole(line: str, name: str) -> bool:
    """Return whether a line is a name with next to nothing around it."""
    line = re.split(r" {1,9}(?:<-|<=|←)", line)[0]  # what somebody points at: "X  <- yellow triangle"
    rest = re.sub(r"\([^()]{0,60}\)", "", _AROUND.sub("", line).replace(name, "", 1))
    return len(re.findall(r"[^\W\d_]{2,}", rest)) <= 1


def _with_id(value: str, name: str, end: int) -> str:
    """Keep the id behind a name that says nothing: `Intel(R) Graphics [0xb080]`."""
    found = re.match(r" ?\[0x[0-9a-f]{4}\]", value[end:], re.IGNORECASE)
    return f"{name} {found[0].strip()}" if found else name


def _times(value: str) -> int:
    found = re.match(r"(\d{1,2}) ?[x×*] ?(?=[A-Z])", value) or re.search(r"[ (][x×*] ?(\d{1,2})\)?$", value)
    return min(int(found[1]), _MOST) if found and int(found[1]) else 1


def _ids(facts: Mapping[str, str], shown: str, maker: Vendor | None) -> str | None:
    r"""Read `10de:2684`, `PCI\VEN_10DE&DEV_2684`, or a bare device id that the catalogue has under its maker."""
    value = facts.get("pci_id", "")
    whole = re.search(r"\b([0-9a-f]{4}):([0-9a-f]{4})\b", value.lower())
    if whole or pci_id_of(value):
        return whole[0] if whole else pci_id_of(value)
    if joint := re.fullmatch(r"(?:0x)?([0-9a-f]{4})(10de)", value.lower()):  # nvidia-smi's pci.device_id
        return f"{joint[2]}:{joint[1]}"
    device = re.match(r"(?:0x)?([0-9a-f]{4})\b|0x([0-9a-f]{3})\b|\d{1,6}\(0x([0-9a-f]{4})\)", value.lower())
    device = device or re.search(r"[\[(]0x([0-9a-f]{4})[\])]$", shown.lower())
    numbers = re.search(r"\b(?:0x)?([0-9a-f]{4})h?\b", facts.get("vendor", "").lower())
    told = vendor_of(numbers[1]) if numbers else Vendor.UNKNOWN
    vendors = (told, vendor_of_name(facts.get("vendor", "")), vendor_of_name(shown), maker or Vendor.UNKNOWN)
    vendor = next((vendor for vendor in vendors if vendor in _MAKERS), Vendor.UNKNOWN)
    if not device and not shown and numbers and idle_adapter(numbers[1]):
        return numbers[1]
    found = pci_id(vendor, next(filter(None, device.groups()))) if device else None
    sure = told in _MAKERS or "[0x" in shown or (found and identify(found))
    return found if found and sure else None


def _adapter_ram(value: str) -> float | None:
    number = re.match(r"\d{1,12}", value.replace(",", ""))
    size = int(number[0]) if number else 0
    return None if size >= _CAPPED else gigabytes(value)


# X, 16376MiB    X VRAM 8188 Arch    X (12.00 GiB)    X, 1024 / 24576 MiB
_SIZE_BESIDE = re.compile(
    r",? \(?(\d{4,6} ?Mi?B)\b|VRAM (\d{4,6})\b|(?<!GPU)(?<!GPU )\(([\d.]{1,6} ?Gi?B?)\)"
    r"|/ ?(\d{4,6} ?Mi?B)"
)


def _inline_size(entry: Entry) -> float | None:
    """Read the memory that stands beside a name."""
    for key, value, _raw in entry.pairs:
        told = meaning("gpu", key)
        if (key == "" or (told and told[0] == "name")) and (found := _SIZE_BESIDE.search(value)):
            return gigabytes(next(filter(None, found.groups())))
    return None


def _driver(facts: Mapping[str, str]) -> str | None:
    found = _DRIVER.match(facts.get("driver", ""))
    # Vulkan tells NVIDIA's 546.17 as 546.17.0.0, and 545.29.02 as 545.29.2.0.
    number = re.fullmatch(r"(\d{3})\.(\d{1,3})\.(\d{1,2})(?:\.0)?", found[1]) if found else None
    if number:
        return f"{number[1]}.{number[2]:0>2}" + (f".{number[3]:0>2}" if int(number[3]) else "")
    return found[1] if found else None


def _bus(text: str) -> str:
    """Find a PCI address: with its domain, without it, or in AMD's form of OpenCL (`PCI[ B#3, D#0, F#0 ]`)."""
    found = re.search(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", text.lower())
    if found:
        return f"{found[1] or '0000'}:{found[2]}:{found[3]}.{found[4]}"
    parts = re.search(r"B#(\d{1,3}), D#(\d{1,2}), F#(\d)", text)
    return f"0000:{int(parts[1]):02x}:{int(parts[2]):02x}.{parts[3]}" if parts else ""


def target(gfx: str) -> str:
    """Spell a target as compilers do: rocm-smi writes gfx90a as `gfx9010`."""
    found = re.fullmatch(r"gfx9(\d)(1\d)", gfx)
    return f"gfx9{found[1]}{int(found[2]):x}" if found else gfx


def model(name: str) -> frozenset[str]:
    """Return the words that tell one product from the next, however it is spelt: `4060`, `laptop`; none for a chip."""
    if _CHIP.fullmatch(name):
        return frozenset()
    key = name_key(name.partition("[")[2].rstrip("]") or name).replace("mobile", "laptop")
    return frozenset(re.findall(r"[a-z]{0,8}\d{1,8}[a-z]{0,8}|\b(?:ti|super|xtx?|gre|pro|max|ultra|laptop|d)\b", key))


def fits(one: Gpu, other: Gpu) -> bool:
    """Return whether two reports may speak of one GPU: nothing that both tell is against it."""
    if one.vendor is not other.vendor:
        return False
    for field in ("pci_id", "gfx"):
        mine, theirs = getattr(one, field), getattr(other, field)
        if mine and theirs:
            return bool(mine == theirs)
    if not (one.name and other.name):
        return True
    mine, theirs = model(one.name), model(other.name)
    listed = "/" in one.name + other.name  # "Radeon RX 7900 XT/7900 XTX/7900 GRE" is one of them
    return mine == theirs or not mine or not theirs or (listed and (mine <= theirs or theirs <= mine))

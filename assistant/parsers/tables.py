"""Reads the tables that no key explains: boxes and rows of numbers, told by where a PCI address or a name stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from assistant.catalog.identity import identify, identify_name
from assistant.catalog.names import pci_id, vendor_of_name
from assistant.model.machine import Gpu, Vendor
from assistant.parsers.cards import cards_in, cut_card
from assistant.parsers.columns import cells
from assistant.parsers.entry import Entry
from assistant.parsers.fields import Device, bus_address, gib

_ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
# https://rocm.docs.amd.com/projects/amdsmi (amd-smi without arguments):
# | BDF                        GPU-Name | Mem-Uti   Temp   UEC       Power-Usage |
# | GPU  HIP-ID  OAM-ID  Partition-Mode | GFX-Uti    Fan               Mem-Usage |
# |=====================================+========================================|
# | 0000:0c:00.0    AMD Instinct MI300X | 13 %     60 °C   0           734/750 W |
# |   0       0       2        SPX/NPS1 | 98 %       N/A          4976/196592 MB |
_AMD = re.compile(
    rf"^[ \t]{{0,8}}\|[ ]{{0,8}}({_ADDRESS})[ ]{{1,30}}(\S[^|\n]{{0,60}}?)[ ]{{0,40}}\|[^\n]{{0,80}}"
    r"(?:\n[ \t]{0,8}\|[^\n]{0,90}?/[ ]{0,8}(\d{1,7}) MB)?",
    re.MULTILINE,
)
# xpu-smi since 2.0 (https://github.com/intel/xpumanager/issues/169):
# |   0  Intel(R) Arc(TM) Pro B  Off  | 0000:18:00.0  Off  |  Disabled |
_INTEL = re.compile(
    r"^[ \t]{0,8}\|[ ]{0,8}\d{1,3}[ ]{1,8}(Intel[^|\n]{3,60}?)(?:[ ]{2,20}\w{2,8})?[ ]{0,20}\|"
    rf"[ ]{{0,8}}({_ADDRESS})",
    re.MULTILINE,
)


def boxes(text: str) -> tuple[Device, ...]:
    """Read the boxes of amd-smi and xpu-smi; a name that was cut off is completed where one product fits."""
    found = []
    for bus, name, size in _AMD.findall(text):
        vram = gib(size)
        number = pci_id(Vendor.AMD, name[2:]) if name.startswith("0x") else None
        card = cut_card(name, vram) if not number else Gpu(pci_id=number)
        gpu = Gpu(vendor=Vendor.AMD, name=card.name, pci_id=card.pci_id, vram_gb=vram)
        found.append(Device(gpu=gpu, bus=bus_address(bus)))
    for name, bus in _INTEL.findall(text):
        whole = name if identify_name(Vendor.INTEL, name) else None  # the column cuts most names off without a mark
        found.append(Device(gpu=Gpu(vendor=Vendor.INTEL, name=whole), bus=bus_address(bus)))
    return tuple(found)


# https://github.com/ROCm/rocm-systems/pull/1508:
# Device  Node  IDs              Temp        Power     Partitions          SCLK     MCLK     Fan  Perf    PwrCap   VRAM%
#               (DID,     GUID)  (Junction)  (Socket)  (Mem, Compute, ID)
# ======================================================================================================================
# 0       2     0x75a0,   24959  60.0°C      319.0W    NPS1, DPX, 0        2203Mhz  1900Mhz  0%   manual  1000.0W  0%
# before ROCm 6.2 a second line has the name, cut off:
# 0       [0x0b36 : 0x00]       45.0°C  35.0W      N/A, N/A        500Mhz  96Mhz  0%   auto  255.0W  0%     0%
#         AMD Radeon RX 6800
_CONCISE = re.compile(
    r"^[ \t]{0,8}\d{1,3}[ \t]{1,12}"
    r"(?:\d{1,3}[ \t]{1,8}(0x[0-9a-f]{4}),|\[0x[0-9a-f]{4} : 0x\w\w\]|\d{1,3}\.\d°?[cC]|N/A)[^\n]{0,200}"
    r"(?:\n[ \t]{4,20}([A-Z][^\n=]{2,30}))?",
    re.MULTILINE,
)


_TITLES = ("Concise Info", "ROCm System Management Interface")  # versions before ROCm 4 have no inner title
_WIDTH = 20  # letters of a name that the table shows
_LONGEST = 20_000  # characters of such a table


def concise(text: str) -> tuple[Device, ...]:
    """Read what rocm-smi prints without arguments: a row for each GPU, at best with its device id or a cut name."""
    start = next((at for at in map(text.find, _TITLES) if at >= 0), -1)
    rows = _CONCISE.findall(text[start : start + _LONGEST]) if start >= 0 else ()
    return tuple(_row(device, shown.strip()) for device, shown in rows)


def _row(device: str, shown: str) -> Device:
    number = pci_id(Vendor.AMD, device.removeprefix("0x") or None)
    card = cut_card(f"{shown}..." if len(shown) == _WIDTH else shown)
    name = card.name if card.vendor is Vendor.AMD else None
    return Device(gpu=Gpu(vendor=Vendor.AMD, name=name, pci_id=number if identify(number) else None))


# What lists GPUs by their numbers alone: the maker, what the list begins with, and what names a GPU of it.
_READINGS = (
    # GPU0     X      NV12    SYS     0-31            0               N/A        (nvidia-smi topo -m)
    (Vendor.NVIDIA, r"^[ \t]*GPU0[ \t].{0,400}CPU Affinity", r"^[ \t]{0,8}GPU(\d{1,2})[ \t]"),
    # # gpu    pwr  gtemp     sm ⏎ # Idx      W      C      % ⏎     0     43     35      -        (nvidia-smi dmon)
    (Vendor.NVIDIA, r"^# gpu +(?:pwr|pid)", r"^ {0,8}(\d{1,2}) +[\d-]"),
    # NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.     NVRM: GPU 0000:01:00.0: rm_init_adapter failed
    (Vendor.NVIDIA, r"\bNVRM: ", r"\bNVRM: [^\n]{0,20}(?:PCI:|GPU )([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})"),
    # nouveau 0000:01:00.0: NVIDIA GP107 (137000a1)
    (Vendor.NVIDIA, r"\bnouveau 0000:", r"\bnouveau (0000:[0-9a-f]{2}:[0-9a-f]{2}\.\d): NVIDIA "),
    # RAM 2100/7620MB (lfb 4x2MB) CPU [1%@729,off] EMC_FREQ 0% GR3D_FREQ 0%     (tegrastats)
    (Vendor.NVIDIA, r"\bGR3D_FREQ \d", r"\b(GR3D_FREQ) \d"),
    # GPU[1]          : Temperature (Sensor edge) (C): 41.0     (rocm-smi)
    (Vendor.AMD, r"^GPU\[\d{1,2}\][ \t]{0,8}: ", r"^GPU\[(\d{1,2})\][ \t]{0,8}: "),
    # GPU1   40           0            (rocm-smi --showtopo)
    (Vendor.AMD, r"Weight between two GPUs", r"^GPU(\d{1,2}) {1,8}\d"),
    # 1700000000.1: bus 03, gpu 10.00%, ee 0.00%, vram 12.00% 2950.00mb     (radeontop -d)
    (Vendor.AMD, r"\bbus \w\w, gpu \d", r"\bbus (\w\w), gpu \d"),
    # Timestamp, DeviceId, GPU Utilization (%) ⏎ 06:14:46.000,    0, 0.00        (xpu-smi dump)
    (Vendor.INTEL, r"^Timestamp, DeviceId,", r"^\d\d:\d\d:\d\d[.\d]{0,7}, {1,8}(\d{1,2}),"),
    # | Device ID                   | 0      | ⏎ +------+ ⏎ | GPU Utilization (%)         | 0      |     (xpu-smi stats)
    (
        Vendor.INTEL,
        r"^\| Device ID +\| \d[^\n]{1,200}\n[+-]{3,200}\n\| GPU Utilization \(%\)",
        r"^\| Device ID {1,40}\| (\d{1,2}) ",
    ),
    # 2. GPU : Intel(R) OpenCL HD Graphics 3.0 [27.20.100.8681]        (sycl-ls of 2020: a card once for each platform)
    (Vendor.INTEL, r"^\d\. (?:CPU|ACC|HOST) ?: ", r"^\d\. GPU ?: (Intel)\(R\) "),
)


def readings(text: str) -> Iterator[Device]:
    """Yield the GPUs that tools tell apart by a number or an address and tell nothing else of."""
    for vendor, begin, row in _READINGS:
        if start := re.search(begin, text, re.MULTILINE):
            numbers = re.findall(row, text[start.start() :][:_LONGEST], re.MULTILINE)
            yield from (Device(gpu=Gpu(vendor=vendor)) for _number in dict.fromkeys(numbers))


_CSV = re.compile(r"^[^,\n|:\[]{0,80},[^\n]{3,300}$", re.MULTILINE)
_STATES = re.compile(r"GPU-[\w-]{1,40}|Default|Enabled|Disabled|N/A|\[[^\]]{0,40}\]")
_MOST_ROWS = 10_000
_CELLS = {
    "pci.bus_id": rf"{_ADDRESS}",
    "driver_version": r"\d{3}\.\d{2,3}(?:\.\d{1,3})?",
    "compute_cap": r"\d{1,2}\.\d",
}


# nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
# Tesla T4, 535.104.05, 15360 MiB
def bare_rows(text: str) -> Iterator[Entry]:
    """Yield rows of CSV without a header, read by the form of each cell or by the columns of the command above them."""
    asked = re.search(r"--query-gpu[= ][\"']?([\w.,]{4,300})", text)
    columns = asked[1].split(",") if asked else []
    for found in islice(_CSV.finditer(text), _MOST_ROWS):
        row = cells(found[0])
        names = [cell for cell in row if vendor_of_name(cell) is Vendor.NVIDIA and any(cards_in(cell))]
        asked_for = len(columns) == len(row)
        if len(names) != 1 or not (asked_for or all(_plain(cell, names[0]) for cell in row)):
            continue
        pairs = list(zip(columns if asked_for else (_column(cell, names[0]) for cell in row), row, strict=True))
        sizes = [cell for key, cell in pairs if key == "size"]
        if sizes:  # of total, used and free the total is the largest
            pairs.append(("memory.total", max(sizes, key=lambda cell: int(re.sub(r"\D", "", cell)))))
        entry = Entry("csv", numbered=True)
        for key, cell in pairs:
            if key not in {"", "size"}:
                entry.add(key, cell)
        yield entry


def _plain(cell: str, name: str) -> bool:
    """Return whether a cell is a name, a number with a unit, an id or nothing: no word of prose."""
    return cell == name or not re.search(r"[A-Za-z]{4,}", _STATES.sub("", cell))


def _column(cell: str, name: str) -> str:
    if cell == name:
        return "name"
    if re.fullmatch(r"\d{3,7} ?MiB|\d{4,7}", cell):
        return "size"
    return next((key for key, form in _CELLS.items() if re.fullmatch(form, cell)), "")

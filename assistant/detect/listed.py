"""Notes what a report lists in any of the usual shapes: GPUs of each list, counted once, and the machine's facts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from assistant.catalog.names import arch_of
from assistant.catalog.vocabulary import complaints, tool_marks
from assistant.detect.adapters import not_a_gpu, note_adapter
from assistant.detect.observations import Notes, Sighting
from assistant.model.machine import Gpu, Vendor
from assistant.parsers.app_reports import program_report
from assistant.parsers.cards import Card, cards_in, is_card
from assistant.parsers.fields import Device, gib
from assistant.parsers.lspci import lspci
from assistant.parsers.machine_facts import facts_of
from assistant.parsers.meaning import devices, fits, model
from assistant.parsers.mentioned import mentioned, rocm_said
from assistant.parsers.nvidia import smi_complaint
from assistant.parsers.printed import printed
from assistant.parsers.shapes import entries
from assistant.parsers.tables import bare_rows, boxes, concise, readings

_SURE = {"cuda_driver_api", "nvidia_driver"}  # facts that nobody writes in passing
_LEAST = 3  # facts that make a report of lines without a GPU that no tool signs (chosen)
_FIELDS = tuple(field for field in Gpu.__struct_fields__ if field != "vendor")


def note_listed(text: str, notes: Notes, claimed: Iterable[str] = ()) -> tuple[str, ...]:
    """Note the GPUs and facts that a text lists; return the tools that it comes from.

    `claimed` are patterns of the lists (by their label) that another reader has read.
    """
    found = [*entries(text), *bare_rows(text)]
    lists = {"boxes": list(boxes(text)), "concise": list(concise(text)), **devices(found, text), **_unnamed(text)}
    read = re.compile("|".join(claimed) or r"(?!)")
    told, keyed, answered = _told(text), facts_of(found), printed(text)
    versions = {**_packages(keyed), **_packages(told), **_packages(answered)}
    facts = {**told, **keyed, **answered, "packages": versions or None}
    facts = {name: value for name, value in facts.items() if value is not None}
    tools = [row for row, mark in tool_marks() if mark.search(text)]
    cards = _together([listed for label, listed in lists.items() if not read.match(label)])
    if not (cards or tools or answered or notes.facts or _is_report(facts)):
        return ()  # mere prose
    source = ", ".join(tool.name for tool in tools) or "report"
    _note_cards(_with_total(cards, text, known=bool(notes.gpus)), source, notes)
    for name, value in facts.items():
        notes.fact(name, value, source)
    for tool in tools:
        notes.fact("os", tool.os, tool.name)
    return tuple(tool.name for tool in tools)


def _packages(facts: dict[str, object]) -> dict[str, str]:
    packages = facts.get("packages")
    return packages if isinstance(packages, dict) else {}


def _is_report(facts: dict[str, object]) -> bool:
    versions = _packages(facts)
    tagged = any("+" in version for version in versions.values())
    return bool(tagged or facts.keys() & _SURE or len(facts) >= _LEAST or len(versions) >= _LEAST - 1)


def _unnamed(text: str) -> dict[str, list[Device]]:
    """Return the GPUs that programs tell by their compute capability or their target alone."""
    capabilities = dict(_CAPABILITY.findall(text))
    apple = [Device(gpu=Gpu(vendor=Vendor.APPLE, integrated=True))] if _MPS.search(text) else []
    agents = _AGENTS.search(text)
    targets = re.findall(r"gfx(?!000)\w+", agents[1]) if agents else []
    return {
        "capabilities": [
            Device(gpu=Gpu(vendor=Vendor.NVIDIA, compute_capability=one)) for one in capabilities.values()
        ],
        "mps": apple,
        "readings": list(readings(text)),
        "agents": [Device(gpu=Gpu(vendor=Vendor.AMD, gfx=one)) for one in targets],
    }


def _together(lists: list[list[Device]]) -> list[Device]:
    """Unite the lists: of each maker as many GPUs as the longest list has, each with what the others tell of it."""
    cards: list[Device] = []
    for vendor in Vendor:
        mine = sorted(
            ([device for device in one if device.gpu.vendor is vendor] for one in lists), key=_telling, reverse=True
        )
        united = mine[0] if mine else []
        for other in mine[1:]:
            united = _united(united, other)
        cards += _paired(united[:1] if vendor is Vendor.APPLE else united)  # a Mac's chip is its only one
    return cards


def _telling(devices: list[Device]) -> tuple[int, int]:
    """Return how many GPUs a list has, and how many of them with a product's name, not with a chip's."""
    return len(devices), sum(bool(device.gpu.name and model(device.gpu.name)) for device in devices)


def _paired(cards: list[Device]) -> list[Device]:
    """Join each target that bears no name with the name that bears no target: `rocminfo | grep` lists them so."""
    targets = [card for card in cards if card.gpu.gfx and not (card.gpu.name or card.bus)]
    named = [card for card in cards if card.gpu.name and not card.gpu.gfx]
    if not targets or len(targets) != len(named):
        return cards
    joined = [replace(name, gpu=replace(name.gpu, gfx=one.gpu.gfx)) for one, name in zip(targets, named, strict=True)]
    return [*(card for card in cards if card not in targets and card not in named), *joined]


def _united(cards: list[Device], others: list[Device]) -> list[Device]:
    """Add what others tell to the cards that they may be, by their address or else the first that fits."""
    cards, free = list(cards), list(range(len(cards)))
    for other in others:
        by_bus = [at for at in free if other.bus and cards[at].bus == other.bus]
        at = next(iter([*by_bus, *(at for at in free if fits(cards[at].gpu, other.gpu))]), None)
        if at is None and all(_differ(card.gpu, other.gpu) for card in cards):
            cards.append(other)
        elif at is not None:
            free.remove(at)
            mine = cards[at].gpu
            more = {field: getattr(other.gpu, field) for field in _FIELDS if getattr(mine, field) is None}
            cards[at] = Device(gpu=replace(mine, **more), bus=cards[at].bus or other.bus, index=cards[at].index)
    return cards


def _differ(one: Gpu, other: Gpu) -> bool:
    """Return whether two GPUs differ in name and target alike, which no spelling explains."""
    told = one.gfx and other.gfx and one.name and other.name
    return bool(told) and one.gfx != other.gfx and model(one.name or "") != model(other.name or "")


def _note_cards(cards: list[Device], source: str, notes: Notes) -> None:
    """Note cards; what another reader saw gets what it lacks, and company where this list has more of its maker."""
    for vendor in Vendor:
        mine = [device for device in cards if device.gpu.vendor is vendor]
        free = [item for item in notes.gpus if item.gpu.vendor is vendor]
        missing = len(mine) - len(free)
        for device in mine:
            same = [item for item in free if device.bus and item.bus == device.bus]
            same += [item for item in free if fits(item.gpu, device.gpu)]
            if same:
                free.remove(same[0])
                _complete(same[0], device, notes)
            elif missing > 0:
                missing -= 1
                note_adapter(device.gpu, source, notes, bus=device.bus)


def _complete(seen: Sighting, device: Device, notes: Notes) -> None:
    more = {field: getattr(device.gpu, field) for field in _FIELDS if getattr(seen.gpu, field) is None}
    notes.gpus[notes.gpus.index(seen)] = Sighting(
        gpu=replace(seen.gpu, **more), source=seen.source, bus=seen.bus or device.bus, revision=seen.revision
    )


# Total VRAM 24564 MB, total RAM 32694 MB
_TOTAL = re.compile(r"Total VRAM (\d{3,7}) ?MB, total RAM (\d{3,8}) ?MB")
# ROCm: version=6.1    cat /opt/rocm/.info/version ⏎ 6.4.1-83    C:\Program Files\AMD\ROCm\6.2\bin    HIP SDK 6.4
_ROCM = re.compile(
    r"(?:\bROCm(?:: version=| version:? \(?)|/opt/rocm\S{0,30}version\n|[\\/](?i:rocm)[\\/-](?=\d[\d.]*[\\/]))"
    r"(\d{1,2}(?:\.|, )\d{1,2}(?:\.\d(?!\d))?)"
)
# __cuda=12.7=0 (conda)    device: 0, GPU Compute Capability: 8.6, Driver API Version: 12.4 (Paddle)
# library=cuda variant=v12 compute=6.1 driver=12.2 name="Tesla P40"   (ollama)
_CUDA = re.compile(
    r"\b__cuda=(\d{2}\.\d)\b|Driver API Version: (\d{2}\.\d)\b"
    r"|(?:library=cuda [^\n]{0,80}driver=|CUDA Driver Version: )(\d{2}\.\d)\b"
    r"|driver on your system is too old \(found version (\d{2}0\d0)\)"
)
# 20:14:03 INFO     ROCm: agents=['gfx1101', 'gfx1036']      (SD.Next)
# $ rocm_agent_enumerator ⏎ gfx000 ⏎ gfx90a ⏎ gfx90a         (gfx000 is the processor)
_AGENTS = re.compile(r"(?:ROCm: agents=\[|rocm_agent_enumerator\n)((?:[' ,]{0,4}gfx\w{3,5}(?:'|\n|$)){1,32})")
# 2024-11-11 16:48:19,205 - root - INFO - Device: mps      (ComfyUI; in its reports "- **Name:** mps")
_MPS = re.compile(r"\bDevice: mps\b|\bName:(?:\*\*)? mps$", re.MULTILINE)
_CAPABILITY = re.compile(r"device: (\d{1,2}), GPU Compute Capability: (\d{1,2}\.\d)\b")
# ls /usr/src ⏎ nvidia-525.147.05    dkms: nvidia/550.120, 6.8.0-45-generic    596.36-desktop-win10-win11-64bit-….exe
# nvidia-driver-535/jammy-updates,now 535.154.05-0ubuntu0.22.04.1 amd64    ii  nvidia-driver-535  535.154.05-0ubuntu0…
# OpenGL version string: 4.6.0 NVIDIA 470.223.02      lab-07     Mon Apr  8 09:12:33 2024  545.23.08   (gpustat)
_NVIDIA = re.compile(
    r"(?:\blib(?:cuda|nvidia-ml)\.so\.|\bNVIDIA |/nvidia-|^nvidia[-/])"
    r"(?:UNIX \S{3,10} (?:Open )?Kernel Module {1,3}(?:for \S{3,10} {1,3})?)?"
    r"(\d{3}\.\d{2,3}(?:\.\d{1,2})?)\b"
    r"|\d\d:\d\d:\d\d 20\d\d {2}(\d{3}\.\d{2,3}(?:\.\d{1,2})?)$"
    r"|(?<![\w.])(\d{3}\.\d\d)-(?:desktop|notebook|quadro)-win"
    r"|(?:nvidia-driver-\d{3}\S{0,40},now |^ii {1,3}nvidia-driver-\S{1,40} {1,40})(\d{3}\.[\d.]{2,7})-"
    r"|/nvidia\.ko[^\n]{0,20}\n(?:[^\n]{0,200}\n){0,4}?version: {1,20}(\d{3}\.[\d.]{2,7})$",
    re.MULTILINE,
)
# torchvision @ https://download.pytorch.org/whl/cu117/torchvision-0.15.2%2Bcu117-cp310-cp310-linux_x86_64.whl
_WHEEL = re.compile(
    r"(?<![\w.-])(torch\w{0,12}|onnxruntime\w{0,20}|xformers)-(\d[\w.]{0,20})(?:\+([\w.]{2,60}))?-cp3(\d{1,2})-"
    r"[^/\s]{5,90}\.whl(?! is not a supported)"
)
# Requirement already satisfied: torch==2.0.1 in /usr/local/lib/python3.10/dist-packages (from xformers) (2.0.1+cu118)
_SATISFIED = re.compile(
    r"Requirement already satisfied: (torch\w{0,12}|numpy|triton|xformers|onnxruntime[\w-]{0,12})\S{0,40} in \S{1,200}"
    r"(?: \(from [^()\n]{1,200}\))? \((\d[\w.+]{1,30})\)"
)
# Linux host 5.15.167.4-microsoft-standard-WSL2 #1 SMP Tue Nov 5 00:21:55 UTC 2024 x86_64 x86_64 x86_64 GNU/Linux
_UNAME = re.compile(r"^Linux \S{1,60} \d\.\d{1,2}\.\d[^\n]{0,200}", re.MULTILINE)
# >>> torch.__version__
# '2.5.1+cu121'
# $ python -c "import torch; print(torch.__version__, torch.cuda.is_available())"
# 2.7.1 True
_TORCH = re.compile(
    r"torch\.__version__(?:\W{1,6}|[^\n]{0,120}\n(?:[^\n]{0,200}(?:Warning|return )[^\n]{0,200}\n){0,3}['\"(]?)"
    r"(\d\.\d{1,3}[\w.+]{0,40})"
)


def _with_total(cards: list[Device], text: str, *, known: bool) -> list[Device]:
    """Give the first card the memory that ComfyUI names for its device."""
    total = _TOTAL.search(text)
    if total and cards and not known and cards[0].gpu.vram_gb is None and cards[0].gpu.vendor is not Vendor.APPLE:
        cards[0] = Device(gpu=replace(cards[0].gpu, vram_gb=gib(total[1])), bus=cards[0].bus)
    return cards


def _told(text: str) -> dict[str, object]:
    """Read what stands in a line of words."""
    total, rocm, torch = _TOTAL.search(text), _ROCM.search(text), _TORCH.search(text)
    kernel, cuda, nvidia = _UNAME.search(text), _CUDA.search(text), _NVIDIA.search(text)
    wheels = {name: f"{version}+{local}" if local else version for name, version, local, _tag in _WHEEL.findall(text)}
    return {
        "os": "linux" if kernel else None,
        "wsl": "microsoft" in kernel[0].lower() if kernel else None,
        "arch": arch_of(kernel[0]) if kernel else None,
        "memory_gb": gib(total[2]) if total else None,
        "rocm_version": rocm[1].replace(", ", ".") if rocm else None,
        "packages": {**({"torch": torch[1]} if torch else {}), **dict(_SATISFIED.findall(text)), **wheels} or None,
        "cuda_driver_api": re.sub(r"0(\d)0$", r".\1", next(filter(None, cuda.groups()))) if cuda else None,
        "nvidia_driver": next(filter(None, nvidia.groups())) if nvidia else None,
    }


def note_complaints(text: str, notes: Notes) -> tuple[str, ...]:
    """Note which tools complain that they see no GPU; return their names."""
    tools = []
    for row, pattern in complaints():
        if found := pattern.search(text):
            line = text[text.rfind("\n", 0, found.start()) + 1 :].partition("\n")[0]
            notes.looked("gpus", row.tool, line)
            notes.fact("os", row.os, row.tool)
            if row.tool == "nvidia-smi" and "nvidia_driver" not in notes.facts:
                notes.fact("nvidia_driver_state", smi_complaint(line), row.tool)
            tools.append(row.tool)
    return tuple(dict.fromkeys(tools))


_SAID = ("os", "wsl", "python", "nvidia_driver", "packages")


def note_said(text: str, notes: Notes) -> set[str]:
    """Note what a text tells in passing, by a prompt, a path or in words; return the names of these facts."""
    said = mentioned(text.lower())
    told = {name: getattr(said, name) for name in _SAID if getattr(said, name) not in (None, {})}
    if rocm := rocm_said(text.lower()):
        told["rocm_version"] = rocm
    if wheel := _WHEEL.search(text):
        told.setdefault("python", f"3.{wheel[4]}")
    for name, value in told.items():
        notes.fact(name, value, "text")
    return set(told)


def note_mentioned(text: str, notes: Notes) -> bool:
    """Note the GPUs that a text names anywhere, each once; for texts in no shape at all."""
    named: dict[str, Card] = {}
    for line in _lines_with_cards(text):
        for card in cards_in(line):
            of_processor = line[: card.end - len(card.name)].endswith("with ")  # AMD Ryzen 7 5800H with Radeon Graphics
            if is_card(card.name) and not of_processor:
                named.setdefault(card.name.lower(), card)
    gpus = [Gpu(vendor=card.vendor, name=card.name) for card in named.values()]
    makers = {gpu.vendor for gpu in gpus}
    said = (gpu for gpu in mentioned(text.lower()).gpus if gpu.vendor not in makers and not (gpus and gpu.gfx))
    gpus += [_as_spelt(gpu, text) for gpu in said]
    if not gpus and notes.facts.get("os") == "macos" and (chip := _CHIP.search(text)):
        gpus = [Gpu(vendor=Vendor.APPLE, name=f"Apple {chip[0]}")]
    several = _SEVERAL.search(text) if len(gpus) == 1 else None
    if several:
        count = (several[1] or several[2]).strip(" x×").lower()
        for _each in range(_COUNTS.get(count) or int(count)):
            notes.gpu(gpus[0], "report")
    if len(gpus) == len(notes.gpus) == 1 and fits(notes.gpus[0].gpu, gpus[0]):
        _complete(notes.gpus[0], Device(gpu=gpus[0]), notes)
    for gpu in gpus[:_MOST_TOLD]:
        if not not_a_gpu("", name=gpu.name or "") and not any(fits(item.gpu, gpu) for item in notes.gpus):
            notes.gpu(gpu, "report")
    return bool(notes.gpus)


def _as_spelt(gpu: Gpu, text: str) -> Gpu:
    """Return a GPU that was found in lower case with the name as the text spells it."""
    at = text.lower().find(gpu.name or "\0")
    spelt = text[at : at + len(gpu.name or "")]
    return replace(gpu, name=spelt) if at >= 0 and spelt.lower() == gpu.name else gpu


# 两块卡，V100    4张A100    双卡4090    dual 3090    2x RTX 4090
_SEVERAL = re.compile(
    r"(?<![\w.])([2-8]|[两双三四八])(?: ?[块张]|卡)"
    r"|\b(dual |two |[2-8] ?[x×] ?)(?=(?:nvidia |amd )?(?:[rg]tx|rx|\d{4}|[avh]\d{2,3})\b)",
    re.IGNORECASE,
)
_CHIP = re.compile(r"(?<![\w.-])M[1-9](?: (?:Pro|Max|Ultra))?(?![\w.-])")  # said of a Mac: "M1, 16GB"
_COUNTS = {"两": 2, "双": 2, "三": 3, "四": 4, "八": 8, "dual": 2, "two": 2}
_MOST_TOLD = 8  # GPUs of one computer that somebody tells in words (chosen)
_LINES_OF_CARDS = re.compile(
    r"(?<!\w)(?:GeForce|Jetson|[RGM]T?X|Radeon|Instinct|Arc\b|Quadro|Tesla|RX |MI\d\d|Iris|U?HD |Vega |Navi "
    r"|[AHLV]\d{2,3}\b)",
    re.ASCII,
)
_MOST_LINES = 2000


def _lines_with_cards(text: str) -> Iterator[str]:
    """Yield the neighbourhood of each word that a card's name may begin with."""
    end = 0
    for count, found in enumerate(_LINES_OF_CARDS.finditer(text)):
        if count > _MOST_LINES:
            return
        if found.start() >= end:
            start = max(text.rfind("\n", max(found.start() - 40, 0), found.start()) + 1, found.start() - 40, 0)
            end = start + len(text[start : start + 200].partition("\n")[0])
            yield text[start:end]


def note_lspci(text: str, notes: Notes) -> bool:
    """Note the adapters that lspci lists; return whether it does."""
    # `lspci` and `lspci -nn` may stand one after the other: of two lines for one address, that with ids counts.
    listed = {device.bus: device for device in sorted(lspci(text) or (), key=lambda one: bool(one.gpu.pci_id))}
    notes.fact("os", "linux" if listed else None, "lspci")
    for device in listed.values():
        note_adapter(device.gpu, "lspci", notes, bus=device.bus)
    return bool(listed)


def note_program(text: str, notes: Notes, *, dumped: bool) -> bool:
    """Note what a program says of its environment; beside a dump, which said the rest, only the system."""
    report, before = program_report(text, known=len(notes.gpus)), len(notes.evidence)
    for name, value in (report or {}).items():
        notes.fact(name, value if not dumped or name == "os" else None, "report")
    return len(notes.evidence) != before

"""Notes what a text says in passing, in no tool's form: a GPU, a system, a Python, a driver, packages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from assistant.detect.adapters import not_a_gpu
from assistant.detect.observations import Notes
from assistant.model.machine import Gpu, Vendor
from assistant.parsers.cards import Card, cards_in, is_card
from assistant.parsers.mentioned import mentioned, rocm_said

_SAID = ("os", "wsl", "python", "nvidia_driver", "packages")
# 两块卡，V100    4张A100    双卡4090    dual 3090    2x RTX 4090
_SEVERAL = re.compile(
    r"(?<![\w.])([2-8]|[两双三四八])(?: ?[块张]|卡)"
    r"|\b(dual |two |[2-8] ?[x×] ?)(?=(?:nvidia |amd )?(?:[rg]tx|rx|\d{4}|[avh]\d{2,3})\b)",
    re.IGNORECASE,
)
_CHIP = re.compile(r"(?<![\w.-])M[1-9](?: (?:Pro|Max|Ultra))?(?![\w.-])")  # said of a Mac: "M1, 16GB"
_COUNTS = {"两": 2, "双": 2, "三": 3, "四": 4, "八": 8, "dual": 2, "two": 2}
_MOST_TOLD = 8  # GPUs of one computer that somebody names in words (chosen)
_LINES_OF_CARDS = re.compile(
    r"(?<!\w)(?:GeForce|Jetson|[RGM]T?X|Radeon|Instinct|Arc\b|Quadro|Tesla|RX |MI\d\d|Iris|U?HD |Vega |Navi "
    r"|[AHLV]\d{2,3}\b)",
    re.ASCII,
)
_MOST_LINES = 2000


def note_said(text: str, notes: Notes) -> set[str]:
    """Note what a text says by a prompt, a path or in words; return the names of these facts."""
    said = mentioned(text.lower())
    found = {name: getattr(said, name) for name in _SAID if getattr(said, name) not in (None, {})}
    if rocm := rocm_said(text.lower()):
        found["rocm_version"] = rocm
    for name, value in found.items():
        notes.fact(name, value, "text")
    return set(found)


def note_mentioned(text: str, notes: Notes) -> bool:
    """Note the GPUs that a text names anywhere, each once; return whether it names any."""
    gpus = [gpu for gpu in _named(text, notes) if not not_a_gpu("", name=gpu.name or "")]
    several = _SEVERAL.search(text) if len(gpus) == 1 else None
    count = (several[1] or several[2]).strip(" x×").lower() if several else "1"
    for gpu in gpus[:_MOST_TOLD] * (_COUNTS.get(count) or int(count)):
        notes.gpu(gpu, "text")
    return bool(gpus)


def _named(text: str, notes: Notes) -> list[Gpu]:
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
        return [Gpu(vendor=Vendor.APPLE, name=f"Apple {chip[0]}")]
    return gpus


def _as_spelt(gpu: Gpu, text: str) -> Gpu:
    """Return a GPU that was found in lower case with the name as the text spells it."""
    at = text.lower().find(gpu.name or "\0")
    spelt = text[at : at + len(gpu.name or "")]
    return replace(gpu, name=spelt) if at >= 0 and spelt.lower() == gpu.name else gpu


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

"""A model by the name that people use: what the table says of it, or the size and the format that stand in the name."""

from __future__ import annotations

import re

from assistant.api import BadInput, Record, _, replace
from assistant_addons.projects.memory import Format, formats
from assistant_addons.projects.tables import load

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
# What says nothing of a model's size; all else behind a known name may be another model: phi-4-multimodal is no phi-4.
_NEUTRAL = re.compile(r"instruct|it|chat|base|hf|gguf|latest|text|v?\d[\d.]*k?")


class Named(Record, frozen=True):
    """A model: of a language model its `parameters`, and its `format` where that is not the usual one.

    Of any other, and where it says more, the `gb` of a card that `by` states for it, and the `least` with which it runs
    at the cost of speed or of bits, 0 where nobody states one.
    """

    key: str
    source: str = ""
    also: tuple[str, ...] = ()
    parameters: int = 0
    format: str = ""
    gb: float = 0
    least: float = 0
    by: str = ""


def find_model(name: str) -> Named:
    """Find a model such as "Qwen/Qwen2.5-7B-Instruct-AWQ" or "sdxl"; raise `BadInput` that asks for the size.

    A name that carries its size is taken for a language model, unless it says that it is none.
    """
    plain = re.sub(r"[\s_:]+", "-", name.strip().rpartition("/")[2].lower()).strip("-")
    kind = next((kind for kind in formats() for word in kind.words if _holds(plain, word)), None)
    for word in sorted(kind.words if kind else (), key=len, reverse=True):
        plain = f"-{plain}-".replace(f"-{word}-", "-").strip("-")
    rows = {key: row for row in load("memory.models", Named) for key in (row.key, *row.also)}
    known = [key for key in rows if plain == key or plain.startswith(f"{key}-")]
    for key in sorted(known, key=len, reverse=True)[:1]:
        if all(map(_NEUTRAL.fullmatch, plain.removeprefix(key).strip("-").split("-"))) or plain == key:
            return _in_format(rows[key], kind)
    words = set(plain.split("-"))
    sizes = {count for word in words if (count := count_of(word, "bm"))}
    if len(sizes) != 1 or words.intersection(load("memory.other_kinds", str)):
        raise BadInput(
            _("How large {name} is, is not known.", name=name),
            hint=_("Give the number of its parameters, for example with --parameters 8B, or its config.json."),
        )
    return _in_format(Named(key=plain, parameters=sizes.pop()), kind)


def _holds(name: str, word: str) -> bool:
    return f"-{word}-" in f"-{name}-"


def _in_format(model: Named, kind: Format | None) -> Named:
    """Return a model in the format that its name states."""
    return replace(model, format=kind.key) if kind else model


def count_of(text: str, units: str = "kmbt") -> int:
    """Read a number of parameters such as 8B, 0.6b, 600M; 0 for what is none, or none of a model."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)\s*([kmbt]?)", text.strip().lower())
    if found is None or (units != "kmbt" and found[2] not in tuple(units)):
        return 0
    number = round(float(found[1]) * _UNITS[found[2]])
    return number if 10**6 <= number <= 10**14 else 0  # from the smallest model to a hundred times the largest

"""A model by the name that people use: what the table says of it, or the size and the format that stand in the name."""

from __future__ import annotations

import re

from assistant.api import BadInput, Record, _, replace
from assistant_addons.projects.memory import Format, formats
from assistant_addons.projects.tables import load

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
# What says nothing of a model's size: uses, a context such as 128k, a date such as 2407, a version of the weights. All
# else behind a known name may be another model: phi-4-multimodal is no phi-4, hunyuanvideo-1.5 is no hunyuanvideo.
_NEUTRAL = re.compile(r"(?:-(?:instruct|it|chat|base|hf|gguf|latest|text|\d+k|\d{4}|v\d[\d.]*|0\.\d|1\.0))*")
_EXPERTS = re.compile(r"\d+e")  # Llama-4-Maverick-17B-128E: of each expert's size the whole does not follow


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

    A name that carries its size is taken for a language model, unless it says that it is none, or counts its experts.
    """
    plain, kind = _plain(name), format_in(name)
    for word in sorted((word for one in formats() for word in one.words), key=len, reverse=True):
        plain = f"-{plain}-".replace(f"-{word}-", "-").strip("-")
    rows = {key: row for row in load("memory.models", Named) for key in (row.key, *row.also)}
    longest = max((key for key in rows if f"{plain}-".startswith(f"{key}-")), key=len, default="")
    if longest and _NEUTRAL.fullmatch(plain.removeprefix(longest)):
        found = rows[longest]
    else:
        found = Named(key=plain, parameters=_size_in(plain, name))
    return replace(found, format=kind.key) if kind else found


def format_in(name: str) -> Format | None:
    """Return the format of weights that a model's name states."""
    plain = _plain(name)
    return next((kind for kind in formats() for word in kind.words if f"-{word}-" in f"-{plain}-"), None)


def _plain(name: str) -> str:
    """Return a name without its owner, in small letters, its words joined by hyphens."""
    return re.sub(r"[\s_:]+", "-", name.strip().rpartition("/")[2].lower()).strip("-")


def _size_in(plain: str, name: str) -> int:
    """Return the one number of parameters that stands in a plain name; raise `BadInput` that asks for it."""
    words = set(plain.split("-"))
    sizes = {count_of(word) for word in words if word.endswith(("b", "m"))} - {0}
    if len(sizes) != 1 or words.intersection(load("memory.other_kinds", str)) or any(map(_EXPERTS.fullmatch, words)):
        raise BadInput(
            _("How large {name} is, is not known.", name=name),
            hint=_("Give the number of its parameters, for example with --parameters 8B, or its config.json."),
        )
    return sizes.pop()


def count_of(text: str) -> int:
    """Read a number of parameters such as 8B, 0.6b, 600M; 0 for what is none, or none of a model."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)\s*([kmbt]?)", text.strip().lower())
    number = round(float(found[1]) * _UNITS[found[2]]) if found else 0
    return number if 10**6 <= number <= 10**14 else 0  # from the smallest model to a hundred times the largest

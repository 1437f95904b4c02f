"""Reads what a text holds as JSON into entries: an object of a list, or one with a number, is a device of its own."""

from __future__ import annotations

import ast
import json
import re
from itertools import islice

from assistant.catalog.vocabulary import plain_key
from assistant.parsers.entry import Entry, names_gpu, with_unit

_MOST_PLACES = 40  # where JSON may begin (chosen)
_LONGEST = 4000  # letters of a dictionary that Python prints on one line (chosen)
_MOST_TOKENS = 50_000  # of JSON that was cut off (chosen)
_DEEPEST = 12  # tools nest less; a hostile text could nest without end
GPU_MODELS = re.compile(r"GPU (\d{1,2}): ([^\n]{3,80})")
_PLACE = re.compile(r"^[ \t]{0,8}(?=[{\[][\s\"'{\[])", re.MULTILINE)
_OWN = re.compile(r"(?:card|gpu|device)?_?\d{1,3}$|SP[A-Z]")


# {"gpu_data": [{"gpu": 0, "asic": {"market_name": "…", "device_id": "0x744c"}, "vram": {"size": {"value": 24560, …}}}]}
# {"card0": {"Card Series": "…", "GFX Version": "gfx9010"}, "system": {"Driver version": "6.3.6"}}
def objects(text: str, found: list[Entry]) -> str:
    """Add the entries of all JSON in a text; return the text without it."""
    decoder, kept, at = json.JSONDecoder(), [], 0
    for tried, start in enumerate(_PLACE.finditer(text)):
        if tried >= _MOST_PLACES:
            break
        if start.end() < at:
            continue
        try:
            value, end = decoder.raw_decode(text, start.end())
        except (ValueError, RecursionError):
            value, end = _python(text, start.end()) or _cut_short(text, start.end())
        if isinstance(value, dict | list) and value:
            kept.append(text[at : start.end()])
            at = end
            _read(value, found, "json", 0)
    return "".join(kept) + text[at:] if at else text


# {'os': 'Linux', 'gpu': 'NVIDIA GeForce RTX 3060', 'vram_gb': 12.0}
def _python(text: str, start: int) -> tuple[object, int] | None:
    """Read a dictionary as Python prints it, on one line."""
    line = text[start : start + _LONGEST].partition("\n")[0]
    if not line.startswith("{'"):
        return None
    try:
        return ast.literal_eval(line), start + len(line)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\[\]{},]')
_ENDS = {"{": "}", "[": "]"}


def _cut_short(text: str, start: int) -> tuple[object, int]:
    """Read JSON that a paste cut off: up to its last whole member, with what is open closed; None for no such text."""
    end = text.find("\n```", start)
    end = len(text) if end < 0 else end
    open_, last, kept = "", start, ""
    for token in islice(_TOKEN.finditer(text, start, end), _MOST_TOKENS):
        if token[0] in _ENDS:
            open_ += _ENDS[token[0]]
        elif token[0] in {"]", "}"}:
            open_ = open_[:-1]
        elif token[0] == ",":
            last, kept = token.start(), open_
        if not open_:
            return None, start
    try:
        return json.loads(text[start:last] + kept[::-1]), end
    except (ValueError, RecursionError):
        return None, start


def _read(value: object, found: list[Entry], label: str, depth: int) -> None:
    if isinstance(value, list) and depth < _DEEPEST:
        for item in value:
            _read(item, found, label, depth + 1)
    elif isinstance(value, dict) and depth < _DEEPEST:
        entry = Entry(label, numbered=True)
        found.append(entry)
        _members(value, entry, found, "", depth)


def _members(values: dict[str, object], entry: Entry, found: list[Entry], path: str, depth: int) -> None:
    """Add the members of an object to its entry, those of the objects within it, too, unless they stand for devices."""
    unit = values.get("unit")
    for key, value in values.items():
        if isinstance(value, dict) and key in {"dependencies", "packages"}:
            entry.add("packages", "\n".join(f"{name}=={version}" for name, version in value.items()))
        elif isinstance(value, dict) and not _OWN.match(key) and depth < _DEEPEST:
            _members(value, entry, found, f"{path} {key}", depth + 1)
        elif isinstance(value, dict):
            _read(value, found, f"{entry.label}/{path}", depth + 1)
        elif isinstance(value, list):
            _names(key, [item for item in value if isinstance(item, str)], entry, found)
            _read([item for item in value if not isinstance(item, str)], found, f"{entry.label}/{key}", depth + 1)
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            models = [name for _number, name in GPU_MODELS.findall(str(value))]
            _names(key, models, entry, found)
            if key == "value":  # of an object with its unit
                section, _blank, name = path.rpartition(" ")
                entry.add(name, f"{value} {unit}" if isinstance(unit, str) else str(value), section)
            elif not models:
                entry.add(key, with_unit(key, str(value)), path)


def _names(key: str, names: list[str], entry: Entry, found: list[Entry]) -> None:
    if len(names) == 1 and names_gpu(plain_key(key)) and not any(names_gpu(one) for one, _value, _raw in entry.pairs):
        entry.add("GPU name", names[0])  # LM Studio: {"gpu": {"gpu_names": ["X"], "vram_recommended_capacity": …}}
        return
    for name in names if names_gpu(plain_key(key)) else ():
        one = Entry(f"{entry.label}/{key}", numbered=True)
        one.add("GPU name", name)
        found.append(one)

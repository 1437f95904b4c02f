"""What a report lists of one device, or of the machine, as keys and values in their order."""

from __future__ import annotations

import re

from assistant.catalog.vocabulary import meaning, plain_key

_UNIT = re.compile(r"[\[(](MiB|MB|GiB|GB|B|bytes)[\])]|_([mg]i?b)$", re.IGNORECASE)


class Entry:
    """What a report lists of one device, or of the machine: keys (as `plain_key` spells them) and values, in order.

    `label` tells which list it stands in: entries of one label are as many devices. `numbered` ones bear a number.
    """

    def __init__(self, label: str = "", *, numbered: bool = False, indent: int = -1) -> None:
        self.label = label
        self.numbered = numbered
        self.indent = indent
        self.pairs: list[tuple[str, str, str]] = []

    def add(self, key: str, value: str, section: str = "") -> None:
        """Note a value under its key; of a key in a section (`VRAM:`, `SIZE:`) both names may be known."""
        plain, value = plain_key(key), value.strip().strip("`\"',").strip()
        joint = plain_key(section) + plain
        if value and (plain or not key) and not value.startswith("amdgcn-"):
            self.pairs.append((joint if section and known(joint) else plain, value, key))

    def has(self, key: str) -> bool:
        """Return whether there is a value under a key already."""
        return any(key == one for one, _value, _raw in self.pairs)


def known(plain: str) -> bool:
    """Return whether a key tells a fact of a GPU or of the machine."""
    return meaning("gpu", plain) is not None or meaning("machine", plain) is not None


def names_gpu(plain: str) -> bool:
    """Return whether a key tells a GPU's name."""
    found = meaning("gpu", plain)
    return found is not None and found[0] == "name"


def with_unit(key: str, value: str) -> str:
    """Give a bare number the unit of its key: `memory.total [MiB]`, `VRAM Total Memory (B)`, `vram_gb`."""
    unit = _UNIT.search(key)
    return f"{value} {unit[1] or unit[2]}" if unit and value[-1:].isdigit() else value

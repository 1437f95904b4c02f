"""What several readers share: a named field of a block, and sizes."""

from __future__ import annotations

import re


def field(block: str, name: str) -> str:
    """Give what follows a name (a pattern) on its line: `Name: X`, `Name = X` or `Name   X`; "" for nothing."""
    found = re.search(rf"^[ \t]{{0,40}}{name}[ \t]{{0,80}}[:=]?[ \t]{{1,80}}(\S[^\n]{{0,100}})$", block, re.MULTILINE)
    return found[1].strip() if found else ""


def gib(mib: str | float | None) -> float | None:
    """Turn MiB into GiB; none and zero tell nothing."""
    return round(float(mib) / 1024, 1) if mib and float(mib) else None

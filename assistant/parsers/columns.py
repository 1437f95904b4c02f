"""Tells the header of a table by its keys, and cuts the rows below it: CSV, or columns that stand apart."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable

from assistant.catalog.vocabulary import plain_key
from assistant.parsers.entry import known

Cut = Callable[[str], "list[str] | None"]
_COUNTED = {"gpu", "device", "id", "index", "node"}  # columns that number the rows
_KINDS = {"gpu", "cpu"}  # as a value: "Device Type   GPU"


def cells(line: str) -> list[str]:
    """Return the cells of one line of CSV."""
    row = next(csv.reader([line.replace("\r", " ")], skipinitialspace=True), [])  # csv takes "\r" for the row's end
    return [cell.strip() for cell in row]


def header(line: str) -> tuple[list[str], Cut] | None:
    """Return the columns that a line heads, and what cuts the rows; None for a line that heads none."""
    text = line.strip()
    names = cells(text) if "," in text else []
    keys = [plain_key(name) for name in names]
    numbers = re.search(r"\d", re.sub(r"\[[^\]]{0,20}\]", "", text))
    if len(keys) > 1 and sum(map(known, keys)) >= max(1, len(keys) // 4) and ("device" in keys or not numbers):
        return names, _csv_row(len(names))
    if ":" in text or "=" in text:
        return None
    # Columns stand two blanks or more apart, but PowerShell's may stand one apart.
    for pattern, least in ((r"\S+", len(text.split())), (r"\S+(?: \S+)*", 2)):
        words = list(re.finditer(pattern, line))
        keys = [plain_key(word[0]) for word in words]
        counted = sum(key in _COUNTED or known(key) for key in keys)
        if len(keys) > 1 and counted >= least and keys[-1] not in _KINDS:
            return [word[0] for word in words], _aligned(words)
    return None


def _csv_row(count: int) -> Cut:
    def row(line: str) -> list[str] | None:
        found = cells(line)
        return found if len(found) == count else None

    return row


def _aligned(heads: list[re.Match[str]]) -> Cut:
    """Return what cuts a row by the columns that stand below these heads, aligned to the left or to the right."""
    spans = [head.span() for head in heads]

    def row(line: str) -> list[str] | None:
        if not re.sub(r"[-\s=─]", "", line):
            return [""] * len(spans)
        parts = re.split(r" {2,}|\t+", line.strip())
        if len(parts) == len(spans):
            return parts
        cells = [""] * len(spans)
        for word in re.finditer(r"\S+", line):
            over = next(
                (at for at, (start, end) in enumerate(spans) if word.start() < end and word.end() > start), None
            )
            if over is None:
                over = max((at for at, (start, _end) in enumerate(spans) if start <= word.start()), default=0)
            cells[over] = f"{cells[over]} {word[0]}".strip()
        return cells if sum(map(bool, cells)) > 1 else None

    return row

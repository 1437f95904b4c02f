"""Tells whether what an installer unpacked is whole: its cache may hold files that a power cut left empty.

uv links files from its cache of unpacked wheels and does not look at them again, so a damaged one would come into every
environment from then on.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

__all__ = ["incomplete"]


def incomplete(folder: Path) -> list[str]:
    """Name the files below an environment's folder that lack, or have another size than their RECORD says (PEP 376).

    An empty RECORD stands for itself. Each line of one reads `torch/version.py,sha256=gHo2…,270`.
    """
    wrong = []
    for record in folder.glob("[Ll]ib*/**/*.dist-info/RECORD"):
        place = str(record.parents[1])
        rows = [row for row in csv.reader(record.read_text(encoding="utf-8").splitlines()) if row]
        sized = [(row[0], int(row[2])) for row in rows if len(row) > 2 and row[2].isdecimal()]  # noqa: PLR2004
        wrong += [name for name, size in sized if _size(f"{place}/{name}") != size] if rows else [str(record)]
    return wrong


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - a Path for each of 20,000 files would cost seconds
    except OSError:
        return -1

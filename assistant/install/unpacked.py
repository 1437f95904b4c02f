"""Tells whether what an installer unpacked is whole: its cache may hold files that a power cut left empty.

uv links files from its cache of unpacked wheels and does not look at them again, so a damaged one would come into every
environment from then on. The wheels themselves, whose hashes were checked, say how large each file is.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from assistant.install.site import package_folders


def contents(wheels: Iterable[Path]) -> dict[str, int]:
    """Give the sizes of the files that go into the packages' folder as they are.

    Scripts and data go elsewhere, and RECORD grows.
    """
    sizes: dict[str, int] = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                top, _slash, rest = entry.filename.partition("/")
                if not (entry.is_dir() or top.endswith(".data") or (top.endswith(".dist-info") and rest == "RECORD")):
                    sizes[entry.filename] = entry.file_size
    return sizes


def incomplete(folder: Path, promised: Mapping[str, int]) -> list[str]:
    """Name the files that lack in the folder of an environment, or have another size there than was promised."""
    places = [str(place) for place in package_folders(folder)]
    return [name for name, size in promised.items() if not any(_size(f"{place}/{name}") == size for place in places)]


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - a Path for each of 20,000 files would cost seconds
    except OSError:
        return -1

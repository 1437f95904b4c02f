"""What lies in an environment's folder of packages, held against what the packages' own lists say.

RECORD names each file of a package with its hash: https://packaging.python.org/specifications/recording-installed-packages/.
"""

from __future__ import annotations

import csv
import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.utils import canonicalize_name

from assistant.host.files import read_plain

FILE_BYTES = 4 << 30
OURS = {"beside.pth", "_virtualenv.py", "_virtualenv.pth", "__pycache__"}  # of `Scene.venv` and of uv


def altered(environment: Path, name: str) -> bool:
    """Return whether a package is not installed, or not as its list says, or something lies beside all packages."""
    folder = packages_of(environment)
    lists = dict(_lists(folder)) if folder else {}
    mine = lists.get(canonicalize_name(name))
    if folder is None or mine is None:
        return True
    known = {Path(row).parts[0] for rows in lists.values() for row in rows}
    foreign = {path.name for path in folder.iterdir() if _holds_something(path)} - known - OURS
    return bool(foreign) or any(_differs(environment, folder / path, promised) for path, promised in mine.items())


def _holds_something(path: Path) -> bool:
    """Return whether something is more than the empty folders that an uninstalled package leaves."""
    return path.is_symlink() or not path.is_dir() or any(not one.is_dir() for one in path.rglob("*"))


def consists_of(environment: Path, name: str, files: Mapping[str, str]) -> bool:
    """Return whether a package is installed as its list says, and these files of its wheel are unchanged."""
    folder = packages_of(environment)
    if folder is None or altered(environment, name):
        return False
    try:
        return all(read_plain(folder / path).decode() == text for path, text in files.items())
    except (OSError, ValueError):
        return False


def packages_of(environment: Path) -> Path | None:
    """Return an environment's folder of packages."""
    places = (*environment.glob("lib/python3*/site-packages"), environment / "Lib" / "site-packages")
    return next((place for place in places if place.is_dir() and not place.is_symlink()), None)


def _lists(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each package with its files and their hashes."""
    for about in folder.glob("*.dist-info"):
        try:
            rows = csv.reader(read_plain(about / "RECORD").decode().splitlines())
            yield canonicalize_name(about.name.partition("-")[0]), {row[0]: row[1] for row in rows if len(row) > 1}
        except (OSError, ValueError):
            continue


def _differs(environment: Path, path: Path, promised: str) -> bool:
    if not promised:  # of RECORD itself, and of what an installer makes
        return not any(part.endswith(".dist-info") or part == "__pycache__" for part in path.parts)
    path = path.resolve()
    if not path.is_relative_to(environment.resolve()):
        return True
    kind, _sign, value = promised.partition("=")
    try:
        content = read_plain(path, FILE_BYTES)
        found = urlsafe_b64encode(hashlib.new(kind, content).digest()).rstrip(b"=").decode()
    except (OSError, ValueError):
        return True
    return found != value

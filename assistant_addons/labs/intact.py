"""Whether an environment holds what installers put there, and nothing that was written by hand."""

from __future__ import annotations

import csv
import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from assistant.api import Text, _
from assistant.api.system import read_regular

PACKAGE_FILE_BYTES = 4 << 30
Original = Callable[[str, str], Mapping[str, str] | None]


class _Installed(NamedTuple):
    name: str
    version: str
    files: dict[str, str]  # with their hashes, as RECORD lists them


def fault_of(environment: Path, ours: Mapping[str, str], original: Original) -> Text:
    """Return what in an environment no installer has written, as a sentence; "" for nothing.

    `ours` are the lab's own files among the packages, with their text. `original` returns the files of a package that
    the lab offers, and `None` for a version that it does not.
    """
    folder = packages_of(environment)
    if folder is None:
        return _("The environment of the lab is gone: start the lab again.")
    installed = list(_installed(folder))
    listed = {Path(row).parts[0] for one in installed for row in one.files} | ours.keys() | {"__pycache__"}
    foreign = sorted(path.name for path in folder.iterdir() if path.name not in listed and _holds_something(path))
    foreign += [name for name, text in ours.items() if not _reads(folder / name, text)]
    if foreign:
        return _("{file} lies among the packages, and no installer has put it there.", file=foreign[0])
    promised: dict[str, set[str]] = {}  # two packages may write one file: the last that was installed has won
    for one in installed:
        for path, written in one.files.items():
            promised.setdefault(path, set()).add(written)
    for one in installed:
        offered = original(one.name, one.version)
        if offered is None:
            return _("This lab does not offer {name} {version}.", name=one.name, version=one.version)
        changed = (path for path in one.files if all(_differs(environment, folder / path, it) for it in promised[path]))
        if any(changed) or not all(_reads(folder / path, text) for path, text in offered.items()):
            return _("The files of {name} are not as its makers built them: install it anew.", name=one.name)
    return ""


def packages_of(environment: Path) -> Path | None:
    """Return an environment's folder of packages."""
    places = (*environment.glob("lib/python3*/site-packages"), environment / "Lib" / "site-packages")
    return next((place for place in places if place.is_dir() and not place.is_symlink()), None)


def _installed(folder: Path) -> Iterator[_Installed]:
    """Yield each package; one without a list of files has none."""
    for about in sorted(folder.glob("*.dist-info")):
        name, _, version = about.name.removesuffix(".dist-info").partition("-")
        try:
            rows = csv.reader(read_regular(about / "RECORD").decode().splitlines())
            yield _Installed(canonicalize_name(name), version, {row[0]: row[1] for row in rows if len(row) > 1})
        except (OSError, ValueError):
            yield _Installed(canonicalize_name(name), version, {f"{about.name}/RECORD": "missing="})


def _holds_something(path: Path) -> bool:
    """Return whether something is more than the empty folders that an uninstalled package leaves."""
    return path.is_symlink() or not path.is_dir() or any(not one.is_dir() for one in path.rglob("*"))


def _reads(path: Path, text: str) -> bool:
    try:
        return read_regular(path).decode() == text
    except (OSError, ValueError):
        return False


def _differs(environment: Path, path: Path, promised: str) -> bool:
    if "__pycache__" in path.parts:  # which Python writes anew; some wheels list theirs all the same
        return False
    if not promised:  # of RECORD itself, and of what an installer makes
        return not any(part.endswith(".dist-info") for part in path.parts)
    path = path.resolve()
    if not path.is_relative_to(environment.resolve()):
        return True
    kind, _sign, value = promised.partition("=")
    try:
        content = read_regular(path, PACKAGE_FILE_BYTES)
        found = urlsafe_b64encode(hashlib.new(kind, content).digest()).rstrip(b"=").decode()
    except (OSError, ValueError):
        return True
    return found != value

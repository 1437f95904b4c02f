"""Changes an environment by renames alone, each of which can be taken back: old files step aside, new ones step in.

Nothing is copied and nothing is written into a file that was there, so it costs the same for any size, the old files
come back as the very same files, and a kill between two renames leaves nothing that the next start cannot undo.
"""

from __future__ import annotations

import csv
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from assistant.model.record import Record

__all__ = ["Change", "change_for", "put_back", "recorded_files", "swap"]

CACHE = "__pycache__"


class Change(Record, frozen=True):
    """What goes and what comes: files and whole folders, relative to the environment, "/" between parts."""

    goes: tuple[str, ...] = ()
    comes: tuple[str, ...] = ()


def recorded_files(record: str) -> tuple[str, ...]:
    """Read the paths of a distribution's RECORD (PEP 376), relative to the folder that its `.dist-info` is in."""
    return tuple(row[0] for row in csv.reader(record.splitlines()) if row and row[0])


def change_for(prefix: Path, staged: Path, old: Iterable[str]) -> Change:
    """List what has to move so that `staged` takes the place of the files `old` (paths relative to the environment).

    Modules take their compiled twins along; a file that is nobody's but stands where a new one comes steps aside too.
    A folder of which nothing stays, or that is not there yet, moves as a whole.
    """
    coming = list(_below(staged))
    going = {name for name in (*old, *coming) if os.path.lexists(f"{prefix}/{name}")}  # a Path each would cost seconds
    going |= _twins(prefix, {*going, *coming})
    goes = list(_gathered(prefix, "", going, {parent for name in going for parent in _parents(name)})[0])
    comes = list(_arriving(prefix, staged, "", set(goes)))
    return Change(goes=tuple(sorted(goes)), comes=tuple(sorted(comes)))


def swap(change: Change, prefix: Path, staged: Path, aside: Path) -> None:
    """Carry the change out; folders that the old files leave empty go as well."""
    for name in change.goes:
        if os.path.lexists(prefix / name):  # two names may lead to one file where folders are links
            _move(name, prefix, aside)
    for name in change.comes:
        _move(name, staged, prefix)
    _prune(change.goes, prefix)


def put_back(change: Change, prefix: Path, staged: Path, aside: Path) -> None:
    """Take the change back, however far it came; done twice, the second time finds nothing to do."""
    for name in change.comes:
        if not os.path.lexists(staged / name) and os.path.lexists(prefix / name):
            _move(name, prefix, staged)
    for name in change.goes:
        if os.path.lexists(aside / name):
            if (prefix / name).is_dir():  # made since, by a Python that compiled modules
                shutil.rmtree(prefix / name)
            _move(name, aside, prefix)
    for twin in _twins(prefix, set(change.comes)):
        if not {twin, *_parents(twin)} & {*change.goes}:
            (prefix / twin).unlink()
    _prune([f"{Path(name).parent.as_posix()}/{CACHE}/any" for name in change.comes] + [*change.comes], prefix)


def _gathered(prefix: Path, folder: str, going: set[str], parents: set[str]) -> tuple[list[str], bool]:
    """List what goes from a folder, and tell whether nothing stays in it: such a folder goes as one."""
    found: list[str] = []
    nothing_stays = bool(folder)
    with os.scandir(prefix / folder) as entries:
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if name in going:
                found.append(name)
            elif name in parents:
                inner, whole = _gathered(prefix, name, going, parents)
                whole = whole and not entry.is_symlink()
                found += [name] if whole else inner
                nothing_stays &= whole
            else:
                nothing_stays = False
    return found, nothing_stays


def _arriving(prefix: Path, staged: Path, folder: str, goes: set[str]) -> Iterator[str]:
    """List what comes into a folder that stays; one that is not there, or goes, comes as a whole."""
    with os.scandir(staged / folder) as entries:
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if not folder and entry.name == ".lock":  # the installer's own
                continue
            if entry.is_dir(follow_symlinks=False) and name not in goes and os.path.lexists(prefix / name):
                yield from _arriving(prefix, staged, name, goes)
            else:
                yield name


def _twins(prefix: Path, names: set[str]) -> set[str]:
    """List the compiled twins of modules."""
    found = set()
    for folder in {name.rpartition("/")[0] for name in names if name.endswith(".py")}:
        cache = f"{folder}/{CACHE}" if folder else CACHE
        with suppress(OSError):
            for twin in os.listdir(prefix / cache):  # noqa: PTH208 - names are all we need
                module = f"{twin.partition('.')[0]}.py"
                if twin.endswith(".pyc") and (f"{folder}/{module}" if folder else module) in names:
                    found.add(f"{cache}/{twin}")
    return found


def _move(name: str, source: Path, goal: Path) -> None:
    """Rename a file or a folder; folders that are missing above it get the modes of those at the source."""
    _folders_like(PurePosixPath(name).parent, source, goal)
    (source / name).replace(goal / name)


def _folders_like(name: PurePosixPath, source: Path, goal: Path) -> None:
    if (goal / name).is_dir():
        return
    if name.parts:
        _folders_like(name.parent, source, goal)
    (goal / name).mkdir(exist_ok=True)
    with suppress(OSError):
        (goal / name).chmod(stat.S_IMODE((source / name).stat().st_mode))


def _prune(names: Iterable[str], prefix: Path) -> None:
    """Remove folders that held these and hold nothing now."""
    for folder in sorted({parent for name in names for parent in _parents(name)}, key=len, reverse=True):
        with suppress(OSError):
            (prefix / folder).rmdir()


def _parents(name: str) -> Iterator[str]:
    while name := name.rpartition("/")[0]:
        yield name


def _below(folder: Path, inside: str = "") -> Iterator[str]:
    with os.scandir(folder / inside) as entries:
        for entry in entries:
            name = f"{inside}/{entry.name}" if inside else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _below(folder, name)
            elif name != ".lock":
                yield name

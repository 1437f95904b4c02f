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
    """Paths relative to the environment, "/" between parts: files that go, files that come, folders that come."""

    goes: tuple[str, ...] = ()
    comes: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


def recorded_files(record: str) -> tuple[str, ...]:
    """Read the paths of a distribution's RECORD (PEP 376), relative to the folder that its `.dist-info` is in."""
    return tuple(row[0] for row in csv.reader(record.splitlines()) if row and row[0])


def change_for(prefix: Path, staged: Path, old: Iterable[Path]) -> Change:
    """List what has to move so that `staged` takes the place of the files `old` (each with its compiled twins).

    A file that is nobody's but stands where a new one comes steps aside too.
    """
    comes = tuple(_below(staged, staged))
    going = {path for path in old if os.path.lexists(path)}
    going |= {twin for path in [*going, *(prefix / name for name in comes)] for twin in _compiled(path)}
    goes = {_relative(path, prefix) for path in going} | {name for name in comes if os.path.lexists(prefix / name)}
    parents = {str(parent) for name in comes for parent in PurePosixPath(name).parents} - {"."}
    folders = sorted(parent for parent in parents if not (prefix / parent).exists())
    return Change(goes=tuple(sorted(goes)), comes=tuple(sorted(comes)), folders=tuple(folders))


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
            _move(name, aside, prefix)
    for name in change.comes:
        for twin in _compiled(prefix / name):
            if _relative(twin, prefix) not in change.goes:
                twin.unlink()
    for name in change.folders:  # whatever is in a folder that was not there before came with us
        shutil.rmtree(prefix / name, ignore_errors=True)
    _prune(change.comes, prefix)


def _move(name: str, source: Path, goal: Path) -> None:
    """Rename one file; folders that are missing at the goal get the modes of those at the source."""
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
    """Remove folders that held these files and hold nothing now."""
    parents = {prefix / parent for name in names for parent in PurePosixPath(name).parents if parent.parts}
    for folder in sorted(parents, key=lambda path: len(path.parts), reverse=True):
        with suppress(OSError):
            folder.rmdir()


def _below(folder: Path, root: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _below(Path(entry.path), root)
            elif not (folder == root and entry.name == ".lock"):  # the installer's own
                yield Path(entry.path).relative_to(root).as_posix()


def _compiled(path: Path) -> list[Path]:
    """List a module's compiled twins."""
    if path.suffix != ".py":
        return []
    return list((path.parent / CACHE).glob(f"{_escaped(path.stem)}.*.pyc"))


def _escaped(name: str) -> str:
    return name.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]")


def _relative(path: Path, prefix: Path) -> str:
    return Path(os.path.normpath(path)).relative_to(prefix).as_posix()

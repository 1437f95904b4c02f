"""Changes an environment by renames alone, each of which can be undone: old files step aside, new ones step in.

Nothing is copied and nothing is written into a file that was there, so it costs the same for any size, the old files
come back as the very same files, and a kill between two renames leaves nothing that the next start cannot undo.
"""

from __future__ import annotations

import csv
import itertools
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from assistant.host.files import discard, discard_folder, may_write, patiently
from assistant.i18n import _
from assistant.model.errors import WorkFailed
from assistant.model.finding import Finding, Severity
from assistant.model.record import Record

CACHE = "__pycache__"
KEPT = "assistant-set-aside"
INSTALLERS_LOCK = ".lock"  # `uv pip install --prefix` leaves it in that folder (uv 0.13)
Identity = tuple[int, int, int]  # st_ino, st_size, st_mtime_ns


class Change(Record, frozen=True):
    """What goes and what comes: files and whole folders, relative to the environment, "/" between parts.

    `spared` are files among what goes that belong to no package: the user's own, in the way of one that comes.
    """

    goes: tuple[str, ...] = ()
    comes: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()


def recorded_files(record: str) -> tuple[str, ...]:
    """Read the paths of a distribution's RECORD (PEP 376), relative to the folder that its `.dist-info` is in."""
    return tuple(row[0] for row in csv.reader(record.splitlines()) if row and row[0])


def change_for(prefix: Path, staged: Path, old: Iterable[str], ours: Iterable[str] = ()) -> Change:
    """List what has to move so that `staged` takes the place of the files `old` (paths relative to the environment).

    Modules take their compiled twins along; a file of no package that stands where a new one comes steps aside too, and
    is spared unless it is one of `ours`. A folder of which nothing stays, or that is not there, moves as a whole.
    """
    old = set(old)
    coming = [name for name, _entry in _files(staged) if name != INSTALLERS_LOCK]
    going = {name for name in (*old, *coming) if os.path.lexists(f"{prefix}/{name}")}  # a Path each would cost seconds
    spared = {name for name in going - old - set(ours) if not name.endswith(".pyc")}
    going |= _twins(prefix, {*going, *coming})
    goes = list(_gathered(prefix, "", going, {parent for name in going for parent in _parents(name)})[0])
    comes = list(_arriving(prefix, staged, "", set(goes)))
    return Change(goes=tuple(sorted(goes)), comes=tuple(sorted(comes)), spared=tuple(sorted(spared)))


def swap(change: Change, prefix: Path, staged: Path, aside: Path) -> None:
    """Carry the change out; folders that the old files leave empty go as well."""
    for name in change.goes:
        if os.path.lexists(prefix / name):  # two names may lead to one file where folders are links
            _move(name, prefix, aside)
    for name in change.comes:
        _move(name, staged, prefix)
    _prune(change.goes, prefix)


def put_back(
    change: Change, prefix: Path, staged: Path, aside: Path, known: Mapping[str, Identity]
) -> tuple[Path, ...]:
    """Undo the change, however far it came; done twice, the second time finds nothing to do.

    What stands in the way or among the new files and is not in `known` was made by somebody else since: it is moved
    into a folder of the target, whose path is returned, and never deleted. Raises `WorkFailed` where a folder has
    become a link that leads out of the environment.
    """
    if change == Change():
        return ()
    kept = _Kept(prefix)
    check_inside(prefix, (*change.comes, *change.goes))
    for name in change.comes:
        if not os.path.lexists(staged / name) and os.path.lexists(prefix / name):
            _move(name, prefix, staged)
    for name in _foreign(staged, known):
        kept.take(staged, name)
    for name in change.goes:
        if os.path.lexists(aside / name):
            _make_way(prefix, name, kept)
            _move(name, aside, prefix)
    for twin in _twins(prefix, set(change.comes)):
        if not {twin, *_parents(twin)} & {*change.goes}:
            discard(prefix / twin)
    _prune([f"{Path(name).parent.as_posix()}/{CACHE}/any" for name in change.comes] + [*change.comes], prefix)
    return kept.folders


def spare(change: Change, prefix: Path, aside: Path) -> tuple[Path, ...]:
    """Move the user's own files from among what went into a folder of the target, whose path is returned."""
    kept = _Kept(prefix)
    for name in change.spared:
        if os.path.lexists(aside / name):
            kept.take(aside, name)
    return kept.folders


def _make_way(prefix: Path, name: str, kept: _Kept) -> None:
    """Clear the place of what comes back: what Python compiled since can go, all else is kept."""
    if _is_only_compiled(prefix / name):
        discard_folder(prefix / name)
    elif os.path.lexists(prefix / name):
        kept.take(prefix, name)


class _Kept:
    """Where what is not ours goes: one folder in the target, made when it is needed."""

    def __init__(self, prefix: Path) -> None:
        self._prefix = prefix
        self._folder: Path | None = None

    def take(self, source: Path, name: str) -> None:
        """Move a file or a folder in, by its path below `source`."""
        if self._folder is None:
            first = self._prefix / f"{KEPT}-{time.strftime('%Y%m%d-%H%M%S')}"
            numbered = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
            self._folder = next(one for one in itertools.chain([first], numbered) if not os.path.lexists(one))
            self._folder.mkdir()
        _move(name, source, self._folder)

    @property
    def folders(self) -> tuple[Path, ...]:
        return (self._folder,) if self._folder else ()


def identities(folder: Path) -> dict[str, Identity]:
    """Return the identity of each file and link below a folder, by its path there: inode, size, mtime in ns."""
    return {name: _identity(entry) for name, entry in _files(folder)}


def _foreign(staged: Path, known: Mapping[str, Identity]) -> list[str]:
    """List what lies below a folder and was not put there by us; of a folder that we did not make, the folder alone.

    Compiled modules are nobody's work: Python makes them whenever it pleases.
    """
    ours = {parent for name in known for parent in _parents(name)}
    found: list[str] = []
    for name, entry in _entries(staged, lambda folder: folder in ours or folder.endswith(CACHE)):
        compiled = name.rpartition("/")[0].endswith(CACHE) and name.endswith(".pyc")
        if entry.is_dir(follow_symlinks=False):
            found += [name] if name not in ours and entry.name != CACHE else []
        elif not compiled and known.get(name) != _identity(entry):
            found.append(name)
    return found


def _identity(entry: os.DirEntry[str]) -> Identity:
    found = os.lstat(entry)  # on Windows an entry itself knows no inode, and may tell an old size
    return found.st_ino, found.st_size, found.st_mtime_ns


def _entries(
    folder: Path, enters: Callable[[str], bool] = lambda _name: True, inside: str = ""
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Walk what is below a folder, by paths relative to it; a folder comes before its content, and is entered if so."""
    if not (folder / inside).is_dir():
        return
    with os.scandir(folder / inside) as entries:
        for entry in entries:
            name = f"{inside}/{entry.name}" if inside else entry.name
            yield name, entry
            if entry.is_dir(follow_symlinks=False) and enters(name):
                yield from _entries(folder, enters, name)


def _files(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    return ((name, entry) for name, entry in _entries(folder) if not entry.is_dir(follow_symlinks=False))


def _is_only_compiled(path: Path) -> bool:
    """Return whether a folder holds nothing but compiled modules."""
    if path.is_symlink() or not path.is_dir():
        return False
    return all(name.endswith(".pyc") and CACHE in (path.name, *name.split("/")[:-1]) for name, _entry in _files(path))


def is_below(name: str) -> bool:
    """Return whether a name is relative and normal, so that it can only mean something below the target."""
    parts = name.split("/")
    odd = "\\" in name or ":" in parts[0] if os.name == "nt" else False
    return not (odd or "\0" in name or any(part in {"", ".", ".."} for part in parts))


def check_inside(prefix: Path, names: Iterable[str]) -> None:
    """Raise `WorkFailed` where a folder that holds one of the names is, by a link, not in the environment.

    A link within it is fine (`lib64` leads to `lib`).
    """
    root = os.path.realpath(prefix)
    for parent in {name.rpartition("/")[0] for name in names} - {""}:
        real = os.path.realpath(prefix / parent)
        if not Path(real).is_relative_to(root):
            raise WorkFailed(
                _(
                    "{path} leads out of the environment to {real}; nothing is moved through it.",
                    path=prefix / parent,
                    real=real,
                ),
                hint=_("Choose another environment, or a new one.", option="--target"),
            )


def check_movable(prefix: Path, names: Iterable[str]) -> None:
    """Raise `WorkFailed` when a folder that holds one of the names cannot be written, or no rename reaches it.

    Renames do not leave a file system, and none is made through a link that leads out of the environment.
    """
    names = tuple(names)
    check_inside(prefix, names)
    device = prefix.stat().st_dev
    for folder in {prefix, *((prefix / name).parent for name in names)}:
        asked = folder == prefix or os.name != "nt"  # there it is slow, and thousands of folders have one owner
        if asked and folder.is_dir() and not may_write(folder):
            raise WorkFailed(
                _("You don't have permission to write to {path}.", path=folder),
                hint=_("Choose a new environment.", option="--target new"),
            )
        if folder.is_dir() and folder.stat().st_dev != device:
            raise WorkFailed(
                _(
                    "{path} is on another file system than the environment, so nothing can be moved into it safely.",
                    path=folder,
                ),
                hint=_("Choose a new environment.", option="--target new"),
            )


def _gathered(prefix: Path, folder: str, going: set[str], parents: set[str]) -> tuple[list[str], bool]:
    """List what goes from a folder, and whether nothing stays in it: such a folder goes as one."""
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
            if name == INSTALLERS_LOCK:
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
    patiently(lambda: (source / name).replace(goal / name))


def set_aside(folder: Path) -> Finding:
    """Return what is told of files that were in the way and are not ours."""
    text = _("Files that were not part of the installation have been moved to {path}.", path=folder)
    return Finding(key="files-set-aside", severity=Severity.INFO, text=text)


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

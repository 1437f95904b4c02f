"""An installation as a transaction: a journal on disk before the first change, one writer, and a way back.

In the target stands a work folder (`WORK`) with the lock, the journal, what is to come (`staged`) and what went
(`aside`); it is on the target's own file system, so each change is a rename. A pointer in the user's state folder
leads to it, so that the next start finds what was killed. As long as the journal is there, everything is to be taken
back: deleting it is the commit, and needs no room on a full disk. Who cancels does not wait for files to be deleted:
they are moved to where the pointer says (`gone`), and another process deletes them, then the pointer.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from assistant.host.folders import user_state
from assistant.host.lock import Holder, Lock
from assistant.host.process import alive, leave_running, uninterrupted
from assistant.i18n import _
from assistant.install.kernel import remove_kernel
from assistant.install.swap import Change, put_back
from assistant.model.errors import BadInput, Cancelled, WorkFailed
from assistant.model.record import Record, from_json, replace, to_json

__all__ = ["WORK", "Journal", "Pointer", "Transaction", "pointers", "recover", "remove", "scratch", "transaction"]

WORK = ".assistant-install"
LOCK, JOURNAL = "lock", "journal.json"
DELETE = """
import os, shutil, sys
gone, pointer = sys.argv[1:]
shutil.rmtree(gone, ignore_errors=True)
os.path.lexists(gone) or os.unlink(pointer)
"""
Kind = Literal["new", "existing"]


class Journal(Record, frozen=True, kw_only=True):
    """What an installation is about to do: fill the whole target (`new`), or carry out a change where something stands.

    `kernel` names a kernelspec that was not there before.
    """

    schema: Literal[1] = 1
    kind: Kind
    change: Change = Change()
    kernel: str = ""


class Pointer(Record, frozen=True):
    """Where an installation was begun, which folders were made for it, outermost first, and where its rubbish goes."""

    target: str
    made: tuple[str, ...] = ()
    gone: str = ""


class Transaction:
    """One installation under way, whose lock is held: installers that run in it hold it as well."""

    def __init__(self, target: Path, lock: Lock) -> None:
        self.target, self.lock = target, lock
        self.work = target / WORK
        self.staged, self.aside = self.work / "staged", self.work / "aside"
        self.gone: Path | None = None  # where to move what is to be deleted; None: delete it at once
        self.journal = read_journal(self.work)

    def begin(self, kind: Kind) -> None:
        """Write the journal's first words; what a killed run left here is taken back before."""
        self.undo()
        _empty(self.work, {LOCK})
        self._write(Journal(kind=kind))

    def note(self, change: Change, kernel: str = "") -> None:
        """Write what comes next, before it is done."""
        if self.journal:
            self._write(replace(self.journal, change=change, kernel=kernel))

    def undo(self) -> None:
        """Put everything back as it was; stopped midway, it can be done again."""
        if self.journal is None:
            return
        if self.journal.kernel:
            remove_kernel(self.journal.kernel)
        if self.journal.kind == "new":
            _empty(self.target, {WORK}, self.gone)
        else:
            put_back(self.journal.change, self.target, self.staged, self.aside)
        self.commit()

    def commit(self) -> None:
        """Let everything stand as it is now."""
        (self.work / JOURNAL).unlink(missing_ok=True)
        _settle(self.work)
        self.journal = None

    def close(self) -> None:
        """Take the work folder away; what the system does not let go now is taken at the next start."""
        if self.journal is None:
            with suppress(WorkFailed):
                _empty(self.work, {LOCK}, self.gone)
        self.lock.release()
        with suppress(OSError):
            self.work.rmdir()

    def _write(self, journal: Journal) -> None:
        write_whole(self.work / JOURNAL, to_json(journal))
        self.journal = journal


@contextmanager
def transaction(target: Path, kind: Kind, made: Sequence[str] = ()) -> Iterator[Transaction]:
    """Hold a target for one installation; leaving well commits it, any failure takes everything back.

    `made` names folders to be taken away as well once they are empty, beside those that are not there yet.
    Raises `WorkFailed` naming who works there already, or when the target cannot be written.
    """
    recover(only=target, later=True)
    pointer, opened = None, None
    shield: Callable[[], AbstractContextManager[None]] = nullcontext
    try:
        with uninterrupted():
            pointer = _point(target, made)
            opened = _open(target)
        opened.begin(kind)
        yield opened
        opened.commit()
    except BaseException as error:
        if isinstance(error, Cancelled | KeyboardInterrupt):
            shield = uninterrupted  # who is impatient asks twice
        with shield():
            if opened:
                said = _said(pointer) if pointer and shield is uninterrupted else None
                opened.gone = Path(said.gone) if said else None
                opened.undo()
        raise
    finally:
        with shield():
            if opened:
                opened.close()
            if not (opened and opened.work.exists()):
                _forget(pointer, later=bool(opened and opened.gone))


def remove(target: Path) -> None:
    """Remove a whole environment, as one that was begun and failed; killed midway, the next start goes on with it."""
    with suppress(_Removed), transaction(target, "new", [str(target)]):
        raise _Removed


class _Removed(Exception):
    """Ends a transaction whose way back is the purpose."""


def pointers() -> dict[Path, Pointer]:
    """List the installations that were begun and not ended, by the file that says so."""
    return {path: said for path in sorted(_folder().glob("*.json")) if (said := _said(path))}


def _said(path: Path) -> Pointer | None:
    try:
        return from_json(path.read_bytes(), Pointer, path.name)
    except (OSError, BadInput):
        return None


def recover(
    only: Path | None = None, told: Callable[[Path, Holder | None], None] | None = None, *, later: bool = False
) -> None:
    """Take back what killed installations left (in one target, or in all); harmless when repeated.

    `told` hears of each target, with the holder where somebody is still at work there. With `later` another process
    deletes what a cancelled installation moved away.
    """
    _sweep()
    known = {path: pointer for path, pointer in pointers().items() if only in {None, Path(pointer.target)}}
    for target in dict.fromkeys([*(Path(pointer.target) for pointer in known.values()), *([only] if only else [])]):
        holder = _recover(target) if (target / WORK).is_dir() else None
        if told:
            told(target, holder)
        if holder is None:
            for path in [path for path, pointer in known.items() if Path(pointer.target) == target]:
                _forget(path, later=later)


def _recover(target: Path) -> Holder | None:
    lock = Lock(target / WORK / LOCK)
    holder = lock.take()
    if holder is None:
        found = Transaction(target, lock)
        try:
            found.undo()
        finally:
            found.close()
    return holder


def read_journal(work: Path) -> Journal | None:
    """Read a work folder's journal; None before it was begun or after it ended."""
    try:
        return from_json((work / JOURNAL).read_bytes(), Journal, str(work / JOURNAL))
    except FileNotFoundError:
        return None


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all, on the disk itself before this returns."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    _settle(path.parent)


def _settle(folder: Path) -> None:
    """Have a folder's names on the disk itself, where the system can say so."""
    if os.name != "nt":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _open(target: Path) -> Transaction:
    lock = Lock(target / WORK / LOCK)
    if holder := lock.take():
        raise busy(target, holder)
    return Transaction(target, lock)


def busy(target: Path, holder: Holder) -> WorkFailed:
    """Say who works in a target."""
    since = datetime.fromtimestamp(holder.since, tz=UTC).astimezone().strftime("%H:%M")
    return WorkFailed(
        _("Another installation is at work in {path}: process {pid} of {user} on {where}, since {since}.").format(
            path=target, pid=holder.pid, user=holder.user, where=holder.where.partition(" ")[0], since=since
        ),
        hint=_("Wait until it has ended, or end it, and start again."),
    )


def _folder() -> Path:
    return user_state() / "installs"


def _point(target: Path, made: Sequence[str]) -> Path | None:
    """Leave word of where we are about to work; without a writable state folder only the target tells."""
    made = [*made, *(str(folder) for folder in (*reversed(target.parents), target) if not folder.exists())]
    stands = next(folder for folder in (target, *target.parents) if folder.exists())
    path = _folder() / f"{hashlib.sha256(str(target).encode()).hexdigest()[:12]}-{uuid.uuid4().hex[:8]}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        near = path.parent if path.parent.stat().st_dev == stands.stat().st_dev else stands
        near = stands.parent if near == target else near
        gone = near / f".{path.stem}.gone"
        write_whole(path, to_json(Pointer(target=str(target), made=tuple(made), gone=str(gone))))
    except OSError:
        return None
    return path


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder for a while; where the process is killed, the next start takes it away."""
    try:
        _folder().mkdir(parents=True, exist_ok=True)
        folder = _folder() / f"{uuid.uuid4().hex[:8]}.{os.getpid()}.part"
        folder.mkdir()
    except OSError:  # no state folder can be written
        folder = Path(tempfile.mkdtemp())
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep() -> None:
    """Take away what killed processes had in hand: pointers half written, folders for a while."""
    for part in _folder().glob("*.part"):
        writer = part.suffixes[-2].removeprefix(".")
        if not (writer.isdecimal() and alive(int(writer))):
            shutil.rmtree(part, ignore_errors=True) if part.is_dir() else part.unlink(missing_ok=True)


def _forget(path: Path | None, *, later: bool = False) -> None:
    """Take a pointer away, the folders made for it where nothing is in them, and (maybe later) what was moved away."""
    if path is None:
        return
    pointer = _said(path) or Pointer(target="")
    for folder in reversed(pointer.made):
        with suppress(OSError):  # it holds something, or was not made yet when the run was killed
            Path(folder).rmdir()
    left = bool(pointer.gone) and Path(pointer.gone).exists()
    if left and later:
        leave_running([sys.executable, "-I", "-S", "-c", DELETE, pointer.gone, path])
        return
    if left:
        shutil.rmtree(pointer.gone, ignore_errors=True)
    if not (left and Path(pointer.gone).exists()):  # what the system does not let go yet waits for the next start
        path.unlink(missing_ok=True)


def _empty(folder: Path, keep: set[str], gone: Path | None = None) -> None:
    """Delete what is in a folder, or move it to `gone`; a file that the system does not let go raises `WorkFailed`."""
    for entry in list(folder.iterdir()) if folder.is_dir() else ():
        if entry.name in keep or (gone and _moved(entry, gone)):
            continue
        try:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        except OSError as error:
            raise WorkFailed(
                _("{path} cannot be removed: {reason}.").format(path=entry, reason=error.strerror or error),
                hint=_("Close what uses it, then run `assistant recover`."),
            ) from error


def _moved(entry: Path, gone: Path) -> bool:
    """Move an entry out of the way by one rename; tell whether the system could (another disk, a file in use: no)."""
    with suppress(OSError):
        gone.mkdir(exist_ok=True)
        entry.rename(gone / uuid.uuid4().hex)
        return True
    return False

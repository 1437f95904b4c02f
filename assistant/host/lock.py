"""One writer at a time: a lock file that says who holds it, and that the system frees when the holder is killed."""

from __future__ import annotations

import errno
import getpass
import os
import platform
import stat
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from assistant.host.files import read_plain
from assistant.host.process import alive, end_left_behind
from assistant.i18n import _
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import Record, from_json, replace, to_json

# Not by filelock (4.2): on Windows it locks the first byte, and who holds the lock could not be read meanwhile.
PLACE = 1 << 30  # the byte that Windows locks: far behind the text, which stays readable
ORPHAN_SECONDS = 5.0
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}  # some network file systems


class Holder(Record, frozen=True):
    """Who holds a lock: a process, since when (Unix time), and the process groups that work for it now."""

    pid: int
    where: str
    user: str = ""
    since: float = 0.0
    children: tuple[int, ...] = ()


class Lock:
    """A file that one process at a time may hold; children that inherit `fileno` hold it too until they end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fileno = -1
        self._holder = Holder(pid=os.getpid(), where=_where(), user=_user(), since=time.time())
        self._telling = threading.Lock()

    def take(self) -> Holder | None:
        """Take the lock; answer None when it is ours, else who holds it.

        Whatever a killed holder left running is ended first, and gone when this returns: it might still write. Raises
        `WorkFailed` where it does not end, where the lock's file cannot be written, and where there are no locks.
        """
        deadline = time.monotonic() + ORPHAN_SECONDS
        while not self._try():
            holder = read_holder(self.path)
            if holder is None or not _orphaned(holder) or time.monotonic() > deadline:
                return holder or Holder(pid=0, where="")
            self._end_children(holder)
            time.sleep(0.05)
        before = read_holder(self.path)
        while before and _orphaned(before) and self._end_children(before):
            if time.monotonic() > deadline:
                self.release(keep=True)
                return before
            time.sleep(0.05)
        self._write(self._holder)
        return None

    def tell_child(self, pid: int) -> None:
        """Note a process group that works for us, so that whoever finds us dead can end it."""
        with self._telling:
            self._holder = replace(self._holder, children=(*self._holder.children, pid))
            self._write(self._holder)

    def tell_end(self, pid: int) -> None:
        """Note that a process group has ended: its number will be another's one day."""
        with self._telling:
            left = tuple(child for child in self._holder.children if child != pid)
            self._holder = replace(self._holder, children=left)
            if self.fileno >= 0:
                self._write(self._holder)

    def release(self, *, keep: bool = False) -> None:
        """Give the lock back and take its file away, unless it is to be kept; harmless when it is not held."""
        if self.fileno >= 0:
            if keep:
                os.close(self.fileno)
                self.fileno = -1
                return
            if sys.platform != "win32":
                self.path.unlink(missing_ok=True)  # while it is held: whoever opened it meanwhile notices
            os.close(self.fileno)
            self.fileno = -1
            if sys.platform == "win32":
                with suppress(OSError):  # the next one has it open already
                    self.path.unlink()

    def _try(self) -> bool:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
            handle = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise _unusable(self.path, error) from error
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise _unusable(self.path, OSError(errno.EINVAL, _("it is not a plain file")))
        try:
            _lock(handle)
            same = os.fstat(handle).st_ino == self.path.stat().st_ino
        except OSError as error:
            same = False  # held by another, or taken away since it was opened
            if error.errno in NO_LOCKS:
                os.close(handle)
                self.path.unlink(missing_ok=True)
                raise _unusable(self.path, error) from error
        if not same:
            os.close(handle)
            return False
        self.fileno = handle
        return True

    def _end_children(self, holder: Holder) -> bool:
        """End what a killed holder started; tell whether any of it is still there."""
        with suppress(OSError):
            told = self.path.stat().st_mtime  # of the last child that was noted
            ended = [end_left_behind(child, told) for child in holder.children]  # all of them, not the first alone
            return any(ended)
        return False

    def _write(self, holder: Holder) -> None:
        with suppress(OSError):  # a full disk: the lock holds all the same
            os.ftruncate(self.fileno, 0)
            os.lseek(self.fileno, 0, os.SEEK_SET)
            os.write(self.fileno, to_json(holder).encode())


def read_holder(path: Path) -> Holder | None:
    """Read who holds a lock; None where the file does not say."""
    try:
        return from_json(read_plain(path, 1 << 16), Holder, path.name)
    except (OSError, BadInput):
        return None


def _orphaned(holder: Holder) -> bool:
    """Tell whether the holder was killed and only its children are left (never said of another machine's processes)."""
    return holder.where == _where() and not alive(holder.pid)


def _unusable(path: Path, error: OSError) -> WorkFailed:
    text = _("The lock file {path} cannot be used: {reason}.")
    return WorkFailed(
        text.format(path=path, reason=error.strerror or error),
        hint=_("It must be a plain file in a folder that you may write to, on a disk of this machine."),
    )


def _where() -> str:
    """Name this machine and, on Linux, the space in which process numbers count: containers share neither."""
    with suppress(OSError):
        return f"{platform.node()} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 - no path, a name
    return platform.node()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def _lock(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - on Windows only

        os.lseek(handle, PLACE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl  # noqa: PLC0415 - not on Windows

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

"""A lock file for one writer at a time: it records its holder, and the system frees it when the holder is killed."""

from __future__ import annotations

import getpass
import os
import platform
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from assistant.host.files import NO_LOCKS, raise_if_irregular, read_regular, try_to_lock
from assistant.host.process import end_orphans, is_running
from assistant.i18n import _
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import Record, from_json, replace, to_json

ORPHAN_SECONDS = 5.0  # chosen: how long to wait for the programs of a killed holder to end
BOOT_ID = "/proc/sys/kernel/random/boot_id"  # random(4): a new one at each boot


class Holder(Record, frozen=True):
    """The process that holds a lock, and since when (Unix time); `children` are the process groups that it started.

    `where` is the machine's name and `_pid_scope`, with a space between.
    """

    pid: int
    where: str
    user: str = ""
    since: float = 0.0
    children: tuple[int, ...] = ()


class Lock:
    """A file that one process at a time can hold; children that inherit `fileno` hold it too until they end."""

    def __init__(self, path: Path) -> None:
        """Prepare a lock on a file with this process as its holder; nothing is locked or written yet."""
        self.path = path
        self.fileno = -1
        where = f"{platform.node()} {_pid_scope()}"
        self._holder = Holder(pid=os.getpid(), where=where, since=time.time())
        with suppress(OSError, KeyError):  # a container may have no name for the user's number
            self._holder = replace(self._holder, user=getpass.getuser())
        self._recording = threading.Lock()

    def take(self) -> Holder | None:
        """Take the lock, record us in its file, and return None; if it is held, return the holder, `pid` 0 if unknown.

        The file and its folder are made. Programs that a killed holder left running are killed first, as they might
        still write; if they have not ended after 5 seconds, the lock is not taken, and that holder is returned. Raises
        `WorkFailed` if the lock's file cannot be used, and if the file system has no locks.
        """
        deadline = time.monotonic() + ORPHAN_SECONDS
        while not self._try_to_lock():
            holder = read_holder(self.path)  # None while it takes the lock and has not written yet
            if time.monotonic() > deadline or (holder and not _is_orphaned(holder)):
                return holder or Holder(pid=0, where="")
            if holder:
                self._end_children(holder)
            time.sleep(0.05)
        before = read_holder(self.path)
        while before and _is_orphaned(before) and self._end_children(before):
            if time.monotonic() > deadline:
                self._close()
                return before
            time.sleep(0.05)
        self._write_holder(self._holder)
        return None

    def add_child(self, pid: int) -> None:
        """Record a process group of ours in the file, so that the next holder can end it if we are killed."""
        with self._recording:
            self._holder = replace(self._holder, children=(*self._holder.children, pid))
            self._write_holder(self._holder)

    def remove_child(self, pid: int) -> None:
        """Remove a process group that has ended from the file: the system will reuse its number."""
        with self._recording:
            left = tuple(child for child in self._holder.children if child != pid)
            self._holder = replace(self._holder, children=left)
            if self.fileno >= 0:
                self._write_holder(self._holder)

    def release(self) -> None:
        """Release the lock and delete its file; do nothing if it is not held."""
        if self.fileno >= 0:
            if sys.platform != "win32":
                with suppress(OSError):
                    self.path.unlink()  # while it is held, so that another's `_try_to_lock` sees that it has gone
            self._close()
            if sys.platform == "win32":
                with suppress(OSError):  # the next one has it open already
                    self.path.unlink()

    def _close(self) -> None:
        """Close the lock's file, which releases it."""
        os.close(self.fileno)
        self.fileno = -1

    def _try_to_lock(self) -> bool:
        """Try once to open and lock the file, which is made if needed; return whether that worked.

        That fails if it is held, or was deleted meanwhile; then it is closed again. Raises `WorkFailed` if the file
        cannot be used; it is deleted if its file system has no locks.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
            self.fileno = os.open(self.path, flags, 0o600)
            raise_if_irregular(self.fileno, self.path)
            if try_to_lock(self.fileno):
                with suppress(OSError):  # taken away since it was opened
                    if os.fstat(self.fileno).st_ino == self.path.stat().st_ino:
                        return True
        except OSError as error:
            if self.fileno >= 0:
                self._close()
            if error.errno in NO_LOCKS:
                self.path.unlink(missing_ok=True)
            text = _("The lock file {path} cannot be used: {reason}.")
            raise WorkFailed(
                text.format(path=self.path, reason=error.strerror or error),
                hint=_("It must be a regular file in a folder that you may write to, on a disk of this machine."),
            ) from error
        self._close()
        return False

    def _end_children(self, holder: Holder) -> bool:
        """Kill the process groups that a killed holder left; return whether any of them was still running."""
        with suppress(OSError):
            recorded = self.path.stat().st_mtime  # when the last child was recorded
            ended = [end_orphans(child, recorded) for child in holder.children]  # all of them, not the first alone
            return any(ended)
        return False

    def _write_holder(self, holder: Holder) -> None:
        """Write the holder into the lock's file; ignore errors, as of a full disk."""
        with suppress(OSError):  # a full disk: the lock holds all the same
            line = to_json(holder).encode() + b"\n"
            os.lseek(self.fileno, 0, os.SEEK_SET)
            os.write(self.fileno, line)  # first, so that whoever is killed here leaves a line that can be read
            os.ftruncate(self.fileno, len(line))


def read_holder(path: Path) -> Holder | None:
    """Return the holder that a lock's file records; None if the file does not exist or cannot be read."""
    try:
        return from_json(read_regular(path, 1 << 16).partition(b"\n")[0], Holder, path.name)
    except (OSError, BadInput):
        return None


def _is_orphaned(holder: Holder) -> bool:
    """Return whether a holder has ended, so that only its children can be left; False for one of another machine."""
    return holder.where.partition(" ")[2] == _pid_scope() and not is_running(holder.pid)


@cache
def _pid_scope() -> str:
    """Return an id of where process numbers are unique: one boot of one machine and, on Linux, one PID namespace.

    The machine's name is no part of it, as on macOS it changes with the network, unless nothing else is known. Windows
    has no id of its boot: there `end_orphans` compares when a process was started.
    """
    namespace = ""  # such as "pid:[4026531836]"
    with suppress(OSError, ValueError, KeyError, subprocess.SubprocessError):
        if sys.platform == "win32":
            from assistant.host.windows import read_registry  # noqa: PLC0415 - on Windows only

            return str(read_registry(r"HKLM\SOFTWARE\Microsoft\Cryptography")["values"]["MachineGuid"])
        if sys.platform == "darwin":
            words = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
            return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - no path, a name
        return f"{Path(BOOT_ID).read_text(encoding='ascii').strip()} {namespace}"
    return namespace or platform.node()

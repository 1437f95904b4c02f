"""What is under way: a journal and a lock for each target, and temporary folders, in the user's private state folder.

No file in or beside a target is trusted because it lies there: only a journal of this user says that a folder belongs
to an installation, and gives its inode. What a journal contains is checked, too.
Temporary folders have a lock that the programs running in them hold: after a kill, `tempfile` would leave both behind,
folders of many MB and installers that go on writing into them. What is to be deleted without waiting goes there, too.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from assistant.host.files import (
    delete_stale_drafts,
    discard,
    discard_folder,
    make_private_folder,
    read_regular,
    retry_while_in_use,
    user_state,
    write_atomically,
)
from assistant.host.lock import Lock
from assistant.host.process import Background, is_running, start_detached
from assistant.i18n import Text, _
from assistant.install.kernel import KernelNote, is_kernel_name
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import Record, from_json, to_json

LOCK = "lock"
ELSEWHERE = "elsewhere"  # in a temporary folder: the path of the folder in which its content lies, under its name
DELETE = "import shutil, sys; shutil.rmtree(sys.argv[1], ignore_errors=True)"  # deletes a folder


class Before(Record, frozen=True):
    """What an environment held before a change in place: its Python, its packages, the index of its torch.

    `made` is the modification time (ns) of its Python, as inodes of deleted folders are reused. `moved` are the
    packages that the change touches, `incomplete` those of them whose files had been edited or deleted before; other
    packages are not restored, so that what users install after a kill stays.
    """

    python: str
    packages: dict[str, str]
    made: int = 0
    moved: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    index_url: str | None = None


class Journal(Record, frozen=True, kw_only=True):
    """What is about to happen to a target; it is deleted when it has happened.

    `target` is its real path, with links resolved. `comes` is the inode of the folder that will be there in the end,
    `goes` that of the environment that was there before, `drops` that of an older one beside it, which is deleted (0:
    none). `parents` are the folders that were created to hold it. `before` is set for a change in place ("change");
    `goes` is the inode of that environment then.
    """

    schema: Literal[3] = 3
    kind: Literal["install", "undo", "remove", "change"]
    target: str
    comes: int = 0
    goes: int = 0
    drops: int = 0
    parents: tuple[str, ...] = ()
    kernel: KernelNote | None = None
    before: Before | None = None

    @property
    def fault(self) -> str:
        """The names of the fields with impossible values, joined by commas; "" if there are none."""
        target = self.target
        is_plain = os.path.isabs(target) and os.path.normpath(target) == target and "\0" not in target  # noqa: PTH117 - text, as written
        parents = [str(folder) for folder in Path(target).parents] if is_plain else []
        is_valid = {
            "target": is_plain and Path(target).name != "",
            "parents": all(folder in parents for folder in self.parents),
            "kernel": self.kernel is None or is_kernel_name(self.kernel.name),
            "before": (self.before is not None) == (self.kind == "change"),
        }
        return ", ".join(name for name, valid in is_valid.items() if not valid)


class Entry(NamedTuple):
    """The files about one target: its journal, its lock, and the undo record of its last change in place."""

    journal: Path

    @property
    def lock(self) -> Path:
        """The lock file: one writer at a time."""
        return self.journal.with_suffix(".lock")

    @property
    def undo(self) -> Path:
        """The file that records the last change in place."""
        return self.journal.with_suffix(".undo")

    def read(self) -> Journal | None:
        """Return the journal; None if there is none. Raises `WorkFailed` for one that is damaged or not plausible."""
        reason: Text = ""
        try:
            journal = from_json(read_regular(self.journal), Journal, str(self.journal))
            reason = journal.fault
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, BadInput) as error:
            reason = getattr(error, "strerror", None) or str(error)
        if not reason:
            return journal
        text = _("The record of an interrupted installation, {file}, is damaged: {reason}.")
        raise WorkFailed(
            text.format(file=self.journal, reason=reason),
            hint=_("Delete that file; folders named .NAME.new and .NAME.old beside an environment may be left over."),
        )

    def write(self, journal: Journal) -> None:
        """Write the journal; raise `WorkFailed` if it cannot be written."""
        try:
            make_private_folder(user_state())
            make_private_folder(self.journal.parent)
            write_atomically(self.journal, to_json(journal), private=True)
        except OSError as error:
            raise not_started_error(self.journal.parent, error) from error

    def delete_journal(self) -> None:
        """Delete the journal; ignore that it cannot be deleted."""
        with suppress(OSError):
            discard(self.journal)


def journals_folder() -> Path:
    """Return the folder of the journals and locks."""
    return user_state() / "installs"


def entry_for(target: Path) -> Entry:
    """Return the entry of a target: its journal and lock, named by the target's real path."""
    name = hashlib.sha256(os.path.realpath(target).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return Entry(journals_folder() / f"{name}.json")


def list_entries() -> list[Entry]:
    """Return the entry of each target that has a journal or a lock; delete drafts that killed processes left there."""
    folder = journals_folder()
    delete_stale_drafts(folder)
    files = [path for path in folder.iterdir() if path.suffix in {".json", ".lock"}] if folder.is_dir() else []
    return [Entry(path) for path in sorted({path.with_suffix(".json") for path in files})]


@contextmanager
def locked(target: Path, entry: Entry | None = None) -> Iterator[tuple[Entry, Lock]]:
    """Take a target's lock without waiting, yield its entry and the lock, and release it at the end.

    Raises `WorkFailed`, with the holder, if another process holds it, and if the state folder cannot be written.
    """
    entry = entry or entry_for(target)
    try:
        make_private_folder(user_state())
        make_private_folder(journals_folder())
    except OSError as error:
        raise not_started_error(user_state(), error) from error
    lock = Lock(entry.lock)
    if holder := lock.take():
        text = _("Another installation is running in {path}: process {pid} of {user} on {where}, since {since}.")
        since, where = datetime.fromtimestamp(holder.since, tz=UTC).astimezone(), holder.where.partition(" ")[0]
        text = text.format(path=target, pid=holder.pid, user=holder.user, where=where, since=since.strftime("%H:%M"))
        raise WorkFailed(text, hint=_("Wait until it has finished, or end it, and start again."))
    try:
        yield entry, lock
    finally:
        lock.release()


def not_started_error(path: Path, error: OSError) -> WorkFailed:
    """Return the error for a folder that cannot be written, before anything was begun."""
    return WorkFailed(
        _("{path} cannot be written to, so nothing was started: {reason}.", path=path, reason=error.strerror or error),
        hint=_("Free some space there, or check that you may write to it, and start again."),
    )


def not_removed_error(path: Path, error: OSError) -> WorkFailed:
    """Return the error for a folder that could not be deleted."""
    return WorkFailed(
        _("{path} cannot be removed: {reason}.", path=path, reason=error.strerror or error),
        hint=_("Close what uses it, then start again."),
    )


@contextmanager
def temporary_folder() -> Iterator[tuple[Path, Lock]]:
    """Yield a new temporary folder and its lock, and delete the folder at the end; after a kill the next start does."""
    try:
        make_private_folder(user_state())
        folder = make_private_folder(journals_folder()) / f"{uuid.uuid4().hex[:8]}.{os.getpid()}.part"
        folder.mkdir(mode=0o700)
    except OSError:  # no state folder can be written
        folder = Path(tempfile.mkdtemp())
    lock = Lock(folder / LOCK)
    try:
        lock.take()
        yield folder, lock
    finally:
        lock.release()
        _delete_temporary(folder)


def delete_later(folder: Path, beside: Path) -> None:
    """Rename a folder aside, and have a process delete it that nobody waits for; after a kill the next start does.

    It goes into a temporary folder. If it cannot, as from another disk, it gets a name in the folder `beside`, which
    the temporary one records. Raises `OSError` or `WorkFailed`; unless it was renamed, it is then where it was.
    """
    with ExitStack() as stack:
        part, lock = stack.enter_context(temporary_folder())
        aside = part / folder.name
        try:
            retry_while_in_use(partial(folder.rename, aside))
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            write_atomically(part / ELSEWHERE, os.fsencode(beside), private=True)
            aside = beside / f".{part.name}"
            retry_while_in_use(partial(folder.rename, aside))
        stack.callback(start_detached([sys.executable, "-I", "-S", "-c", DELETE, aside], lock).wait)
        Background(stack.pop_all().close)


def _delete_temporary(folder: Path) -> None:
    """Delete a temporary folder, but first what lies elsewhere for it; the next start goes on with what is in use."""
    paths = [folder]
    with suppress(OSError):
        paths.insert(0, Path(os.fsdecode(read_regular(folder / ELSEWHERE))) / f".{folder.name}")
    with suppress(OSError):
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)  # all that can be
            if os.path.lexists(path):
                discard_folder(path)


def delete_stale_folders() -> None:
    """Delete the temporary folders of killed processes, after ending the programs that still run for them.

    A process was killed if the folder's lock is free; a folder without a lock is judged by its process number, which
    may be reused. Failures are ignored.
    """
    for folder in journals_folder().glob("*.part"):
        writer = folder.suffixes[-2].removeprefix(".") if len(folder.suffixes) > 1 else ""
        is_ours = writer.isdecimal() and not folder.is_symlink() and folder.is_dir()
        if not is_ours or not ((folder / LOCK).exists() or not is_running(int(writer))):
            continue
        lock = Lock(folder / LOCK)
        with suppress(WorkFailed):  # something else stands where the lock should be
            if lock.take():
                continue
        lock.release()
        _delete_temporary(folder)

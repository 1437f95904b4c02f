"""Makes, replaces, takes back and removes environments: built and verified aside, put in place by renames.

Beside an environment NAME there may be `.NAME.new`, which is being built or goes, and `.NAME.old`, which NAME replaced
and which `undo` brings back:

    NAME  .NAME.new  .NAME.old   what happened                             what the next start does
    yes   yes        -/yes       ended while it was built                  deletes .NAME.new
    -     yes        yes         ended between the two renames             renames .NAME.old back, deletes .NAME.new
    -     yes        -           a first one ended, or one was removed     deletes .NAME.new
    yes   -          yes         all is well; `undo` can bring it back     nothing

A folder of such a name is ours only where the journal names the number by which the system knows it, and it holds an
environment or nothing yet: the number of a folder that was deleted is soon another's.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from assistant.host.files import discard, discard_folder, may_write, patiently, settle, settle_all
from assistant.host.lock import Lock
from assistant.host.parallel import Ahead
from assistant.host.process import uninterrupted
from assistant.i18n import _
from assistant.install.journal import Entry, Journal, entry_of, locked, not_started_error
from assistant.install.kernel import KernelNote, note_kernel, put_kernel_back, register_kernel, remove_kernel
from assistant.install.site import Marker, interpreter, is_ours, read_marker
from assistant.model.errors import AssistantError, BadInput, Cancelled, WorkFailed
from assistant.model.record import replace

SIGN = "pyvenv.cfg"  # in each environment of ours; it is deleted last
SCRATCH = ".scratch"  # in the folder that is built: for uv's temporary files; it goes before the environment is placed


def new_folder(target: Path) -> Path:
    """Return the folder in which an environment is built."""
    return _sibling(_real_path(target), "new")


def old_folder(target: Path) -> Path:
    """Return the folder to which the environment at a target is moved when another replaces it."""
    return _sibling(_real_path(target), "old")


def _sibling(path: Path, suffix: str) -> Path:
    """Return the path `.NAME.{suffix}` beside a folder NAME."""
    return path.with_name(f".{path.name}.{suffix}")


def _real_path(target: Path) -> Path:
    """Return the path of a target with all links resolved."""
    return Path(os.path.realpath(target))


def can_be_renamed_to(target: Path) -> bool:
    """Return whether a folder can be renamed to a target: it is no mount point, and its parent can be written."""
    return not os.path.ismount(_real_path(target)) and may_write(_real_path(target).parent)


class Building:
    """An environment that is being built in a folder beside its target; the programs that run for it hold `lock`."""

    def __init__(self, target: Path, entry: Entry, lock: Lock) -> None:
        self.target, self.lock = target, lock
        self.place = _real_path(target)  # a link that is put there meanwhile leads nowhere else
        self.folder, self._old = _sibling(self.place, "new"), _sibling(self.place, "old")
        self.scratch = self.folder / SCRATCH
        self.is_placed = False
        self._entry = entry
        self._syncing: Ahead[None] | None = None
        self._journal = Journal(
            kind="install", target=str(self.place), goes=inode_of(self.place) if is_ours(self.place) else 0
        )
        self._make_folder()

    def _make_folder(self) -> None:
        """Write the journal, make the folder, and record its inode; raise `BadInput` for folders of somebody else's."""
        place = self.place
        if os.path.lexists(self.folder):
            raise _unknown_folder_error(self.folder)
        if self._journal.goes and os.path.lexists(self._old) and not _is_replaced(self._old):
            raise _unknown_folder_error(self._old)
        missing = [folder for folder in place.parents if not folder.exists()]
        self._update_journal(parents=tuple(map(str, missing)))
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o755)
        except OSError as error:
            settle_journal(self._entry, self._journal)
            raise not_started_error(place.parent, error) from error
        self._update_journal(comes=inode_of(self.folder))
        self.scratch.mkdir()

    def _update_journal(self, **changes: object) -> None:
        """Change fields of the journal, and write it."""
        self._journal = replace(self._journal, **changes)
        self._entry.write(self._journal)

    def restart(self) -> None:
        """Empty the folder, to fill it anew."""
        _empty_folder(self.folder)
        self.scratch.mkdir()

    def start_syncing(self) -> None:
        """Start to bring what was written so far to the disk itself, on another thread, as it may take seconds."""
        self._syncing = Ahead(lambda: settle_all(self.folder))

    def put_in_place(self, check: Callable[[], None], kernel: KernelNote | None, register: Callable[[], None]) -> None:
        """Rename the new environment to its target once all is on the disk, and call `register` for its kernel.

        `check` is called while that lasts and may raise. The environment that stood there stays beside it, in place of
        an older one. Raises `WorkFailed` where it cannot be written or moved.
        """
        if self._syncing:
            with suppress(OSError):  # it is tried again
                self._syncing.result(check)
        bring_to_disk(self.folder, check)
        with uninterrupted():
            self._update_journal(kernel=kernel)
            register()
            if self._journal.goes:
                self._move_old_aside()
            self._move_new_to_target()
            self.is_placed = True
            self._entry.forget()

    def _move_old_aside(self) -> None:
        """Rename the environment at the target to `.NAME.old`, and delete the one that lay there before."""
        place, old = self.place, self._old
        if os.path.lexists(old) and not _is_replaced(old):
            raise _unknown_folder_error(old)
        self._update_journal(drops=inode_of(old))
        try:
            if self._journal.drops:
                _remove_folder(old)
            patiently(lambda: place.rename(old))
        except OSError as error:
            raise _not_moved_error(self.target, error) from error

    def _move_new_to_target(self) -> None:
        """Rename the folder to its target; raise `WorkFailed` if it is in use, or something has come to the target."""
        place, folder = self.place, self.folder
        try:
            if place.is_dir() and not self._journal.goes:
                folder.chmod(stat.S_IMODE(place.stat().st_mode))
                if os.name == "nt":
                    patiently(place.rmdir)  # a rename replaces no folder there, however empty
            patiently(lambda: folder.rename(place))
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                raise _not_moved_error(self.target, error) from error
            raise WorkFailed(
                _("{path} was created while the installation was running, and is left as it is.", path=place),
                hint=_("Choose another folder.", option="--target"),
            ) from error
        with suppress(OSError):
            settle(place.parent)

    def roll_back(self) -> Path | None:
        """Undo what was begun; return and raise as `settle_journal` does."""
        return settle_journal(self._entry, self._journal)


def bring_to_disk(folder: Path, check: Callable[[], None]) -> None:
    """Wait until all that was written to a folder is on the disk itself; `check` is called meanwhile and may raise.

    Raises `WorkFailed` if it cannot be written.
    """
    try:
        Ahead(lambda: settle_all(folder)).result(check)
    except OSError as error:  # the folder has gone, or the disk fails
        raise WorkFailed(
            _("The installation cannot be written to the disk: {reason}.", reason=error.strerror or str(error)),
            hint=_("All changes were rolled back. Check the disk, or choose another one.", option="--target"),
        ) from error


@contextmanager
def building(target: Path) -> Iterator[Building]:
    """Yield a folder in which an environment for a target is built; unless `put_in_place` succeeds, all is rolled back.

    What a killed run left there is settled first. Raises `WorkFailed` naming who works there already, or what cannot
    be written.
    """
    with holding(target) as (entry, lock):
        work: Building | None = None
        try:
            with uninterrupted():
                work = Building(target, entry, lock)
            yield work
        except BaseException as error:
            if isinstance(error, Cancelled):
                error.hint = _("{path} is as it was before. Start the step again when you are ready.", path=target)
            raise
        finally:
            if work and not work.is_placed:
                with uninterrupted():
                    work.roll_back()


@contextmanager
def holding(target: Path) -> Iterator[tuple[Entry, Lock]]:
    """Hold a target's lock, and settle what a killed run left there; yield the entry of its journal, and the lock."""
    with locked(target) as (entry, lock):
        before = entry.read()
        if before:
            with uninterrupted():
                settle_journal(entry, before)
        yield entry, lock


def settle_folders(target: Path) -> None:
    """Settle what a run that was killed while it built, undid or removed left at a target; a change in place waits."""
    before = entry_of(target).read()
    if before and before.kind != "change":
        with holding(target):
            pass


def settle_journal(entry: Entry, journal: Journal) -> Path | None:
    """Finish or roll back what a journal records, by which of the folders are there; then forget it.

    Returns None, or where the earlier environment is now if something of somebody else's has taken its place meanwhile.
    Raises `WorkFailed` or `BadInput` if that cannot be done; the journal stays then.
    """
    target = Path(journal.target)
    if journal.kind == "change":
        raise WorkFailed(
            _("A change of the packages in {path} was interrupted.", path=target),
            hint=_("`assistant recover` puts back what it held before."),
        )
    new = _sibling(target, "new")
    try:
        _move_to_places(journal)
        has_arrived = journal.comes != 0 and inode_of(target) == journal.comes
        if journal.kernel and not has_arrived:
            put_kernel_back(journal.kernel)
        if journal.kind != "undo":
            _delete_journaled(new, journal.goes if journal.kind == "remove" else journal.comes)
        for folder in journal.parents if not os.path.lexists(target) else ():
            with suppress(OSError):  # somebody else's files are in it by now
                Path(folder).rmdir()
    except OSError as error:
        raise not_removed_error(new, error) from error
    entry.forget()
    if journal.kind == "remove" or not journal.goes or inode_of(target) in {journal.comes, journal.goes}:
        return None
    return next((folder for folder in (new, _sibling(target, "old")) if inode_of(folder) == journal.goes), None)


def _move_to_places(journal: Journal) -> None:
    """Rename the environments of a journal to where they belong, and finish the deletion of an older one."""
    place = Path(journal.target)
    new, old = _sibling(place, "new"), _sibling(place, "old")
    ours = {journal.comes, journal.goes} - {0}
    if _is_journaled(old, journal.drops):
        _remove_folder(old)
    if journal.kind != "remove" and not os.path.lexists(place) and inode_of(old) in ours:
        patiently(lambda: old.rename(place))
    if journal.kind == "undo" and inode_of(new) == journal.goes and not os.path.lexists(old):
        patiently(lambda: new.rename(old))


def _delete_journaled(folder: Path, inode: int) -> None:
    """Delete a folder by its inode, or an empty one; raise `BadInput` for any other, and do nothing without one."""
    if not os.path.lexists(folder):
        return
    if _is_journaled(folder, inode):
        _remove_folder(folder)
        return
    try:
        folder.rmdir()
    except OSError:
        raise _unknown_folder_error(folder) from None


def _is_journaled(folder: Path, inode: int) -> bool:
    """Return whether a folder has the inode of a journal, and holds an environment, scratch files or nothing."""
    if not inode or inode_of(folder) != inode:
        return False
    names = set(os.listdir(folder))  # noqa: PTH208 - names
    return SIGN in names or names <= {SCRATCH}


def _remove_folder(folder: Path) -> None:
    """Remove an environment of ours, `pyvenv.cfg` last; raises `OSError`."""
    _empty_folder(folder)
    patiently(folder.rmdir)


def _empty_folder(folder: Path) -> None:
    """Remove what a folder holds, `pyvenv.cfg` last: it shows that the folder is ours if this is killed midway."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name == SIGN):
        discard(entry) if entry.is_symlink() or not entry.is_dir() else discard_folder(entry)


def _is_replaced(old: Path) -> bool:
    """Return whether `.NAME.old` is an environment that the assistant made, and no folder of somebody's."""
    return inode_of(old) != 0 and is_ours(old)


def inode_of(folder: Path) -> int:
    """Return the inode of a folder of this user's; 0 for a link, for a folder of another user, and for no folder."""
    try:
        status = folder.lstat()
    except OSError:
        return 0
    is_own = os.name == "nt" or status.st_uid == os.geteuid()
    return status.st_ino if stat.S_ISDIR(status.st_mode) and is_own else 0


def _unknown_folder_error(folder: Path) -> BadInput:
    """Return the error for a folder in the way that no journal of this user mentions."""
    return BadInput(
        _("{path} does not belong to any installation that you started here, so it is left alone.", path=folder),
        hint=_("If nobody else is installing there, look inside, delete it and start again."),
    )


def _not_moved_error(path: Path, error: OSError) -> WorkFailed:
    """Return the error for a folder that could not be renamed, most likely because it is in use."""
    return WorkFailed(
        _("{path} cannot be moved: {reason}.", path=path, reason=error.strerror or error),
        hint=_("All changes were rolled back. Close what uses it, such as a notebook, and start again."),
    )


def not_removed_error(path: Path, error: OSError) -> WorkFailed:
    """Return the error for a folder that could not be deleted."""
    return WorkFailed(
        _("{path} cannot be removed: {reason}.", path=path, reason=error.strerror or error),
        hint=_("Close what uses it, then start again."),
    )


def refuse_unknown(target: Path) -> None:
    """Raise `BadInput` if `.NAME.new` exists beside a target, and no journal of this user mentions it."""
    if os.path.lexists(new_folder(target)) and entry_of(target).read() is None:
        raise _unknown_folder_error(new_folder(target))


def previous_marker(target: Path) -> Marker | None:
    """Return the marker of the environment that the one at a target replaced; None if there is none to bring back."""
    old = old_folder(target)
    return read_marker(old, target) if inode_of(old) and read_marker(target) else None


def undo_replacement(target: Path) -> None:
    """Exchange an environment of ours and the one that it replaced, which lies beside it, with their kernels.

    Raises `BadInput` if there is none, and `WorkFailed` if it cannot be moved.
    """
    with uninterrupted(), holding(target) as (entry, _lock):
        now, before = read_marker(target), previous_marker(target)
        if now is None or before is None:
            raise nothing_to_undo_error(target)
        place, new, old = _real_path(target), new_folder(target), old_folder(target)
        refuse_unknown(target)
        environment = before.environment
        note = note_kernel(environment.kernel, interpreter(target)) if environment.kernel else None
        journal = Journal(kind="undo", target=str(place), comes=inode_of(old), goes=inode_of(place), kernel=note)
        entry.write(journal)
        try:
            if environment.kernel:
                register_kernel(before.plan, environment)
            patiently(lambda: place.rename(new))
            patiently(lambda: old.rename(place))
            patiently(lambda: new.rename(old))
        except (OSError, WorkFailed) as error:
            settle_journal(entry, journal)
            raise error if isinstance(error, WorkFailed) else _not_moved_error(target, error) from error
        entry.forget()
        if now.environment.kernel and now.environment.kernel != environment.kernel:
            remove_kernel(now.environment.kernel, interpreter(target))


def nothing_to_undo_error(target: Path) -> BadInput:
    """Return the error for an environment whose last change cannot be undone."""
    return BadInput(
        _("There is no change to {path} that could be undone.", path=target),
        hint=_("What it held before is kept until the next change, unless it is deleted before."),
    )


def forget_previous(target: Path) -> int:
    """Delete the environment that the one at a target replaced; return how many bytes that freed, 0 without one."""
    old, freed = old_folder(target), 0
    if previous_marker(target):
        with holding(target) as (entry, _lock):
            freed = _unshared_bytes(old)
            journal = Journal(kind="remove", target=str(_real_path(target)), drops=inode_of(old))
            entry.write(journal)
            settle_journal(entry, journal)
    return freed


def _unshared_bytes(folder: Path) -> int:
    """Return the size in bytes of the files that have no other hard link, as those in uv's cache have."""
    total = 0
    for root, _folders, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                status = os.lstat(f"{root}/{name}")
                total += status.st_size if status.st_nlink == 1 else 0
    return total


def remove_folders(target: Path) -> None:
    """Delete an environment and the one that it replaced; if this is killed, the next start finishes or restores it."""
    with uninterrupted(), holding(target) as (entry, _lock):
        place, new, old = _real_path(target), new_folder(target), old_folder(target)
        refuse_unknown(target)
        drops = inode_of(old) if _is_replaced(old) else 0
        journal = Journal(kind="remove", target=str(place), goes=inode_of(place), drops=drops)
        entry.write(journal)
        try:
            if drops:
                _remove_folder(old)
            patiently(lambda: place.rename(new))
        except OSError as error:
            with suppress(AssistantError):  # the next start goes on with what could not be deleted
                settle_journal(entry, journal)
            raise not_removed_error(target, error) from error
        settle_journal(entry, journal)

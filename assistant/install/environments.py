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
from functools import partial
from pathlib import Path

from assistant.host.files import discard, discard_folder, may_write, retry_while_in_use, sync_file_system, sync_to_disk
from assistant.host.lock import Lock
from assistant.host.process import Ahead, uninterrupted
from assistant.i18n import _
from assistant.install.journal import Entry, Journal, entry_of, locked, not_removed_error, not_started_error
from assistant.install.kernel import KernelNote, note_kernel, put_kernel_back, register_kernel, remove_kernel
from assistant.install.site import Marker, interpreter, is_ours, read_marker
from assistant.install.uv import Uv
from assistant.model.errors import AssistantError, BadInput, Cancelled, WorkFailed
from assistant.model.record import replace

SIGN = "pyvenv.cfg"  # in each environment of ours; it is deleted last
SCRATCH = ".scratch"  # in the folder that is built: for uv's temporary files; it goes before the environment is placed


class Places:
    """The real path of a target, whichever links lead there, and the folders `.NAME.new` and `.NAME.old` beside it.

    A journal names a real path; what is a link there by now is not followed (`follow`).
    """

    def __init__(self, target: Path | str, *, follow: bool = True) -> None:
        self.target = Path(os.path.realpath(target) if follow else target)
        self.new = self.target.with_name(f".{self.target.name}.new")
        self.old = self.target.with_name(f".{self.target.name}.old")

    @property
    def replaced(self) -> int:
        """The inode of `.NAME.old`, if that is an environment that the assistant made; 0 for any other folder."""
        return inode_of(self.old) if is_ours(self.old) else 0

    def refuse_unknown(self) -> None:
        """Raise `BadInput` if `.NAME.new` exists, and no journal of this user mentions it."""
        if os.path.lexists(self.new) and entry_of(self.target).read() is None:
            raise _unknown_folder_error(self.new)


def can_be_renamed_to(target: Path) -> bool:
    """Return whether a folder can be renamed to a target: it is no mount point, and its parent can be written."""
    place = Places(target).target
    return not os.path.ismount(place) and may_write(place.parent)


class Building:
    """An environment that is being built in a folder beside its target; the programs that run for it hold `lock`.

    Making one writes the journal and makes the folder; that raises `BadInput` for folders of somebody else's.
    """

    def __init__(self, target: Path, entry: Entry, lock: Lock) -> None:
        self.target, self.lock = target, lock
        self._places = Places(target)  # a link that is put there meanwhile leads nowhere else
        place, self.folder = self._places.target, self._places.new
        self.scratch = self.folder / SCRATCH
        self.is_placed = False
        self._entry = entry
        self._syncing: Ahead[None] | None = None
        self.journal = Journal(kind="install", target=str(place), goes=inode_of(place) if is_ours(place) else 0)
        if os.path.lexists(self.folder):
            raise _unknown_folder_error(self.folder)
        if self.journal.goes:
            self._refuse_foreign_old()
        missing = [folder for folder in place.parents if not folder.exists()]
        self._update_journal(parents=tuple(map(str, missing)))
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o755)
        except OSError as error:
            settle_journal(entry, self.journal)
            raise not_started_error(place.parent, error) from error
        self._update_journal(comes=inode_of(self.folder))
        self.scratch.mkdir()

    def _update_journal(self, **changes: object) -> None:
        """Change fields of the journal, and write it."""
        self.journal = replace(self.journal, **changes)
        self._entry.write(self.journal)

    def _refuse_foreign_old(self) -> None:
        """Raise `BadInput` if something that is no environment of ours lies where the replaced one is to go."""
        if os.path.lexists(self._places.old) and not self._places.replaced:
            raise _unknown_folder_error(self._places.old)

    def restart(self, uv: Uv) -> None:
        """Empty the folder, and make an empty environment in it, to fill it anew."""
        _empty_folder(self.folder)
        self.scratch.mkdir()
        uv.make(self.folder)

    def start_syncing(self) -> None:
        """Start to bring what was written so far to the disk itself, on another thread, as it may take seconds."""
        self._syncing = Ahead(partial(sync_file_system, self.folder))

    def put_in_place(self, check: Callable[[], None], kernel: KernelNote | None, register: Callable[[], None]) -> None:
        """Rename the new environment to its target once all is on the disk, and call `register` for its kernel.

        `check` is called while that lasts and may raise. The environment that stood there stays beside it, in place of
        an older one. Raises `WorkFailed` where it cannot be written or moved, or something has come to the target.
        """
        if self._syncing:
            with suppress(OSError):  # it is tried again
                self._syncing.result(check)
        bring_to_disk(self.folder, check)
        place, old = self._places.target, self._places.old
        with uninterrupted():
            if kernel:
                self._update_journal(kernel=kernel)
                register()
            if self.journal.goes:
                self._refuse_foreign_old()
                self._update_journal(drops=inode_of(old))
            try:
                if self.journal.drops:
                    _remove_folder(old)
                if self.journal.goes:
                    retry_while_in_use(partial(place.rename, old))
                elif place.is_dir():
                    self.folder.chmod(stat.S_IMODE(place.stat().st_mode))
                    if os.name == "nt":
                        retry_while_in_use(place.rmdir)  # a rename replaces no folder there, however empty
                retry_while_in_use(partial(self.folder.rename, place))
            except OSError as error:
                is_old_there = self.journal.goes and inode_of(place) == self.journal.goes
                if is_old_there or error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                    raise _not_moved_error(self.target, error) from error
                raise WorkFailed(
                    _("{path} was created while the installation was running, and is left as it is.", path=place),
                    hint=_("Choose another folder.", option="--target"),
                ) from error
            with suppress(OSError):
                sync_to_disk(place.parent)
            self.is_placed = True
            self._entry.forget()


def bring_to_disk(folder: Path, check: Callable[[], None]) -> None:
    """Wait until all that was written to a folder is on the disk itself; `check` is called meanwhile and may raise.

    Raises `WorkFailed` if it cannot be written.
    """
    try:
        Ahead(partial(sync_file_system, folder)).result(check)
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
                    settle_journal(entry, work.journal)


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
    places = Places(journal.target, follow=False)
    target, new, old = places.target, places.new, places.old
    if journal.kind == "change":
        raise WorkFailed(
            _("A change of the packages in {path} was interrupted.", path=target),
            hint=_("`assistant recover` puts back what it held before."),
        )
    try:
        if _is_journaled(old, journal.drops):
            _remove_folder(old)
        is_back = inode_of(old) in {journal.comes, journal.goes} - {0} and journal.kind != "remove"
        if is_back and not os.path.lexists(target):
            retry_while_in_use(partial(old.rename, target))
        if journal.kind == "undo" and inode_of(new) == journal.goes and not os.path.lexists(old):
            retry_while_in_use(partial(new.rename, old))
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
    return next((folder for folder in (new, old) if inode_of(folder) == journal.goes), None)


def _delete_journaled(folder: Path, inode: int) -> None:
    """Delete a folder by its inode, or an empty one; raise `BadInput` for any other, and do nothing without one."""
    if _is_journaled(folder, inode):
        _remove_folder(folder)
    elif os.path.lexists(folder):
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
    retry_while_in_use(folder.rmdir)


def _empty_folder(folder: Path) -> None:
    """Remove what a folder holds, `pyvenv.cfg` last: it shows that the folder is ours if this is killed midway."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name == SIGN):
        discard(entry) if entry.is_symlink() or not entry.is_dir() else discard_folder(entry)


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


def previous_marker(target: Path) -> Marker | None:
    """Return the marker of the environment that the one at a target replaced; None if there is none to bring back."""
    old = Places(target).old
    return read_marker(old, target) if inode_of(old) and read_marker(target) else None


def undo_replacement(target: Path) -> None:
    """Exchange an environment of ours and the one that it replaced, which lies beside it, with their kernels.

    Raises `BadInput` if there is none, and `WorkFailed` if it cannot be moved.
    """
    with uninterrupted(), holding(target) as (entry, _lock):
        now, before = read_marker(target), previous_marker(target)
        if now is None or before is None:
            raise nothing_to_undo_error(target)
        places, environment = Places(target), before.environment
        place, new, old = places.target, places.new, places.old
        places.refuse_unknown()
        note = note_kernel(environment.kernel, interpreter(target)) if environment.kernel else None
        journal = Journal(kind="undo", target=str(place), comes=inode_of(old), goes=inode_of(place), kernel=note)
        entry.write(journal)
        try:
            if environment.kernel:
                register_kernel(before.plan, environment)
            retry_while_in_use(partial(place.rename, new))
            retry_while_in_use(partial(old.rename, place))
            retry_while_in_use(partial(new.rename, old))
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
    places, freed = Places(target), 0
    if previous_marker(target):
        with holding(target) as (entry, _lock):
            for root, _folders, files in os.walk(places.old):
                for name in files:
                    with suppress(OSError):
                        status = os.lstat(f"{root}/{name}")
                        freed += status.st_size if status.st_nlink == 1 else 0  # else it stays in uv's cache
            journal = Journal(kind="remove", target=str(places.target), drops=inode_of(places.old))
            entry.write(journal)
            settle_journal(entry, journal)
    return freed


def remove_folders(target: Path) -> None:
    """Delete an environment and the one that it replaced; if this is killed, the next start finishes or restores it."""
    with uninterrupted(), holding(target) as (entry, _lock):
        places = Places(target)
        place, drops = places.target, places.replaced
        places.refuse_unknown()
        journal = Journal(kind="remove", target=str(place), goes=inode_of(place), drops=drops)
        entry.write(journal)
        try:
            if drops:
                _remove_folder(places.old)
            retry_while_in_use(partial(place.rename, places.new))
        except OSError as error:
            with suppress(AssistantError):  # the next start goes on with what could not be deleted
                settle_journal(entry, journal)
            raise not_removed_error(target, error) from error
        settle_journal(entry, journal)

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
from assistant.install.inspect_env import interpreter
from assistant.install.journal import Entry, Journal, entry_of, locked, not_started
from assistant.install.kernel import KernelNote, note_kernel, put_kernel_back, register_kernel, remove_kernel
from assistant.install.marker import Marker, is_ours, marker_in, read_marker
from assistant.model.errors import AssistantError, BadInput, Cancelled, WorkFailed
from assistant.model.record import replace

SIGN = "pyvenv.cfg"  # in each environment of ours; it is deleted last
SCRATCH = ".scratch"  # in the folder that is built: for uv's temporary files; it goes before the environment is placed


def new_folder(target: Path) -> Path:
    """Return the folder in which an environment is built."""
    return _beside(_real_path(target), "new")


def old_folder(target: Path) -> Path:
    """Return the folder of the environment that this one replaced."""
    return _beside(_real_path(target), "old")


def _beside(place: Path, name: str) -> Path:
    return place.with_name(f".{place.name}.{name}")


def _real_path(target: Path) -> Path:
    """Return where an environment really lies, whichever links lead there."""
    return Path(os.path.realpath(target))


def takes_a_rename(target: Path) -> bool:
    """Return whether a folder can be renamed to a target: it is no file system of its own, and its parent is ours."""
    return not os.path.ismount(_real_path(target)) and may_write(_real_path(target).parent)


class Building:
    """An environment that is being built aside; the programs that run for it hold `lock`."""

    def __init__(self, target: Path, entry: Entry, lock: Lock) -> None:
        self.target, self.lock = target, lock
        self.place = _real_path(target)  # a link that is put there meanwhile leads nowhere else
        self.folder, self._old = _beside(self.place, "new"), _beside(self.place, "old")
        self.scratch = self.folder / SCRATCH
        self.is_placed = False
        self._entry = entry
        self._syncing: Ahead[None] | None = None
        self._journal = Journal(
            kind="install", target=str(self.place), goes=number_of(self.place) if is_ours(self.place) else 0
        )
        self._begin()

    def _begin(self) -> None:
        """Write the journal, make the folder, and note its number."""
        place = self.place
        if os.path.lexists(self.folder):
            raise _unknown(self.folder)
        if self._journal.goes and os.path.lexists(self._old) and not _is_replaced(self._old):
            raise _unknown(self._old)
        missing = [folder for folder in place.parents if not folder.exists()]
        self._note(parents=tuple(map(str, missing)))
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o755)
        except OSError as error:
            settle_journal(self._entry, self._journal)
            raise not_started(place.parent, error) from error
        self._note(comes=number_of(self.folder))
        self.scratch.mkdir()

    def _note(self, **changes: object) -> None:
        self._journal = replace(self._journal, **changes)
        self._entry.write(self._journal)

    def restart(self) -> None:
        """Empty the folder, to fill it anew."""
        _empty(self.folder)
        self.scratch.mkdir()

    def settle_ahead(self) -> None:
        """Start to bring to the disk itself what was written so far, on another thread: it may take seconds."""
        self._syncing = Ahead(lambda: settle_all(self.folder))

    def put_in_place(self, check: Callable[[], None], kernel: KernelNote | None, register: Callable[[], None]) -> None:
        """Rename the new environment to its place once all is on the disk, and have its kernel registered.

        `check` is called while that lasts and may raise. The environment that stood there stays beside it, in place of
        an older one. Raises `WorkFailed` where it cannot be written or moved.
        """
        if self._syncing:
            with suppress(OSError):  # it is tried again
                self._syncing.result(check)
        bring_to_disk(self.folder, check)
        with uninterrupted():
            self._note(kernel=kernel)
            register()
            if self._journal.goes:
                self._step_aside()
            self._arrive()
            self.is_placed = True
            self._entry.forget()

    def _step_aside(self) -> None:
        """Move the environment that stands there to its place beside."""
        place, old = self.place, self._old
        if os.path.lexists(old) and not _is_replaced(old):
            raise _unknown(old)
        self._note(drops=number_of(old))
        try:
            if self._journal.drops:
                _discard(old)
            patiently(lambda: place.rename(old))
        except OSError as error:
            raise _in_use(self.target, error) from error

    def _arrive(self) -> None:
        place, folder = self.place, self.folder
        try:
            if place.is_dir() and not self._journal.goes:
                folder.chmod(stat.S_IMODE(place.stat().st_mode))
                if os.name == "nt":
                    patiently(place.rmdir)  # a rename replaces no folder there, however empty
            patiently(lambda: folder.rename(place))
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                raise _in_use(self.target, error) from error
            raise WorkFailed(
                _("{path} was created while the installation was running, and is left as it is.", path=place),
                hint=_("Choose another folder.", option="--target"),
            ) from error
        with suppress(OSError):
            settle(place.parent)

    def roll_back(self) -> Path | None:
        """Leave everything as it was; return as `settle_journal` does."""
        return settle_journal(self._entry, self._journal)


def bring_to_disk(folder: Path, check: Callable[[], None]) -> None:
    """Wait until what was written is on the disk itself; `check` is called meanwhile and may raise.

    Raises `WorkFailed` where it cannot be written.
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
    """Hold a target in which an environment is made or replaced; without `put_in_place` everything is as it was.

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
    """Hold a target for one writer, once what a killed run left there is settled."""
    with locked(target) as (entry, lock):
        before = entry.read()
        if before:
            with uninterrupted():
                settle_journal(entry, before)
        yield entry, lock


def settle_folders(target: Path) -> None:
    """Settle what a run that was killed while it built, undid or removed left at a target, before it is looked at."""
    before = entry_of(target).read()
    if before and before.kind != "change":
        with holding(target):
            pass


def settle_journal(entry: Entry, journal: Journal) -> Path | None:
    """Finish or roll back what a journal records, by which of the folders are there; then forget it.

    Returns where the environment is that stood there, if something of somebody else's has taken its place meanwhile.
    Raises `WorkFailed` or `BadInput` where that cannot be done; the journal stays then.
    """
    target = Path(journal.target)
    if journal.kind == "change":
        raise WorkFailed(
            _("A change of the packages in {path} was interrupted.", path=target),
            hint=_("`assistant recover` puts back what it held before."),
        )
    new = _beside(target, "new")
    try:
        _move_to_places(journal)
        has_arrived = journal.comes != 0 and number_of(target) == journal.comes
        if journal.kernel and not has_arrived:
            put_kernel_back(journal.kernel)
        if journal.kind != "undo":
            _delete(new, journal.goes if journal.kind == "remove" else journal.comes)
        for folder in journal.parents if not os.path.lexists(target) else ():
            with suppress(OSError):  # somebody else's files are in it by now
                Path(folder).rmdir()
    except OSError as error:
        raise not_removed(new, error) from error
    entry.forget()
    if journal.kind == "remove" or not journal.goes or number_of(target) in {journal.comes, journal.goes}:
        return None
    return next((folder for folder in (new, _beside(target, "old")) if number_of(folder) == journal.goes), None)


def _move_to_places(journal: Journal) -> None:
    """Move the environments of a journal to where they belong, and finish the deletion of an older one."""
    place = Path(journal.target)
    new, old = _beside(place, "new"), _beside(place, "old")
    ours = {journal.comes, journal.goes} - {0}
    if _is_environment(old, journal.drops):
        _discard(old)
    if journal.kind != "remove" and not os.path.lexists(place) and number_of(old) in ours:
        patiently(lambda: old.rename(place))
    if journal.kind == "undo" and number_of(new) == journal.goes and not os.path.lexists(old):
        patiently(lambda: new.rename(old))


def _delete(new: Path, ours: int) -> None:
    """Delete a folder that is ours, or was just made by us and not noted yet; raise `BadInput` for any other."""
    if not os.path.lexists(new):
        return
    if _is_environment(new, ours):
        _discard(new)
        return
    try:
        new.rmdir()
    except OSError:
        raise _unknown(new) from None


def _is_environment(folder: Path, number: int) -> bool:
    """Return whether a folder is the one that a journal means, with an environment in it or less."""
    if not number or number_of(folder) != number:
        return False
    names = set(os.listdir(folder))  # noqa: PTH208 - names
    return SIGN in names or names <= {SCRATCH}


def _discard(folder: Path) -> None:
    """Remove an environment of ours; raises `OSError`."""
    _empty(folder)
    patiently(folder.rmdir)


def _empty(folder: Path) -> None:
    """Remove what an environment of ours holds, its sign last, so that it is known where this is killed midway."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name == SIGN):
        discard(entry) if entry.is_symlink() or not entry.is_dir() else discard_folder(entry)


def _is_replaced(old: Path) -> bool:
    """Return whether what lies beside an environment is one that it replaced, and no folder of somebody's."""
    return number_of(old) != 0 and is_ours(old)


def number_of(folder: Path) -> int:
    """Return the system's number of a folder of this user's; 0 where none is there, for a link, and for another's."""
    try:
        found = folder.lstat()
    except OSError:
        return 0
    mine = os.name == "nt" or found.st_uid == os.geteuid()
    return found.st_ino if stat.S_ISDIR(found.st_mode) and mine else 0


def _unknown(folder: Path) -> BadInput:
    return BadInput(
        _("{path} does not belong to any installation that you started here, so it is left alone.", path=folder),
        hint=_("If nobody else is installing there, look inside, delete it and start again."),
    )


def _in_use(path: Path, error: OSError) -> WorkFailed:
    return WorkFailed(
        _("{path} cannot be moved: {reason}.", path=path, reason=error.strerror or error),
        hint=_("All changes were rolled back. Close what uses it, such as a notebook, and start again."),
    )


def not_removed(path: Path, error: OSError) -> WorkFailed:
    """Return the failure for a folder that the system does not let go."""
    return WorkFailed(
        _("{path} cannot be removed: {reason}.", path=path, reason=error.strerror or error),
        hint=_("Close what uses it, then start again."),
    )


def refuse_unknown(target: Path) -> None:
    """Raise `BadInput` where something stands in the place of what is built, and no journal of this user names it."""
    if os.path.lexists(new_folder(target)) and entry_of(target).read() is None:
        raise _unknown(new_folder(target))


def previous(target: Path) -> Marker | None:
    """Return the marker of the environment that one of ours replaced, and that lies beside it; None without one."""
    old = old_folder(target)
    return marker_in(old, target) if number_of(old) and read_marker(target) else None


def undo_replacement(target: Path) -> None:
    """Bring back the environment that one of ours replaced; that one takes its place beside, so that nothing is lost.

    Raises `BadInput` where there is none, and `WorkFailed` where it cannot be moved.
    """
    with uninterrupted(), holding(target) as (entry, _lock):
        now, before = read_marker(target), previous(target)
        if now is None or before is None:
            raise nothing_to_undo(target)
        place, new, old = _real_path(target), new_folder(target), old_folder(target)
        refuse_unknown(target)
        made = before.environment
        note = note_kernel(made.kernel, interpreter(target)) if made.kernel else None
        journal = Journal(kind="undo", target=str(place), comes=number_of(old), goes=number_of(place), kernel=note)
        entry.write(journal)
        try:
            if made.kernel:
                register_kernel(before.plan, made)
            patiently(lambda: place.rename(new))
            patiently(lambda: old.rename(place))
            patiently(lambda: new.rename(old))
        except (OSError, WorkFailed) as error:
            settle_journal(entry, journal)
            raise error if isinstance(error, WorkFailed) else _in_use(target, error) from error
        entry.forget()
        if now.environment.kernel and now.environment.kernel != made.kernel:
            remove_kernel(now.environment.kernel, interpreter(target))


def nothing_to_undo(target: Path) -> BadInput:
    """Return the error for an environment whose last change cannot be undone."""
    return BadInput(
        _("There is no change to {path} that could be undone.", path=target),
        hint=_("What it held before is kept until the next change, unless it is deleted before."),
    )


def forget_previous(target: Path) -> int:
    """Delete the environment that one of ours replaced; return how many bytes that freed."""
    old, freed = old_folder(target), 0
    if previous(target):
        with holding(target) as (entry, _lock):
            freed = _bytes_alone(old)
            journal = Journal(kind="remove", target=str(_real_path(target)), drops=number_of(old))
            entry.write(journal)
            settle_journal(entry, journal)
    return freed


def _bytes_alone(folder: Path) -> int:
    """Return the bytes of the files that have no other name, such as one in uv's cache."""
    total = 0
    for root, _folders, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                found = os.lstat(f"{root}/{name}")
                total += found.st_size if found.st_nlink == 1 else 0
    return total


def remove(target: Path) -> None:
    """Remove an environment with what it replaced; killed midway, the next start goes on with it or finds it whole."""
    with uninterrupted(), holding(target) as (entry, _lock):
        place, new, old = _real_path(target), new_folder(target), old_folder(target)
        refuse_unknown(target)
        drops = number_of(old) if _is_replaced(old) else 0
        journal = Journal(kind="remove", target=str(place), goes=number_of(place), drops=drops)
        entry.write(journal)
        try:
            if drops:
                _discard(old)
            patiently(lambda: place.rename(new))
        except OSError as error:
            with suppress(AssistantError):  # the next start goes on with what could not be deleted
                settle_journal(entry, journal)
            raise not_removed(target, error) from error
        settle_journal(entry, journal)

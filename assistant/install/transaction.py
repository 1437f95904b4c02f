"""An installation as a transaction: it ends with all of the plan, or with the target as it was.

Before the first change a journal lies in the user's private state folder; what is to come is made in a work folder, so
that each change is a rename. A new environment is put in place by one rename, which is the commit; of one that stands,
the commit is the journal's end, by a rename as well, which needs no room on a full disk. All data is on the disk itself
before that. Somebody who cancels does not wait for files to be deleted: another process does that. What a killed
installation left is rolled back later, each target by itself.
"""

from __future__ import annotations

import errno
import os
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path

from assistant.host.files import discard, may_write, patiently, private_folder, settle, settle_all
from assistant.host.folders import user_state
from assistant.host.lock import Holder, Lock
from assistant.host.parallel import Ahead
from assistant.host.process import uninterrupted
from assistant.i18n import Text, _, sentences
from assistant.install.kernel import KernelNote, put_kernel_back
from assistant.install.swap import Change, Identity, identities, put_back, spare, swap
from assistant.install.work_folder import (
    WORK,
    Entry,
    Journal,
    Layout,
    carries,
    delete,
    delete_later,
    entries,
    entry_of,
    layout,
    make,
    not_removed,
    notes_folder,
    refuse_unknown,
    sweep_scratch,
    work_folders,
)
from assistant.model.errors import AssistantError, Cancelled, WorkFailed
from assistant.model.record import Record, replace


class Transaction:
    """One installation in progress. It holds the target's lock, and so do the installers that run in it.

    `kept` are the folders into which files were moved that are not ours.
    """

    def __init__(self, entry: Entry, lock: Lock, places: Layout, journal: Journal) -> None:
        self.target, self.lock, self.layout = Path(journal.target), lock, places
        self.kept: tuple[Path, ...] = ()
        self._entry, self._journal = entry, journal
        self._settling: Ahead[None] | None = None

    @property
    def committed(self) -> bool:
        """Whether all stands as it was meant to, or was rolled back: only the work folder is left."""
        return self._journal.kind in {"over", "undone"}

    def change(self, change: Change) -> dict[str, Identity]:
        """Carry out a change in a target that stands, once it is written down with the identity of each file.

        Returns those identities, of all that came. Raises `WorkFailed` where something cannot be moved: on Windows, for
        one, a file that a kernel has loaded.
        """
        came = identities(self.layout.staged)
        self._entry.write_manifest(came)
        self._note(replace(self._journal, change=change))
        try:
            swap(change, self.target, self.layout.staged, self.layout.aside)
        except OSError as error:
            raise WorkFailed(
                _("{path} cannot be moved: {reason}.", path=error.filename, reason=error.strerror or error),
                hint=_("All changes were rolled back. Close what uses it, such as a notebook, and start again."),
            ) from error
        return came

    def settle_ahead(self) -> None:
        """Start to bring to the disk itself what was written so far, on another thread: it may take seconds."""
        self._settling = Ahead(self._sync)

    def settle(self, check: Callable[[], None]) -> None:
        """Wait until all is on the disk itself; `check` is called meanwhile and may raise.

        Raises `WorkFailed` when it cannot be written.
        """
        try:
            if self._settling:
                self._settling.result(check)
            Ahead(self._sync).result(check)
        except OSError as error:  # the work folder has gone, or the disk fails
            raise WorkFailed(
                _("The installation cannot be written to the disk: {reason}.", reason=error.strerror or str(error)),
                hint=_("All changes were rolled back. Check the disk, or choose another one.", option="--target"),
            ) from error

    def _sync(self) -> None:
        settle_all(self.layout.work)

    def commit(self, kernel: KernelNote | None = None, register: Callable[[], None] = lambda: None) -> None:
        """Put a new environment in place, or let the change stand; `register` writes the kernel, where there is one.

        Call `settle` before. Raises `WorkFailed` when something has come to stand where the environment goes.
        """
        with uninterrupted():
            top = self.layout.top
            self._note(replace(self._journal, kernel=kernel, inode=top.stat().st_ino if top else 0))
            over = replace(self._journal, kind="over")
            end = self._entry.draft(over)
            try:
                register()
                if top:
                    self._place(top)
            except BaseException:
                discard(end)
                raise
            with suppress(OSError):  # the commit is made: what follows cannot fail it
                self._entry.put(end)
            self._journal = over

    def keep_old(self, folder: Path) -> dict[str, Identity]:
        """Move what stepped aside into a folder of the target, call it after `commit`; return the identities there.

        The user's own files that were in the way are not among them: they go where `spare` puts them.
        """
        self.kept = (*self.kept, *spare(self._journal.change, self.target, self.layout.aside))
        if self.layout.aside.is_dir():
            patiently(lambda: self.layout.aside.rename(folder))
        return identities(folder)

    def undo(self) -> None:
        """Put everything back as it was; stopped midway, it can be done again."""
        if not self.committed:
            self.kept = (*self.kept, *_undo(self._entry, self._journal))
            self._journal = replace(self._journal, kind="undone")
            with suppress(OSError):  # on a full disk; the journal is deleted soon
                self._entry.write(self._journal)

    def close(self, *, later: bool = False) -> None:
        """Delete the work folder, or have it deleted `later`; what cannot be deleted now waits for the next start."""
        if not self.committed:
            return  # the rollback failed: the next start tries again
        if later:
            with suppress(OSError):
                self._delete_later()
                return
        with suppress(AssistantError):
            self.kept = (*self.kept, *settle_journal(self._entry, self._journal)[1])

    def _delete_later(self) -> None:
        """Move the work folder out of the target, the notes away from its name, and let another process delete them."""
        work, token = self.layout.work, self._journal.token
        if self.layout.top is None and carries(work, token):
            work = patiently(lambda: work.rename(self._journal.gone))
        notes = self._entry.apart(token)
        delete_later(work, [notes.manifest, notes.where, notes.journal])

    def _place(self, top: Path) -> None:
        """Rename the new environment to its place; where a parent of it was made meanwhile, it alone is renamed."""
        place, build = Path(self._journal.place), self.layout.build
        try:
            if top != build and os.path.lexists(place) and not os.path.lexists(self.target):
                self.target.parent.mkdir(parents=True, exist_ok=True)
                top, place = build, self.target
                self._note(replace(self._journal, place=str(place), inode=top.stat().st_ino))
            if place.is_dir():
                top.chmod(stat.S_IMODE(place.stat().st_mode))
            if place.is_dir() and os.name == "nt":
                patiently(place.rmdir)  # a rename replaces no folder there, however empty
            patiently(lambda: top.rename(place))
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                raise
            raise WorkFailed(
                _("{path} was created while the installation was running, and is left as it is.", path=place),
                hint=_("Choose another folder.", option="--target"),
            ) from error
        with suppress(OSError):
            settle(place.parent)

    def _note(self, journal: Journal) -> None:
        """Write the journal, and keep it as the current one."""
        try:
            self._entry.write(journal)
        except OSError as error:
            raise WorkFailed(
                _(
                    "{path} cannot be written: {reason}.",
                    path=self._entry.journal.parent,
                    reason=error.strerror or error,
                ),
                hint=_("All changes were rolled back. Free some space there and start again."),
            ) from error
        self._journal = journal


@contextmanager
def transaction(target: Path, *, stands: bool) -> Iterator[Transaction]:
    """Hold a target for one installation; leaving the block without a commit rolls everything back.

    `stands` says that an environment is there. Raises `WorkFailed` naming who works there already, when the target or
    the user's state folder cannot be written, or what a killed run left cannot be rolled back.
    """
    entry, opened, lock = entry_of(target), None, None
    shield: Callable[[], AbstractContextManager[None]] = nullcontext
    later = False
    try:
        with uninterrupted():
            lock = _lock(entry, target)
            opened = _begin(entry, target, lock, stands=stands)
        yield opened
        opened.undo()
    except BaseException as error:
        if isinstance(error, Cancelled | KeyboardInterrupt):
            shield, later = uninterrupted, True  # somebody impatient presses Ctrl-C twice
        with shield():
            if opened:
                opened.undo()
                _explain_undo(error, opened)
        raise
    finally:
        with shield() if later else uninterrupted():
            if opened:
                opened.close(later=later)
            if lock:
                lock.release()


def _begin(entry: Entry, target: Path, lock: Lock, *, stands: bool) -> Transaction:
    """Clear what a killed run left, write the first journal, and make the work folder."""
    kept = _clear(entry, target)
    token = uuid.uuid4().hex
    places = layout(target, token, stands=stands)
    inside = places.top is None
    journal = Journal(
        kind="existing" if inside else "new",
        target=str(target),
        token=token,
        work=str(places.work),
        gone=_exit_path(target, token) if inside else "",
        place=str(places.place or ""),
    )
    try:
        _announce(entry, journal)
    except OSError as error:
        settle_journal(entry, journal)
        raise _no_folder(places.work.parent, error) from error
    opened = Transaction(entry, lock, places, journal)
    opened.kept = kept
    return opened


def _clear(entry: Entry, target: Path) -> tuple[Path, ...]:
    """Settle what a killed run left, and refuse a work folder of somebody else; return as `settle_journal` does."""
    before = entry.read()
    kept = settle_journal(entry, before)[1] if before else ()
    refuse_unknown(target)
    return kept


def _announce(entry: Entry, journal: Journal) -> None:
    """Write a journal, then make the work folder that it names."""
    entry.write(journal)
    try:
        make(Path(journal.work), journal.token)
    except AssistantError:
        entry.forget()  # somebody else's work folder
        raise


def remove(target: Path) -> None:
    """Remove a whole environment; killed midway, the next start goes on with it, or finds it untouched."""
    entry = entry_of(target)
    lock = _lock(entry, target)
    try:
        _clear(entry, target)
        token = uuid.uuid4().hex
        beside = may_write(target.parent) and not os.path.ismount(target)
        work = target.parent / f"{WORK}-{token}" if beside else target / WORK
        journal = Journal(kind="removed", target=str(target), token=token, work=str(work))
        _announce(entry, journal)
        for name in [target] if beside else [path for path in target.iterdir() if path != work]:
            patiently(partial(name.rename, work / f"{name.name}.gone"))
        settle_journal(entry, journal)
    except OSError as error:
        raise not_removed(target, error) from error
    finally:
        lock.release()


def settle_journal(entry: Entry, journal: Journal) -> tuple[bool, tuple[Path, ...]]:
    """Roll back what a journal records, or finish it where the commit was made; then delete the work folder.

    Returns whether the installation stands, and the folders into which things were moved that are not ours. Raises
    `WorkFailed` or `BadInput` where that cannot be done; the journal stays then.
    """
    kept: tuple[Path, ...] = ()
    stands = journal.kind == "over" or _is_placed(journal)
    if journal.kind in {"new", "existing"} and not stands:
        kept = _undo(entry, journal)
        entry.write(replace(journal, kind="undone"))
    elif stands and carries(Path(journal.work), journal.token):
        kept = spare(journal.change, Path(journal.target), Path(journal.work) / "aside")
    for work in filter(None, (journal.gone, journal.work)):
        delete(Path(work), journal.token)
    entry.forget()
    return stands, kept


def _is_placed(journal: Journal) -> bool:
    """Return whether the rename that puts a new environment in place was done."""
    if journal.kind != "new" or not journal.inode:
        return False
    with suppress(OSError):
        return Path(journal.place).lstat().st_ino == journal.inode
    return False


def _undo(entry: Entry, journal: Journal) -> tuple[Path, ...]:
    """Put a kernel and a standing environment back as they were; return where things are that are not ours.

    A new environment is not in place yet: it goes with the work folder.
    """
    if journal.kernel:
        put_kernel_back(journal.kernel)
    target, work = Path(journal.target), Path(journal.work)
    if journal.kind != "existing" or journal.change == Change():
        return ()
    if not carries(work, journal.token):
        raise _gone(target, work)
    return put_back(journal.change, target, work / "staged", work / "aside", entry.read_manifest())


def busy(target: Path, holder: Holder) -> WorkFailed:
    """Return the failure that names who works in a target."""
    since = datetime.fromtimestamp(holder.since, tz=UTC).astimezone().strftime("%H:%M")
    return WorkFailed(
        _(
            "Another installation is running in {path}: process {pid} of {user} on {where}, since {since}.",
            path=target,
            pid=holder.pid,
            user=holder.user,
            where=holder.where.partition(" ")[0],
            since=since,
        ),
        hint=_("Wait until it has finished, or end it, and start again."),
    )


def _lock(entry: Entry, target: Path) -> Lock:
    """Take the lock of a target; raise `WorkFailed` where another holds it, or the state folder cannot be written."""
    try:
        private_folder(user_state())
        private_folder(notes_folder())
    except OSError as error:
        raise _no_folder(user_state(), error) from error
    lock = Lock(entry.lock)
    if holder := lock.take():
        raise busy(target, holder)
    return lock


def _exit_path(target: Path, token: str) -> str:
    """Return the folder beside a target to which its work folder can be moved, "" where no rename leads out of it."""
    parent = target.parent
    outside = not os.path.ismount(target) and not target.is_symlink() and may_write(parent)
    return str(parent / f"{WORK}-{token}") if outside else ""


def _explain_undo(error: BaseException, work: Transaction) -> None:
    """Add to a failure what stands now, and where files are that somebody else put among ours meanwhile."""
    if not isinstance(error, AssistantError):
        return
    if isinstance(error, Cancelled):
        again = _("{path} is as it was before. Start the step again when you are ready.")
        error.hint = again.format(path=work.target)
    if work.kept:
        text = _("Files that were not part of the installation have been moved to {paths}.")
        error.hint = sentences((error.hint, text.format(paths=", ".join(map(str, work.kept)))))


def _no_folder(path: Path, error: OSError) -> WorkFailed:
    return WorkFailed(
        _("{path} cannot be written to, so nothing was started: {reason}.", path=path, reason=error.strerror or error),
        hint=_("Free some space there, or check that you may write to it, and start again."),
    )


def _gone(target: Path, work: Path) -> WorkFailed:
    return WorkFailed(
        _(
            "An installation was changing {path}, but {work}, which held the previous files, has been replaced.",
            path=target,
            work=work,
        ),
        hint=_("Put the original folder back, or run `assistant recover --give-up`, which lists what is left where."),
    )


class Outcome(StrEnum):
    """Outcome for one target."""

    TAKEN_BACK = "taken-back"
    STANDS = "stands"  # it had been committed; only the work folder was left to delete
    REMOVED = "removed"  # the environment was being removed
    FAILED = "failed"  # `error` says why; nothing was removed


class Recovered(Record, frozen=True):
    """One target; `kept` are the folders into which files were moved that the assistant did not make."""

    target: str
    outcome: Outcome
    kept: tuple[str, ...] = ()
    error: Text = ""
    hint: Text = ""


def recover(only: Path | None = None) -> tuple[Recovered, ...]:
    """Roll back what killed installations left, in one target or in all; harmless when repeated."""
    with suppress(OSError):
        private_folder(user_state())
    sweep_scratch()
    found = [entry_of(only)] if only else list(entries())
    return tuple(outcome for entry in found if (outcome := _recovered(entry, only)))


def make_whole(target: Path) -> None:
    """Roll back what a killed installation left in a target, before anything is judged by what stands there.

    `target` is a folder, or the Python of an environment. Raises `WorkFailed` or `BadInput` where somebody is
    installing there right now, or it cannot be rolled back.
    """
    above = target.parents[:2] if target.name.startswith("python") else ()
    for place in (target, *above):
        if os.path.lexists(entry_of(place).journal):
            try:
                _settled(entry_of(place), place)
            except OSError as error:
                raise not_removed(place, error) from error


def _recovered(entry: Entry, only: Path | None) -> Recovered | None:
    """Roll back or finish one target, and say how that ended; None where there was nothing to do."""
    target = str(only or (*entry.places(), entry.journal)[0])
    try:
        return _settled(entry, only)
    except AssistantError as error:
        return Recovered(target=target, outcome=Outcome.FAILED, error=error.message, hint=error.hint)
    except OSError as error:
        return Recovered(target=target, outcome=Outcome.FAILED, error=f"{target}: {error.strerror or error}.")


def _settled(entry: Entry, only: Path | None) -> Recovered | None:
    """Roll back or finish one target under its lock; None where there was nothing to do. Raises where it cannot."""
    lock = Lock(entry.lock)
    try:
        holder = lock.take() if entry.known else None
        if holder:
            raise busy(only or Path(str((*entry.places(), entry.journal)[0])), holder)
        journal = entry.read()
        if journal is None:
            entry.forget()
            if only:
                refuse_unknown(only)
            return None
        stands, kept = settle_journal(entry, journal)
        outcome = Outcome.STANDS if stands else Outcome.TAKEN_BACK
        outcome = Outcome.REMOVED if journal.kind == "removed" else outcome
        return Recovered(target=journal.target, outcome=outcome, kept=tuple(map(str, kept)))
    finally:
        lock.release()


def give_up(only: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Forget what cannot be rolled back; return, by target, the work folders that stay with whatever they hold."""
    left: dict[str, tuple[str, ...]] = {}
    for one in recover(only):
        if one.outcome is not Outcome.FAILED:
            continue
        for entry in [entry_of(only)] if only else list(entries()):
            places = entry.places()
            if one.target in {str(only), *places, str(entry.journal)}:
                _forget(entry)
                stays = [*places[1:], *(map(str, work_folders(Path(one.target))) if places or only else ())]
                left[one.target] = tuple(path for path in dict.fromkeys(stays) if os.path.lexists(path))
    return left


def _forget(entry: Entry) -> None:
    """Delete the files about a target; a folder that stands in place of one is moved aside: it may be anybody's."""
    for path in (entry.journal, entry.manifest, entry.where, entry.lock):
        with suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                patiently(partial(path.rename, path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.set-aside")))
            else:
                discard(path)

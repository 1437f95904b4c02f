"""Makes, replaces, restores and removes environments: built and verified beside the target, then renamed to it.

What a user names as a target is resolved to a path here, too, and it is checked whether an environment may be made or
changed there: permission, disk space, length of paths, OneDrive.

Beside an environment NAME there may be `.NAME.new`, which is being built or goes, and `.NAME.old`, which NAME replaced
and which `undo` brings back:

    NAME  .NAME.new  .NAME.old   what happened                             what the next start does
    yes   yes        -/yes       ended during the build                    deletes .NAME.new
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

from assistant.host.base import Host
from assistant.host.files import (
    discard,
    discard_folder,
    fsync_path,
    full_path,
    is_in_onedrive,
    is_redirected,
    is_writable,
    retry_while_in_use,
    shared_environments_folder,
    sync_file_system,
)
from assistant.host.lock import Lock
from assistant.host.process import Background, defer_signals
from assistant.i18n import Text, _
from assistant.install.journal import (
    Entry,
    Journal,
    delete_later,
    entry_for,
    locked,
    not_removed_error,
    not_started_error,
)
from assistant.install.kernel import KernelNote, record_kernel, register_kernel, remove_kernel, restore_kernel
from assistant.install.projects import project_environment
from assistant.install.site import Marker, Site, interpreter, is_environment, is_ours, read_marker
from assistant.install.uv import Uv
from assistant.model.errors import AssistantError, BadInput, Cancelled, WorkFailed
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import DISK_FACTOR, KERNEL_TARGET, Plan
from assistant.model.record import replace

LONGEST_PATH = 240  # chosen: scripts name their Python in their first line, of 256 bytes at most (Linux, binfmts.h)
# MAX_PATH without its end; the path of a folder has to leave room for a name of 8.3 characters:
# https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation
_LONGEST_ON_WINDOWS = 259
_SHORT_NAME = 12
LONG_PATHS = r"HKLM\SYSTEM\CurrentControlSet\Control\FileSystem"


def resolve_target(text: str, host: Host) -> Path:
    """Return the path that a target stands for: the folder of an environment, or its Python; no program is run.

    A target is "kernel" (the Python of `host`), or the path of an environment, of its Python, or of the project of uv
    or pixi that manages it. Raises `BadInput` for a path that no environment can have, and for an unknown Python.
    """
    own_python = str(host.facts("platform").get("executable") or "")
    if text == KERNEL_TARGET and not own_python:
        raise BadInput(
            _("{path} is not an environment.", path=text),
            hint=_("Give the folder of a virtual environment, or its Python."),
        )
    target = Path(own_python) if text == KERNEL_TARGET else full_path(text)
    check_path(target)
    return project_environment(target)


def target_or_default(plan: Plan, text: str) -> str:
    """Return a target unchanged; for "" and "new" a folder named by project or recipe and plan, which none shares."""
    build = f"{plan.backend.value}-torch{plan.torch}" if plan.torch else ""
    name = "-".join(filter(None, (plan.name or plan.recipe, build, f"py{plan.python}"))).replace("/", "-")
    return str(shared_environments_folder() / name) if text in {"", "new"} else text


def find_plan_target(plan: Plan, text: str, host: Host) -> tuple[Path, Site | None]:
    """Return the folder for a plan's environment, and what its Python reports to hold (None without one).

    A target of "" or "new" is a folder named after the plan. Raises `BadInput` for an environment of another Python
    than the plan's.
    """
    target = resolve_target(target_or_default(plan, text), host)
    site = Site.ask(target, host) if is_environment(target) else None
    if site and site.minor != plan.python:
        raise BadInput(
            _(
                "The plan is for Python {plan}, and {path} has Python {version}.",
                plan=plan.python,
                path=target,
                version=site.version,
            ),
            hint=_("Plan for Python {version}.", version=site.minor, option=f"--python {site.minor}"),
        )
    return Path(site.prefix) if site else target, site


def check_target(target: Path, site: Site | None = None) -> None:
    """Raise if no new environment can be made at a target or, with `site`, if that environment cannot be changed.

    `BadInput` if something is there, other programs would not see it, it is the system's, or an unknown folder is in
    the way beside it; `WorkFailed` if it is not writable.
    """
    target = Path(site.prefix) if site else target
    check_path(target)
    if not site and is_redirected(target):
        raise BadInput(
            _(
                "This Python comes from the Microsoft Store: what it writes to {path} goes into a private folder that"
                " JupyterLab, VS Code and other programs do not find.",
                path=target,
            ),
            hint=_(
                "Choose a folder such as {example}.",
                example=shared_environments_folder() / target.name,
                option="--target",
            ),
        )
    if Path(os.path.realpath(target)).name:  # the root of a disk has none, and nothing beside it
        Places(target).refuse_unknown()
    if not site:
        _check_free(target)
    elif site.managed:
        raise BadInput(
            _("{python} belongs to the system, which forbids installing into it.", python=site.python),
            hint=_("Choose a new environment.", option="--target new"),
        )
    for folder in (target, Path(site.purelib)) if site else (_nearest_existing(target),):
        if not is_writable(folder):
            raise _no_permission_error(folder, is_new=site is None)


def _check_free(target: Path) -> None:
    """Raise `BadInput` unless a target does not exist or is an empty folder, and a folder can be renamed to it.

    Raises `WorkFailed` if it cannot be listed.
    """
    try:
        is_free = not os.path.lexists(target) or (target.is_dir() and not any(target.iterdir()))
    except PermissionError:
        raise _no_permission_error(target, is_new=True) from None
    parent = _nearest_existing(target)
    hint = _("Choose another folder, or one that does not exist yet.", option="--target")
    if not is_free and (target / "pyvenv.cfg").is_file():
        raise BadInput(_("{path} already holds an environment, and it is left as it is.", path=target), hint=hint)
    if not is_free:
        raise BadInput(_("{path} exists and is not an environment.", path=target), hint=hint)
    if not parent.is_dir():
        raise BadInput(
            _("{path} is a file, so nothing can be created inside it.", path=parent),
            hint=_("Choose another folder.", option="--target"),
        )
    if os.path.lexists(target) and is_writable(target) and not can_be_renamed_to(target):
        raise BadInput(
            _(
                "{path} is a disk of its own, or its parent cannot be written, so nothing can be put there at once.",
                path=target,
            ),
            hint=_("Choose a folder inside it, such as {example}.", example=target / "torch", option="--target"),
        )


def _no_permission_error(folder: Path, *, is_new: bool) -> WorkFailed:
    """Return the error for a folder that this user cannot write to."""
    hint = _("Choose a new environment.", option="--target new")
    if is_new:
        hint = _("Choose a folder of your own.", option="--target")
    return WorkFailed(_("You don't have permission to write to {path}.", path=folder), hint=hint)


def check_path(path: Path) -> None:
    """Raise `BadInput` for a path that no environment can have: too long, a loop of links, invisible characters."""
    text = str(path)
    reason: Text = ""
    try:
        path.stat()  # neither `exists` nor, from Python 3.13 on, `resolve` says that links form a loop
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except (OSError, ValueError):
        reason = _("its symbolic links form a loop, or a part of it is too long")
    if len(text) > LONGEST_PATH:
        reason = _("it has {count} characters; the limit is {limit}", count=len(text), limit=LONGEST_PATH)
    elif not text.isprintable():
        reason = _("it contains invisible characters")
    if reason:
        raise BadInput(
            _("{path} cannot hold an environment: {reason}.", path=ascii(text)[1:-1][:80], reason=reason),
            hint=_("Choose another folder.", option="--target"),
        )


def check_disk(host: Host, target: Path, download: int) -> None:
    """Raise `WorkFailed` if less is free at a target than `DISK_FACTOR` times a download (bytes), as far as known."""
    free = host.facts("disk", str(target)).get("free")
    needed = download * DISK_FACTOR
    if isinstance(free, int) and free < needed:
        raise WorkFailed(
            _(
                "{path} has {free} MB free, and this environment needs about {need} MB.",
                path=_nearest_existing(target),
                free=free // 10**6,
                need=needed // 10**6,
            ),
            hint=_("Free some space, or choose a folder on another disk.", option="--target"),
        )


def _nearest_existing(target: Path) -> Path:
    """Return the absolute target if it exists, else the nearest path above it that does, even if that is a file.

    Without any, as on a drive that is missing, the root is returned.
    """
    folder = target.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def check_lengths(host: Host, folder: Path, target: Path) -> None:
    """Raise `BadInput` if a path in `folder` is too long for Windows, there or after a rename to `target`.

    Nothing is checked on other systems, and if long paths are allowed. A folder's path must leave room for a name of 12
    characters (8.3).
    """
    values = host.facts("registry", LONG_PATHS).get("values")
    if not isinstance(values, dict) or values.get("LongPathsEnabled") == 1:
        return
    needed: dict[str, int] = {}
    for root, _folders, files in os.walk(folder):
        below = os.path.relpath(root, folder)
        for name in files:
            needed[f"{below}\\{name}"] = len(below) + max(1 + len(name), _SHORT_NAME)
    longest = max(needed, key=lambda name: needed[name], default="")
    root = max(str(folder), str(target), key=len)
    if longest and len(root) + 1 + needed[longest] > _LONGEST_ON_WINDOWS:
        raise BadInput(
            _(
                "{folder} is too deep: {file} would have a path of {count} characters there, and this Windows allows"
                " {limit}.",
                folder=root,
                file=longest.rpartition("\\")[2],
                count=len(root) + 1 + len(longest),
                limit=_LONGEST_ON_WINDOWS,
            ),
            hint=_(
                "Choose a folder with a shorter path, such as {example}. Or allow long paths: as an administrator, set"
                " LongPathsEnabled to 1 in {key}.",
                example=Path(Path(root).anchor) / "torch",
                key=LONG_PATHS,
                option="--target",
            ),
        )


def onedrive_findings(target: Path) -> tuple[Finding, ...]:
    """Return a warning if a target lies in OneDrive; else ()."""
    if not is_in_onedrive(target):
        return ()
    text = _(
        "{path} is in OneDrive, which would upload every file of the environment; installers can fail there with error"
        " 396 (incompatible hardlinks).",
        path=target,
    )
    remedy = Remedy(text=_("Choose a folder outside OneDrive.", option="--target"))
    # https://github.com/astral-sh/uv/issues/9500, https://github.com/astral-sh/uv/issues/17945
    return (Finding(key="target-in-onedrive", severity=Severity.WARNING, text=text, remedies=(remedy,)),)


SIGN = "pyvenv.cfg"  # in each environment of ours; it is deleted last
SCRATCH = ".scratch"  # in the folder that is built: for uv's temporary files; it goes before the environment is placed


class Places:
    """The real path of a target, with links resolved, and the folders `.NAME.new` and `.NAME.old` beside it.

    A journal holds a real path: it is used with `follow=False`, so that a link put there since is not followed.
    """

    def __init__(self, target: Path | str, *, follow: bool = True) -> None:
        self.target = Path(os.path.realpath(target) if follow else target)
        self.new = self.target.with_name(f".{self.target.name}.new")
        self.old = self.target.with_name(f".{self.target.name}.old")

    @property
    def replaced(self) -> int:
        """The inode of `.NAME.old`, if that is an environment that the assistant made; 0 for any other folder."""
        return owned_inode(self.old) if is_ours(self.old) else 0

    def refuse_unknown(self) -> None:
        """Raise `BadInput` if `.NAME.new` exists, and no journal of this user mentions it."""
        if os.path.lexists(self.new) and entry_for(self.target).read() is None:
            raise _unknown_folder_error(self.new)


def can_be_renamed_to(target: Path) -> bool:
    """Return whether a target can be replaced by a rename: it is no mount point, and its parent can be written."""
    place = Places(target).target
    return not os.path.ismount(place) and is_writable(place.parent)


class Building:
    """An environment that is being built in the folder `.NAME.new` beside its target; its programs hold `lock`.

    Making one writes the journal and makes the folder; `BadInput` for an unknown folder, `WorkFailed` if it cannot.
    """

    def __init__(self, target: Path, entry: Entry, lock: Lock) -> None:
        self.target, self.lock = target, lock
        self._places = Places(target)  # a link that is put there meanwhile leads nowhere else
        place, self.folder = self._places.target, self._places.new
        self.scratch = self.folder / SCRATCH
        self.is_placed = False
        self._entry = entry
        self._syncing: Background[None] | None = None
        self.journal = Journal(kind="install", target=str(place), goes=owned_inode(place) if is_ours(place) else 0)
        if os.path.lexists(self.folder):
            raise _unknown_folder_error(self.folder)
        if self.journal.goes:
            self._refuse_unknown_old()
        missing = [folder for folder in place.parents if not folder.exists()]
        self._update_journal(parents=tuple(map(str, missing)))
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o755)
        except OSError as error:
            settle_journal(entry, self.journal)
            raise not_started_error(place.parent, error) from error
        self._update_journal(comes=owned_inode(self.folder))
        self.scratch.mkdir()

    def _update_journal(self, **changes: object) -> None:
        """Change fields of the journal, and write it."""
        self.journal = replace(self.journal, **changes)
        self._entry.write(self.journal)

    def _refuse_unknown_old(self) -> None:
        """Raise `BadInput` if something that is no environment of ours lies where the replaced one is to go."""
        if os.path.lexists(self._places.old) and not self._places.replaced:
            raise _unknown_folder_error(self._places.old)

    def restart(self, uv: Uv) -> None:
        """Delete all that the folder holds, and make an empty environment in it."""
        _empty_folder(self.folder)
        self.scratch.mkdir()
        uv.create_environment(self.folder)

    def start_syncing(self) -> None:
        """Start on another thread to flush what was written so far to the disk, which may take seconds."""
        self._syncing = Background(partial(sync_file_system, self.folder))

    def put_in_place(self, check: Callable[[], None], kernel: KernelNote | None, register: Callable[[], None]) -> None:
        """Flush the new environment to the disk, call `register` if there is a `kernel`, and rename it to its target.

        `check` is called during the flush and may raise. The environment at the target is renamed to `.NAME.old`; an
        older one of that name is deleted. An empty folder at the target is replaced, and keeps its mode. Raises
        `WorkFailed` if it cannot be written or moved, or if anything else has been created at the target, and
        `BadInput` if `.NAME.old` is not the assistant's. What was done by then is undone by who settles the journal.
        """
        if self._syncing:
            with suppress(OSError):  # it is tried again
                self._syncing.result(check)
        flush_to_disk(self.folder, check)
        place, old = self._places.target, self._places.old
        with defer_signals():
            if kernel:
                self._update_journal(kernel=kernel)
                register()
            if self.journal.goes:
                self._refuse_unknown_old()
                self._update_journal(drops=owned_inode(old))
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
                is_old_there = self.journal.goes and owned_inode(place) == self.journal.goes
                if is_old_there or error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                    raise _not_moved_error(self.target, error) from error
                raise WorkFailed(
                    _("{path} was created while the installation was running, and is left as it is.", path=place),
                    hint=_("Choose another folder.", option="--target"),
                ) from error
            with suppress(OSError):
                fsync_path(place.parent)
            self.is_placed = True
            self._entry.delete_journal()

    def roll_back(self) -> None:
        """Roll back all that was done, as the next start would after a kill, but do not wait for the deletion.

        Raises as `settle_journal` does.
        """
        outermost = Path(self.journal.parents[-1]) if self.journal.parents else self.folder
        with suppress(OSError, WorkFailed):  # it is then deleted right here
            if _is_own_folder(self.folder, self.journal.comes):
                delete_later(self.folder, outermost.parent)
        settle_journal(self._entry, self.journal)


def flush_to_disk(folder: Path, check: Callable[[], None]) -> None:
    """Flush the file system of a folder, and wait for it; `check` is called meanwhile and may raise.

    Raises `WorkFailed` if it cannot be written.
    """
    try:
        Background(partial(sync_file_system, folder)).result(check)
    except OSError as error:  # the folder has gone, or the disk fails
        raise unwritten_error(error) from error


def unwritten_error(error: OSError) -> WorkFailed:
    """Return the error for an installation that a full or failing disk stopped."""
    return WorkFailed(
        _("The installation cannot be written to the disk: {reason}.", reason=error.strerror or str(error)),
        hint=_("All changes were rolled back. Check the disk, or choose another one.", option="--target"),
    )


@contextmanager
def build_beside(target: Path) -> Iterator[Building]:
    """Yield a new folder beside a target to build its environment in; roll back unless `put_in_place` succeeded.

    What a killed run left at the target is finished or rolled back first. Raises `WorkFailed` with who holds the
    target's lock, or with what cannot be written, also for an `OSError` of the block, whose other errors are raised.
    """
    with lock_and_settle(target) as (entry, lock):
        work: Building | None = None
        try:
            with defer_signals():
                work = Building(target, entry, lock)
            yield work
        except OSError as error:
            raise unwritten_error(error) from error
        except Cancelled as error:
            error.hint = _("{path} is as it was before. Start the step again when you are ready.", path=target)
            raise
        finally:
            if work and not work.is_placed:
                with defer_signals():
                    work.roll_back()


@contextmanager
def lock_and_settle(target: Path) -> Iterator[tuple[Entry, Lock]]:
    """Take a target's lock, finish or roll back what a killed run left there; yield its journal entry and lock.

    Raises as `locked` and `settle_journal` do.
    """
    with locked(target) as (entry, lock):
        before = entry.read()
        if before:
            with defer_signals():
                settle_journal(entry, before)
        yield entry, lock


def settle_folders(target: Path) -> None:
    """Finish or roll back an installation, undoing or removal that was killed at a target; ignore a change in place.

    Raises as `lock_and_settle` does, at once if another run is at work there.
    """
    before = entry_for(target).read()
    if before and before.kind != "change":
        with lock_and_settle(target):
            pass


def settle_journal(entry: Entry, journal: Journal) -> Path | None:
    """Finish or roll back what a journal records, by which of its folders exist, and delete the journal.

    Returns where the earlier environment is if something unknown is at its place now, else None. Raises `WorkFailed`,
    always for a change in place, or `BadInput` for an unknown folder; the journal stays then.
    """
    places = Places(journal.target, follow=False)
    target, new, old = places.target, places.new, places.old
    if journal.kind == "change":
        raise WorkFailed(
            _("A change of the packages in {path} was interrupted.", path=target),
            hint=_("`assistant recover` puts back what it held before."),
        )
    try:
        if _is_own_folder(old, journal.drops):
            _remove_folder(old)
        is_back = owned_inode(old) in {journal.comes, journal.goes} - {0} and journal.kind != "remove"
        if is_back and not os.path.lexists(target):
            retry_while_in_use(partial(old.rename, target))
        if journal.kind == "undo" and owned_inode(new) == journal.goes and not os.path.lexists(old):
            retry_while_in_use(partial(new.rename, old))
        has_arrived = journal.comes != 0 and owned_inode(target) == journal.comes
        if journal.kernel and not has_arrived:
            restore_kernel(journal.kernel)
        if journal.kind != "undo":
            _delete_journaled(new, journal.goes if journal.kind == "remove" else journal.comes)
        for folder in journal.parents if not os.path.lexists(target) else ():
            with suppress(OSError):  # somebody else's files are in it by now
                Path(folder).rmdir()
    except OSError as error:
        raise not_removed_error(new, error) from error
    entry.delete_journal()
    if journal.kind == "remove" or not journal.goes or owned_inode(target) in {journal.comes, journal.goes}:
        return None
    return next((folder for folder in (new, old) if owned_inode(folder) == journal.goes), None)


def _delete_journaled(folder: Path, inode: int) -> None:
    """Delete a folder if it has this inode or is empty; raise `BadInput` for any other, do nothing if none exists."""
    if _is_own_folder(folder, inode):
        _remove_folder(folder)
    elif os.path.lexists(folder):
        try:
            folder.rmdir()
        except OSError:
            raise _unknown_folder_error(folder) from None


def _is_own_folder(folder: Path, inode: int) -> bool:
    """Return whether a folder has the inode in a journal, and holds an environment, temporary files or nothing."""
    if not inode or owned_inode(folder) != inode:
        return False
    names = set(os.listdir(folder))  # noqa: PTH208 - names
    return SIGN in names or names <= {SCRATCH}


def _remove_folder(folder: Path) -> None:
    """Delete a folder with all that it holds, `pyvenv.cfg` last; raises `OSError`."""
    _empty_folder(folder)
    retry_while_in_use(folder.rmdir)


def _empty_folder(folder: Path) -> None:
    """Delete what a folder holds, `pyvenv.cfg` last: it identifies the folder if this is killed midway."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name == SIGN):
        discard(entry) if entry.is_symlink() or not entry.is_dir() else discard_folder(entry)


def owned_inode(folder: Path) -> int:
    """Return the inode of a folder that this user owns; 0 for a link, another user's folder, and anything else.

    On Windows the owner is not looked at.
    """
    try:
        status = folder.lstat()
    except OSError:
        return 0
    is_own = os.name == "nt" or status.st_uid == os.geteuid()
    return status.st_ino if stat.S_ISDIR(status.st_mode) and is_own else 0


def _unknown_folder_error(folder: Path) -> BadInput:
    """Return the error for a folder that is in the way and that no journal of this user mentions."""
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
    """Return the marker of the environment that the one at a target replaced; None if it cannot be restored."""
    old = Places(target).old
    return read_marker(old, target) if owned_inode(old) and read_marker(target) else None


def swap_with_previous(target: Path) -> None:
    """Exchange the environment at a target and the one that it replaced, `.NAME.old`, with their kernels.

    Raises `BadInput` if there is no replaced one, `WorkFailed`, with both as they were, if one cannot be moved, and as
    `lock_and_settle` does.
    """
    with defer_signals(), lock_and_settle(target) as (entry, _lock):
        now, before = read_marker(target), previous_marker(target)
        if now is None or before is None:
            raise nothing_to_undo_error(target)
        places, environment = Places(target), before.environment
        place, new, old = places.target, places.new, places.old
        places.refuse_unknown()
        note = record_kernel(environment.kernel, interpreter(target)) if environment.kernel else None
        journal = Journal(kind="undo", target=str(place), comes=owned_inode(old), goes=owned_inode(place), kernel=note)
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
        entry.delete_journal()
        if now.environment.kernel and now.environment.kernel != environment.kernel:
            remove_kernel(now.environment.kernel, interpreter(target))


def nothing_to_undo_error(target: Path) -> BadInput:
    """Return the error for an environment whose last change cannot be undone."""
    return BadInput(
        _("There is no change to {path} that could be undone.", path=target),
        hint=_("What it held before is kept until the next change, unless it is deleted before."),
    )


def delete_previous(target: Path) -> int:
    """Delete the environment that a target's one replaced; return the bytes of its files without further hard links.

    Returns 0 if there is none. Takes the target's lock, so that a caller must not hold it. Raises as `lock_and_settle`
    does.
    """
    places, freed = Places(target), 0
    if previous_marker(target):
        with lock_and_settle(target) as (entry, _lock):
            for root, _folders, files in os.walk(places.old):
                for name in files:
                    with suppress(OSError):
                        status = os.lstat(f"{root}/{name}")
                        freed += status.st_size if status.st_nlink == 1 else 0  # else it stays in uv's cache
            journal = Journal(kind="remove", target=str(places.target), drops=owned_inode(places.old))
            entry.write(journal)
            settle_journal(entry, journal)
    return freed


def remove_folders(target: Path) -> None:
    """Delete the environment that a target's one replaced, then that itself; raise `WorkFailed` or `BadInput` if not.

    If this is killed, the next start deletes the rest, but keeps an environment that is still at the target.
    """
    with defer_signals(), lock_and_settle(target) as (entry, _lock):
        places = Places(target)
        place, drops = places.target, places.replaced
        places.refuse_unknown()
        journal = Journal(kind="remove", target=str(place), goes=owned_inode(place), drops=drops)
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

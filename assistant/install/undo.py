"""What it takes to undo a change of packages: the old files themselves, in a folder of the environment.

They are moved there when the change stands, at no cost, and stay until the next change, until the change is undone, or
until the user lets them go. A record in the user's private state says which files came and which are kept; where
either have changed since, nothing is undone, as the result would be neither the old environment nor the new.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from assistant.host.base import Host
from assistant.host.files import discard, discard_folder, private_folder, read_plain, write_whole
from assistant.host.folders import user_state
from assistant.host.process import CancelToken
from assistant.i18n import Text, _
from assistant.install.inspect_env import look_at, python_of
from assistant.install.swap import CACHE, INSTALLERS_LOCK, Identity, change_for, check_movable, identities, is_below
from assistant.install.target import OWN_FILES
from assistant.install.transaction import Transaction, transaction
from assistant.install.work_folder import carries, delete, entry_of, make
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import Record, from_json, to_json

FOLDER = ".assistant-undo"  # with the token behind it, in the environment: a rename does not leave a file system


class Move(Record, frozen=True):
    """What happens to one package: its version before ("" if it comes) and after ("" if it goes).

    Where both are the same it is installed again.
    """

    name: str
    before: str = ""
    after: str = ""


class Undoable(Record, frozen=True, kw_only=True):
    """A change that can be undone: when it was made, what it changed, how many bytes are kept for that.

    `packages` is what the environment held before. The files that came and those that are kept are in a file beside.
    """

    schema: Literal[1] = 1
    target: str
    token: str
    at: str
    moves: tuple[Move, ...]
    packages: dict[str, str]
    size: int = 0


class _Files(Record, frozen=True):
    came: dict[str, Identity]
    kept: dict[str, Identity]


def keep(work: Transaction, came: Mapping[str, Identity], moves: tuple[Move, ...], before: Mapping[str, str]) -> None:
    """Keep the old files of a change that was just committed; where they cannot be, the change stands all the same.

    What was kept for an earlier change of the same environment goes.
    """
    forget(work.target)
    files = {name: identity for name, identity in came.items() if name != INSTALLERS_LOCK}
    token = uuid.uuid4().hex
    folder = work.target / f"{FOLDER}-{token}"
    now = datetime.now(UTC).isoformat(timespec="seconds")
    noted = Undoable(target=str(work.target), token=token, at=now, moves=moves, packages=dict(before))
    try:
        private_folder(_record(work.target).parent)
        write_whole(_record(work.target), to_json(noted), private=True)  # first: no folder is without its record
        make(folder, token)
        kept = work.keep_old(folder / "old")
        write_whole(_manifest(work.target), to_json(_Files(came=files, kept=kept)), private=True)
        size = sum(size for _inode, size, _time in kept.values())
        write_whole(
            _record(work.target),
            to_json(
                Undoable(target=noted.target, token=token, at=now, moves=moves, packages=noted.packages, size=size)
            ),
            private=True,
        )
    except OSError:  # what is half kept is of no use, and may be gigabytes
        forget(work.target)


def undoable(target: Path) -> Undoable | None:
    """Return the last change of an environment, if what is needed to undo it is still there; None otherwise."""
    noted = _noted(target)
    whole = noted and carries(_folder(noted), noted.token) and _manifest(target).is_file()
    return noted if whole else None


def _noted(target: Path) -> Undoable | None:
    try:
        noted = from_json(read_plain(_record(target)), Undoable, str(_record(target)))
    except (OSError, BadInput):
        return None
    same = os.path.realpath(noted.target) == os.path.realpath(target)  # as the record's own name: see `entry_of`
    return noted if same else None


def undo(target: Path, host: Host, cancel: CancelToken) -> tuple[Path, ...]:
    """Put back the packages that an environment held before its last change.

    Returns the folders into which files of the user's were moved, as they stood where old ones come back. It ends with
    all of the packages, or with the environment as it is. Raises `BadInput` where there is nothing to undo, and
    `WorkFailed` where the files that came or those that are kept have changed since.
    """
    noted = undoable(target)
    if noted is None:
        raise BadInput(
            _("There is no change to {path} that could be undone.", path=target),
            hint=_("The old files of a change are kept until the next one, unless they are deleted before."),
        )
    target = Path(noted.target)  # which the user may have named by another path
    files = from_json(read_plain(_manifest(target)), _Files, str(_manifest(target)))
    old = _folder(noted) / "old"
    if reason := _obstacle(files, target, old):
        raise WorkFailed(
            _("The change to {path} can no longer be undone: {reason}.", path=target, reason=reason),
            hint=_(
                "Nothing was changed. Check the environment; if something is wrong with it now, it can be mended again."
            ),
        )
    now = noted.packages | {move.name: move.after for move in noted.moves}
    if look_at(python_of(target), host).versions != {name: version for name, version in now.items() if version}:
        raise _other_packages(target)
    with transaction(target, stands=True) as work:
        _copy(old, work.layout.staged)
        cancel.check()
        change = change_for(target, work.layout.staged, files.came, OWN_FILES)
        check_movable(target, (*change.goes, *change.comes))
        work.change(change)
        if look_at(python_of(target), host).versions != noted.packages:
            raise _other_packages(target)
        work.settle(cancel.check)
        work.commit()
    forget(target)
    return work.kept


def _other_packages(target: Path) -> WorkFailed:
    return WorkFailed(
        _("{path} would not hold the same packages as before.", path=target),
        hint=_("Packages have been installed or removed since then. Nothing was changed."),
    )


def forget(target: Path) -> int:
    """Delete what is kept for undoing the last change of an environment, and return how many bytes that were."""
    noted, size = _noted(target), 0
    if noted:
        size = noted.size if carries(_folder(noted), noted.token) else 0
        with suppress(WorkFailed, BadInput, OSError):
            delete(_folder(noted), noted.token)
    for file in (_manifest(target), _record(target)):
        with suppress(OSError):
            discard(file)
    return size


def _obstacle(files: _Files, target: Path, old: Path) -> Text:
    """Return why the files are no longer those that were noted; "" where they are."""
    names = (*files.came, *files.kept)
    if not all(map(is_below, names)):
        return _("its record is damaged")
    if identities(old) != files.kept:
        return _("the files that were kept for it have changed")
    changed = [name for name, identity in files.came.items() if not _same(target / name, identity)]
    if changed:
        return _("{name} has changed since then", name=changed[0])
    return ""


def _same(path: Path, identity: Identity) -> bool:
    """Return whether a file is the one that came; compiled modules do not count: nobody edits them."""
    if path.parent.name == CACHE:
        return True
    try:
        found = path.lstat()
    except OSError:
        return False
    return (found.st_ino, found.st_size, found.st_mtime_ns) == identity


def _copy(old: Path, staged: Path) -> None:
    """Bring the kept files into a work folder, as further names of the same files where the file system has those."""
    if not old.is_dir():
        staged.mkdir()
        return
    try:
        shutil.copytree(old, staged, symlinks=True, copy_function=os.link)
    except (OSError, shutil.Error):
        with suppress(FileNotFoundError):
            discard_folder(staged)
        shutil.copytree(old, staged, symlinks=True)


def _folder(noted: Undoable) -> Path:
    return Path(noted.target) / f"{FOLDER}-{noted.token}"


def _record(target: Path) -> Path:
    return user_state() / "undo" / entry_of(target).journal.name


def _manifest(target: Path) -> Path:
    return _record(target).with_suffix(".files")

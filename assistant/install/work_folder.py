"""The work folder of an installation: where it lies, how it is recognised as ours, how it is deleted.

A new environment is built below a work folder beside its place and put there by one rename. Where an environment
stands, or nothing can be renamed to the place (a mounted folder), the work folder lies inside: each change is a rename
then, too. A work folder is ours only if this user's private journal names it and it carries the journal's token; it is
never entered through a link, and any other is left alone.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from assistant.host.files import discard, discard_folder, may_write, patiently, write_whole
from assistant.host.process import start_detached
from assistant.i18n import _
from assistant.model.errors import BadInput, WorkFailed

WORK = ".assistant-install"
TOKEN = "token"  # noqa: S105 - a file's name
PATIENCE_SECONDS = 2.0  # chosen: Windows keeps a file that a scanner or a process that just ended still has open
PAUSE_SECONDS = 0.1
_PREVIEW = "*"  # in place of the token, in what is shown beforehand
# What another process runs after a cancellation, so that nobody waits while 20,000 files are deleted. The token goes
# last: a folder without it would no longer be recognised as ours.
DELETE = """
import os, shutil, sys
work, *notes = sys.argv[1:]
for name in sorted(os.listdir(work), key="token".__eq__):
    path = os.path.join(work, name)
    shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
os.rmdir(work)
for note in notes:
    os.path.lexists(note) and os.unlink(note)
"""


class Layout(NamedTuple):
    """The folders of an installation: `build` is the new environment, or what is to come into one that stands.

    One rename of `top` to `place` puts a new environment where it belongs, its missing parents with it; both are None
    where the work folder lies inside the target.
    """

    work: Path
    build: Path
    top: Path | None = None
    place: Path | None = None

    @property
    def staged(self) -> Path:
        """What comes into a target that stands."""
        return self.work / "staged"

    @property
    def aside(self) -> Path:
        """What goes from a target that stands."""
        return self.work / "aside"

    @property
    def infix(self) -> str:
        """What the path of `build` has beyond the target's, "/" between its parts."""
        return self.work.name if self.top else f"{self.work.name}/{self.build.name}"


def layout(target: Path, token: str = _PREVIEW, *, stands: bool) -> Layout:
    """Return the folders of an installation in a target; `stands` for an environment that is there already."""
    if stands or not _takes_a_rename(target):
        work = target / WORK
        return Layout(work=work, build=work / "staged")
    base = target.parent
    while not base.exists() and base != base.parent:
        base = base.parent
    below = target.relative_to(base)
    work = base / f"{WORK}-{token}"
    return Layout(work=work, build=work / below, top=work / below.parts[0], place=base / below.parts[0])


def _takes_a_rename(target: Path) -> bool:
    """Return whether a folder can be renamed to the target: nothing is there, or a plain empty folder."""
    if not os.path.lexists(target):
        return True
    plain = target.is_dir() and not target.is_symlink() and not os.path.ismount(target)
    return plain and may_write(target.parent)


def make(work: Path, token: str) -> None:
    """Make a work folder that nobody has made before, and mark it; raise `BadInput` where one is there already."""
    try:
        work.mkdir(mode=0o700)
    except FileExistsError:
        raise _unknown(work) from None
    write_whole(work / TOKEN, token, private=True)


def carries(work: Path, token: str) -> bool:
    """Return whether a folder holds the token, belongs to this user and is no link."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if os.name == "nt":
        with suppress(OSError, UnicodeDecodeError):
            return not work.is_symlink() and (work / TOKEN).read_text(encoding="utf-8") == token
        return False
    try:
        folder = os.open(work, flags | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        if os.fstat(folder).st_uid != os.geteuid():
            return False
        file = os.open(TOKEN, flags, dir_fd=folder)
    except OSError:
        return False
    finally:
        os.close(folder)
    with os.fdopen(file, "rb") as opened:
        plain = stat.S_ISREG(os.fstat(file).st_mode)
        return plain and opened.read(len(token) + 1) == token.encode()


def delete(work: Path, token: str) -> None:
    """Delete a work folder that is ours; raise `BadInput` for any other, `WorkFailed` where the system does not let go.

    One that was just made and not marked yet holds nothing, and goes as well.
    """
    deadline = None
    while os.path.lexists(work):
        if not carries(work, token):
            _remove_unmarked(work)
            return
        try:
            for entry in [entry for entry in work.iterdir() if entry.name != TOKEN]:
                discard_folder(entry) if entry.is_dir() and not entry.is_symlink() else discard(entry)
            discard(work / TOKEN)
            patiently(work.rmdir)
        except OSError as error:
            # From the first failure on: to delete what was made before it may itself take longer.
            deadline = deadline or time.monotonic() + PATIENCE_SECONDS
            if time.monotonic() > deadline:
                raise not_removed(work, error) from error
            if not isinstance(error, FileNotFoundError):  # the process that deletes after a cancel is at it, too
                time.sleep(PAUSE_SECONDS)


def _remove_unmarked(work: Path) -> None:
    """Remove what a run left that was killed between making a folder and marking it: nothing, or half a mark."""
    with suppress(OSError):
        halves = [] if work.is_symlink() else list(work.iterdir())
        if all(re.fullmatch(rf"\.{TOKEN}\..*\.part", half.name) for half in halves):
            for half in halves:
                discard(half)
            patiently(work.rmdir)
    if os.path.lexists(work):
        raise _unknown(work)


def delete_later(work: Path, notes: Sequence[Path]) -> None:
    """Let another process delete a work folder, then the notes that lead to it."""
    start_detached([sys.executable, "-I", "-S", "-c", DELETE, work, *notes])


def refuse_unknown(target: Path) -> None:
    """Raise `BadInput` where a work folder stands in a target that no journal of this user names."""
    if os.path.lexists(target / WORK):
        raise _unknown(target / WORK)


def work_folders(target: Path) -> list[Path]:
    """List the work folders in and beside a target, whoever made them."""
    beside = list(target.parent.glob(f"{WORK}-*")) if target.parent.is_dir() else []
    return [path for path in (target / WORK, *sorted(beside)) if os.path.lexists(path)]


def _unknown(work: Path) -> BadInput:
    return BadInput(
        _("{path} does not belong to any installation that you started here, so it is left alone.", path=work),
        hint=_("If nobody else is installing there, look inside, delete it and start again."),
    )


def not_removed(path: Path, error: OSError) -> WorkFailed:
    """Return the failure for a folder that the system does not let go."""
    return WorkFailed(
        _("{path} cannot be removed: {reason}.", path=path, reason=error.strerror or error),
        hint=_("Close what uses it, then run `assistant recover`."),
    )

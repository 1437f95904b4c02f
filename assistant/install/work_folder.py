"""The work folder of an installation, and the journal that is written before anything changes.

A new environment is built below a work folder beside its place and put there by one rename. Where an environment
stands, or nothing can be renamed to the place (a mounted folder), the work folder lies inside: each change is a rename
then, too. A work folder is ours only if this user's private journal names it and it carries the journal's token; it is
never entered through a link, and any other is left alone.

For each target there is at most one journal, in the user's private state folder; its name is made from the target's
path. Nothing that lies in a target is obeyed: it holds a work folder with a token, and the journal says which. What a
journal names is checked even so. The state folder holds temporary folders, too, with a lock that the programs running
in them hold: `tempfile` would leave both behind where we are killed: folders of many MB, and installers that go on
writing into them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from assistant.host.files import (
    discard,
    discard_folder,
    draft,
    may_write,
    patiently,
    private_folder,
    put_in_place,
    read_plain,
    sweep,
    write_whole,
)
from assistant.host.folders import user_state
from assistant.host.lock import Lock
from assistant.host.process import alive, start_detached
from assistant.i18n import Text, _
from assistant.install.kernel import KernelNote, is_kernel_name
from assistant.install.swap import Change, Identity, is_below
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import Record, from_json, to_json

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
_TOKEN = re.compile(r"[0-9a-f]{32}")
_SUFFIXES = {".json", ".lock", ".manifest", ".where"}
LOCK = "lock"
TRIES = 20  # with the pause two seconds: what a killed program still writes may come between two tries


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


class Journal(Record, frozen=True, kw_only=True):
    """What an installation is about to do.

    "new": one rename of a folder with the number `inode` to `place` ends it. "existing": `change` is carried out in the
    target. Of the others only the work folder is left to delete, at `work` or, moved out of the way, at `gone`: the
    installation stands ("over"), was taken back ("undone"), or the environment itself goes ("removed").
    """

    schema: Literal[2] = 2
    kind: Literal["new", "existing", "over", "undone", "removed"]
    target: str
    token: str
    work: str
    gone: str = ""
    place: str = ""
    inode: int = 0
    change: Change = Change()
    kernel: KernelNote | None = None


class Entry(NamedTuple):
    """The files about one target: the journal, the lock, the manifest, and where the target is, in plain words."""

    journal: Path

    @property
    def known(self) -> bool:
        """Whether there is any file about the target."""
        return any(os.path.lexists(path) for path in (self.journal, self.lock, self.manifest, self.where))

    @property
    def lock(self) -> Path:
        """The lock file: one writer at a time."""
        return self.journal.with_suffix(".lock")

    @property
    def manifest(self) -> Path:
        """The identity of each file that an installation brings into an environment that stands."""
        return self.journal.with_suffix(".manifest")

    @property
    def where(self) -> Path:
        """The target and the work folder, a line each, for people: the journal itself may be damaged."""
        return self.journal.with_suffix(".where")

    def read(self) -> Journal | None:
        """Read the journal; None where there is none. Raises `WorkFailed` for one that cannot be obeyed."""
        try:
            journal = from_json(read_plain(self.journal), Journal, str(self.journal))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, BadInput) as error:
            raise self._damaged(getattr(error, "strerror", None) or str(error)) from error
        if fault := _fault(journal):
            raise self._damaged(fault)
        return journal

    def write(self, journal: Journal) -> None:
        """Write the journal; raises `OSError`."""
        private_folder(self.journal.parent)
        if not self.where.exists():
            write_whole(self.where, f"{journal.target}\n{journal.work}\n", private=True)
        write_whole(self.journal, to_json(journal), private=True)

    def draft(self, journal: Journal) -> Path:
        """Write a journal beside this one, to replace it later by a mere rename, which a full disk allows too."""
        content = to_json(journal).encode()
        return draft(self.journal, lambda file: file.write(content), private=True)

    def put(self, part: Path) -> None:
        """Replace the journal by a draft."""
        put_in_place(part, self.journal)

    def read_manifest(self) -> Mapping[str, Identity]:
        """Read the identities; raise `WorkFailed` where they cannot be read."""
        try:
            return from_json(read_plain(self.manifest), dict[str, Identity], str(self.manifest))
        except (OSError, BadInput) as error:
            raise self._damaged(getattr(error, "strerror", None) or str(error)) from error

    def write_manifest(self, identities: Mapping[str, Identity]) -> None:
        """Write the identities; raises `OSError`."""
        write_whole(self.manifest, to_json(identities), private=True)

    def apart(self, token: str) -> Entry:
        """Rename the files, so that the target can be worked on while another process deletes what is left.

        Raises `OSError`.
        """
        other = Entry(self.journal.with_name(f"{self.journal.stem}-{token[:8]}.json"))
        patiently(lambda: self.journal.rename(other.journal))
        for old, new in ((self.manifest, other.manifest), (self.where, other.where)):
            with suppress(FileNotFoundError):
                patiently(partial(old.rename, new))
        return other

    def forget(self) -> None:
        """Delete all files but the lock, the journal last."""
        for path in (self.manifest, self.where, self.journal):
            with suppress(OSError):
                discard(path)

    def places(self) -> tuple[str, ...]:
        """Return the target and the work folder as written in plain words; () where that cannot be read either."""
        with suppress(OSError, UnicodeDecodeError):
            lines = read_plain(self.where, 1 << 16).decode().splitlines()
            return tuple(line for line in lines if line and os.path.isabs(line))  # noqa: PTH117 - a line, no path yet
        return ()

    def _damaged(self, reason: Text) -> WorkFailed:
        where = (*self.places(), self.journal)[0]
        text = _("The installation started in {path} cannot be rolled back because its journal is damaged: {reason}.")
        return WorkFailed(
            text.format(path=where, reason=reason),
            hint=_("`assistant recover --give-up` forgets it, and lists what is left where."),
        )


def notes_folder() -> Path:
    """Return the folder of the journals."""
    return user_state() / "installs"


def entry_of(target: Path) -> Entry:
    """Return the entry of a target, whichever links its path goes through."""
    name = hashlib.sha256(os.path.realpath(target).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return Entry(notes_folder() / f"{name}.json")


def entries() -> Iterator[Entry]:
    """Yield the entry of each target that has any file, whatever state that is in."""
    folder = notes_folder()
    sweep(folder)
    found = [path for path in folder.iterdir() if path.suffix in _SUFFIXES] if folder.is_dir() else []
    yield from (Entry(path) for path in sorted({path.with_suffix(".json") for path in found}))


def _fault(journal: Journal) -> str:
    """Name the fields with values that no journal of ours has; "" for one that may be obeyed."""
    target, work = Path(journal.target), Path(journal.work)
    beside = f"{WORK}-{journal.token}"
    above = (target, *target.parents)
    sound = {
        "token": _TOKEN.fullmatch(journal.token) is not None,
        "target": _is_plain(journal.target),
        "work": _is_plain(journal.work)
        and (work == target / WORK or (work.name == beside and work.parent in target.parents)),
        "gone": not journal.gone or (_is_plain(journal.gone) and Path(journal.gone) == target.parent / beside),
        "place": not journal.place or (_is_plain(journal.place) and Path(journal.place) in above),
        "change": all(map(is_below, (*journal.change.goes, *journal.change.comes, *journal.change.spared))),
        "kernel": journal.kernel is None or is_kernel_name(journal.kernel.name),
    }
    return ", ".join(name for name, good in sound.items() if not good)


def _is_plain(path: str) -> bool:
    """Return whether a path is absolute and normal, so that no `..` leads elsewhere."""
    return os.path.isabs(path) and os.path.normpath(path) == path and "\0" not in path  # noqa: PTH117 - text, as written


@contextmanager
def scratch() -> Iterator[tuple[Path, Lock]]:
    """Yield a temporary folder and its lock; the next start removes the folder if this process is killed."""
    try:
        private_folder(user_state())
        folder = private_folder(notes_folder()) / f"{uuid.uuid4().hex[:8]}.{os.getpid()}.part"
        folder.mkdir(mode=0o700)
    except OSError:  # no state folder can be written
        folder = Path(tempfile.mkdtemp())
    lock = Lock(folder / LOCK)
    try:
        lock.take()
        yield folder, lock
    finally:
        lock.release()
        with suppress(OSError):
            discard_folder(folder)


def sweep_scratch() -> None:
    """Remove the temporary folders of killed processes, once what they left running there is ended.

    Their locks tell, as numbers of processes are used again; only of a folder that has no lock yet, the number does.
    """
    for folder in notes_folder().glob("*.part"):
        writer = folder.suffixes[-2].removeprefix(".") if len(folder.suffixes) > 1 else ""
        if not writer.isdecimal() or folder.is_symlink() or not folder.is_dir():
            continue
        if (folder / LOCK).exists() or not alive(int(writer)):
            _remove(folder)


def _remove(folder: Path) -> None:
    lock = Lock(folder / LOCK)
    try:
        if lock.take():
            return
    except WorkFailed:
        pass  # something else stands where the lock should be
    for _try in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists() or [path.name for path in folder.iterdir()] == [LOCK]:  # Windows keeps what is open
            break
        time.sleep(PAUSE_SECONDS)
    lock.release()
    with suppress(OSError):
        discard_folder(folder)

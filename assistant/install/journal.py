"""The journal that is written before an installation changes anything, in the user's private state folder.

For each target there is at most one journal; its name is made from the target's path. Nothing that lies in a target is
obeyed: it holds a work folder with a token, and the journal says which. What a journal names is checked even so.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from assistant.host.files import discard, draft, patiently, private_folder, put_in_place, read_plain, sweep, write_whole
from assistant.host.folders import user_state
from assistant.i18n import Text, _
from assistant.install.kernel import KernelNote, is_kernel_name
from assistant.install.swap import Change, Identity, is_below
from assistant.install.work_folder import WORK
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import Record, from_json, to_json

_TOKEN = re.compile(r"[0-9a-f]{32}")
_SUFFIXES = {".json", ".lock", ".manifest", ".where"}


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

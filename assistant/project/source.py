"""Where a text of a project stands, and how it is read: a regular file of a sane size, in whatever encoding."""

from __future__ import annotations

import errno
import os
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from assistant.host.files import read_plain
from assistant.i18n import Text, _
from assistant.model.errors import BadInput, unreadable
from assistant.model.record import Record
from assistant.model.visible import printable
from assistant.parsers.decode import text_pieces
from assistant.privacy import Policy, redact, without_credentials

FILE_LIMIT = 10 * 10**6  # bytes, chosen: the longest lock file seen has 2 MB
_SHOWN = 20  # names in a sentence
TOO_DEEP = _("it is nested too deeply")


class Source(Record, frozen=True):
    """A text of the project: how it is called for people, and its folder; None for a text that came alone.

    `extras` are the canonical names of the optional parts that are asked of it.
    """

    name: str
    folder: Path | None = None
    extras: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """The name, to stand in a sentence."""
        return shown(self.name)

    @property
    def file(self) -> str:
        """The name without its folder, for a place in the file."""
        return shown(Path(self.name).name)

    def beside(self, name: str) -> Path | None:
        """Return the place that the text means; None where it came alone, and for another computer.

        To ask Windows for a file on a share tells that computer who asks.
        """
        if self.folder is None or "\0" in name or name.startswith(("\\\\", "//")):
            return None
        return self.folder / at_home(name)


def shown(text: object) -> str:
    """Make what a file holds fit to stand in a sentence: short, visible, and without what must stay secret."""
    whole = redact(str(text), Policy.USABLE)
    # also in "numpy==1.0https://me:secret@host"; the user of ssh://git@host is no secret
    return printable(whole if "ssh://" in whole else without_credentials(whole))


def listed(names: Iterable[str]) -> str:
    """Name several things in a sentence, the first twenty of them."""
    every = list(map(shown, names))
    return ", ".join(every[:_SHOWN]) + (", …" if len(every) > _SHOWN else "")


def at_home(name: str) -> Path:
    """Return a path with `~` filled in where that is somebody's home; raise `BadInput` for what can be no name."""
    if "\0" in name:
        raise refused(name, _("a file cannot have such a name"))
    try:
        return Path(name).expanduser()
    except RuntimeError:  # ~nobody
        return Path(name)


def source_of(path: Path, extras: frozenset[str] = frozenset()) -> Source:
    """Return the source that a file is, from which optional parts are wanted, too."""
    return Source(name=str(path), folder=path.parent, extras=extras)


def real(path: Path) -> Path:
    """Return a path without links; unlike `resolve` of Python before 3.13 it stands a link to itself."""
    return Path(os.path.realpath(path))


def file_text(path: Path) -> str:
    """Read a file of the project as text; raise `BadInput` for what is no regular text file of a sane size."""
    return decoded(file_bytes(path), str(path))


def file_bytes(path: Path, limit: int = FILE_LIMIT) -> bytes:
    """Read a file of the project; raise `BadInput` where it cannot be read or has more than `limit` bytes."""
    try:
        return read_plain(path, limit, follow=True)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise too_long(str(path), limit) from error
        raise unreadable(shown(path), error) from error


def too_long(name: str, limit: int = FILE_LIMIT) -> BadInput:
    """Return the error for a file that is larger than anything a person writes or a tool locks."""
    return BadInput(
        _("{file} is longer than {limit} MB.", file=shown(name), limit=limit // 10**6),
        hint=_("Name the file that lists what the project needs."),
    )


def decoded(data: bytes, name: str) -> str:
    """Turn the bytes of a file into text, whatever its encoding; raise `BadInput` for one that is no text."""
    try:
        text = "".join(text_pieces(data))
    except BadInput as error:
        raise refused(name, _("it is a binary file")) from error
    if b"\0" in data and text.isascii() and data.count(0) < len(data) // 4:  # not UTF-16, whose zeros are no text
        raise refused(name, _("it is a binary file"))
    return text


def toml(text: str, name: str) -> dict[str, Any]:
    """Read TOML; raise `BadInput` that says where it is none."""
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise refused(name, TOO_DEEP) from error
    except ValueError as error:  # among them a number of more digits than Python reads
        raise refused(name, shown(error)) from error


def refused(name: str, reason: Text) -> BadInput:
    """Return the error for a file whose text is not of its kind."""
    return BadInput(
        _("{file} cannot be read: {reason}.", file=shown(name), reason=reason),
        hint=_("Correct it, or name another file of the project."),
    )


def table(value: object) -> dict[str, Any]:
    """Take a value for a table of TOML, YAML or JSON; {} for anything else, since the files are written by hand."""
    return value if isinstance(value, dict) else {}


def rows(value: object) -> list[Any]:
    """Take a value for a list; [] for anything else."""
    return value if isinstance(value, list) else []


def is_file(path: Path) -> bool:
    """Return whether a regular file is there; a name that is too long is not there."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Return whether a folder is there and may be listed."""
    try:
        return path.is_dir() and os.access(path, os.R_OK | os.X_OK)
    except OSError:
        return False

"""A text of a project: where it is, how it is read, and how a line in it may ask for a package.

Files of other tools that are not read are named with the command that writes one that is.
"""

from __future__ import annotations

import errno
import os
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from assistant.api import BadInput, Record, Text, _
from assistant.api.planning import local_path
from assistant.api.system import read_regular, unreadable_error
from assistant.api.texts import Policy, printable, redact, text_pieces, without_credentials
from assistant_addons.projects.tables import load

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


def source_of(path: Path, extras: frozenset[str] = frozenset()) -> Source:
    """Return the source that a file is, from which optional parts are wanted, too."""
    return Source(name=str(path), folder=path.parent, extras=extras)


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
    return Path(os.path.expanduser(name))  # noqa: PTH111 - unlike pathlib's it leaves ~nobody as it is


def real(path: Path) -> Path:
    """Return a path without links; unlike `resolve` of Python before 3.13 it stands a link to itself."""
    return Path(os.path.realpath(path))


def is_file(path: Path) -> bool:
    """Return whether a regular file is there; one whose name no file can have is not there."""
    return os.path.isfile(path)  # noqa: PTH113 - pathlib's raises for a name that is too long


def is_folder(path: Path) -> bool:
    """Return whether a folder is there and may be listed."""
    return os.path.isdir(path) and os.access(path, os.R_OK | os.X_OK)  # noqa: PTH112 - as above


def file_text(path: Path) -> str:
    """Read a file of the project as text; raise `BadInput` for what is no regular text file of a sane size."""
    return decoded(file_bytes(path), str(path))


def file_bytes(path: Path, limit: int = FILE_LIMIT) -> bytes:
    """Read a file of the project; raise `BadInput` where it cannot be read or has more than `limit` bytes."""
    try:
        return read_regular(path, limit, follow=True)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise too_long(str(path), limit) from error
        raise unreadable_error(shown(path), error) from error


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


def too_long(name: str, limit: int = FILE_LIMIT) -> BadInput:
    """Return the error for a file that is larger than anything a person writes or a tool locks."""
    return BadInput(
        _("{file} is longer than {limit} MB.", file=shown(name), limit=limit // 10**6),
        hint=_("Name the file that lists what the project needs."),
    )


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


# Characters of a line, chosen: below the 4300 digits that Python reads as a number; the patterns here look back.
LONGEST_LINE = 4000
_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tar.bz2", ".tar.xz", ".tgz")
# pip wants a space before the semicolon of an address and its authors forget it: https://host/a.whl; sys_platform == …
_MARKER_SIGN = re.compile(r"(?<=whl|zip|\.gz|tgz)\s*;\s*|;\s+")
VERSION_CONTROL = re.compile(r"(?:^|@\s*)(?:(?:git|hg|svn|bzr)\+[a-z]+:|git(?:://|@))", re.IGNORECASE)
_ADDRESS = re.compile(
    r"(?:(?P<name>[\w.-]+)\s*(?P<extras>\[[^\]]*\])?\s*@\s*)?(?P<url>(?:https?://|ftp://|file:///)\S+?)"
    r"(?:\s+;\s*(?P<marker>.+))?",
    re.IGNORECASE,
)
_ON_THIS_DISK = re.compile(r"file:///(?!/)(?:(?!%2f|%5c)[^\\])*", re.IGNORECASE)  # what unquoted is no //server
# `pip install requirements.txt`, without the -r; discord.py and ruamel.yaml are packages.
_FILE_NAME = re.compile(r"[\w./\\-]+\.(?:txt|toml|yml|ipynb|cfg|lock|(?P<unsure>py|yaml))")


def address_of(text: str) -> re.Match[str] | None:
    """Return the name, extras, url and marker of a requirement that is an address, None for any other."""
    return _ADDRESS.fullmatch(_MARKER_SIGN.sub(" ; ", text, count=1))


def marked(line: str, *markers: str) -> str:
    """Write a requirement with its conditions, all of which must hold; a marker may be ""."""
    whole = " and ".join(f"({marker.strip()})" for marker in markers if marker.strip())
    return f"{line} ; {whole}" if whole else line


def wheel_of(file: str) -> tuple[str, str] | None:
    """Return the name and version of the distribution in a wheel, None for a file that is no wheel."""
    try:
        name, version, _build, _tags = parse_wheel_filename(file)
    except (InvalidWheelFilename, ValueError):
        return None
    return str(name), version.public


def path_of(address: str) -> Path | None:
    """Return the place on this computer that an address names, None for any other; a share is another computer's."""
    return local_path(f"file{address[4:]}") if _ON_THIS_DISK.fullmatch(address) else None


def is_file_name(text: str, source: Source) -> bool:
    """Return whether a requirement is the name of a file that lists requirements; some packages are called like one."""
    found = _FILE_NAME.fullmatch(text)
    if found is None or not found["unsure"]:
        return found is not None
    path = source.beside(text)
    return path is not None and is_file(path)


def is_path(text: str) -> bool:
    """Return whether a requirement is a path: it begins as one does, or is an archive without an address."""
    bare = text.partition(";")[0].strip()
    return (
        bare in {".", ".."}
        or bare.startswith(("./", "../", ".\\", "..\\", "/", "~/", ".["))
        or re.match(r"[A-Za-z]:[\\/]", bare) is not None
        or bare.endswith(_ARCHIVES)
        or ("@" not in bare and ("/" in bare or "\\" in bare))
    )


class NotRead(BadInput):
    """A file of another tool's that may say what a project needs, and is not read."""


class UnreadFile(Record, frozen=True):
    """A file by its name, and its tool's command that writes what can be read."""

    name: str
    command: str


def unread_names() -> tuple[str, ...]:
    """Return the names of all files of other tools that are not read."""
    return tuple(row.name for row in load("unread.files", UnreadFile))


def not_read(kind: str, file: str) -> NotRead | None:
    """Return the error for a `file` of a kind such as "Pipfile", None for a file that is read here."""
    name = re.sub(r"^pylock\..*toml$", "pylock.toml", kind.lower())
    for row in load("unread.files", UnreadFile):
        if row.name.lower() == name:
            hint = _("Run `{command}`, and name the file that it writes.", command=row.command)
            return NotRead(_("{file} is not read here.", file=shown(file)), hint=hint)
    return None

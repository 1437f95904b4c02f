"""Files and folders: the only writer, the reader of the assistant's own files, and the folders for a program's files.

A file is written atomically: to a draft beside it, which is flushed to the disk and then renamed. What is read back
must be a regular file of a sane size: a pipe would block for ever, and a link leads to what somebody else chose.
Standard output and input are set up so that no character that is printed or typed can end the program.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any, TextIO, TypeVar
from urllib.parse import unquote, urlsplit

from assistant.host.process import is_running
from assistant.i18n import _
from assistant.model.errors import BadInput

NAME = "pytorch-setup-assistant"  # of our folders
OWN_ENVIRONMENTS = ".assistant"  # beside start.py, which makes the assistant's own environment in it
STATE_LIMIT = 64 << 20  # bytes; chosen: more than any file of our own, and little enough to be read at once
# Windows refuses to rename or remove what another has open, and a virus scanner opens each new file for a moment. pip
# tries a rename again for 1 s and a removal for 3 s (`replace` and `rmtree` in src/pip/_internal/utils); uv
# (https://github.com/astral-sh/uv/pull/9543) and npm (graceful-fs) do so as well.
PATIENCE_SECONDS = 2.0
PAUSE_SECONDS = 0.05
# ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION, and ERROR_DIR_NOT_EMPTY, while a file in a folder
# is about to go: https://learn.microsoft.com/windows/win32/debug/system-error-codes--0-499-
_IN_USE = {5, 32, 33, 145}
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait for its writer
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
# A draft, such as `.kernel.json.4711-0badcafe.part`.
_PART = r"\..+\.(?P<pid>\d+)-[0-9a-f]{8}\.part"
LOCKED_BYTE = 1 << 30  # on Windows: far behind the text, which stays readable
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}  # some network file systems
# What a Python from the Microsoft Store writes below these goes into a private folder of its package:
# https://docs.python.org/3/using/windows.html#redirection-of-local-data-registry-and-temporary-paths
_REDIRECTED = ("LOCALAPPDATA", "APPDATA")
_ONEDRIVE = ("OneDrive", "OneDriveConsumer", "OneDriveCommercial")

Result = TypeVar("Result")


def retry_while_in_use(change: Callable[[], Result]) -> Result:
    """Call `change`, which renames or removes something, and return its result; on Windows, repeat it while in use.

    Raises its `OSError`: on other systems and for other errors at once, for a file in use after two seconds.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return change()
        except OSError as error:
            if getattr(error, "winerror", None) not in _IN_USE or time.monotonic() > deadline:
                raise
        time.sleep(PAUSE_SECONDS)


def discard(path: Path) -> None:
    """Remove a file or a link, if it is there; raises `OSError`."""
    retry_while_in_use(lambda: path.unlink(missing_ok=True))


def discard_folder(path: Path) -> None:
    """Remove a folder with all that it holds; raises `OSError`, also if another process removes it meanwhile."""
    retry_while_in_use(lambda: shutil.rmtree(path))


def write_atomically(path: Path, data: str | bytes, *, private: bool = False) -> None:
    """Write a file (text as UTF-8) atomically and durably; `private` makes it readable only by this user.

    What is there, a link too, is replaced, with its mode. Raises `OSError`; the file is unchanged then, unless it was
    its folder that could not be flushed.
    """
    content = data.encode() if isinstance(data, str) else data
    put_in_place(write_draft(path, lambda file: file.write(content), private=private), path)


def write_temporary(path: Path, data: str | bytes) -> None:
    """Write or overwrite a file (text as UTF-8) for a program that is started next; the caller removes it.

    A new one is readable only by this user. It is not written atomically. Raises `OSError`, also if it is a link.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_LINK | _NO_WAIT | _BINARY
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)


def link_or_copy(source: Path, goal: Path) -> None:
    """Make `goal` a hard link to a file, or a copy if that fails; create its folder; raise `OSError`.

    An existing file is overwritten. Do nothing if a file is where that folder must be.
    """
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        return
    try:
        os.link(source, goal, follow_symlinks=False)
    except (OSError, NotImplementedError):
        shutil.copy2(source, goal, follow_symlinks=False)


def write_to_path(path: Path, data: str) -> None:
    """Write a text to a path that the user gave: atomically to a file, straight into a pipe, a device or a link.

    A file that only its owner may read stays so. `/dev/stdout` is a link, and what it leads to must not be replaced by
    another file. Raises `OSError`.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        path.write_text(data, encoding="utf-8")
    else:
        write_atomically(path, data, private=path.exists() and not path.stat().st_mode & 0o077)


def append_private(path: Path, text: str) -> None:
    """Append text to a file, made if needed and readable only by this user; raise `OSError`, also for a link."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK | _NO_WAIT
    with os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8") as file:
        if os.name != "nt" and os.fstat(file.fileno()).st_mode & 0o077:
            os.fchmod(file.fileno(), 0o600)
        file.write(text)


def write_draft(path: Path, write: Callable[[IO[bytes]], object], *, private: bool = False) -> Path:
    """Create a draft, a file beside `path`, let `write` fill it, flush it to the disk, and return its path.

    With `private` only this user can read it. Deletes it and raises if anything fails: `OSError`, or what `write`
    raises.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _BINARY
    try:
        with os.fdopen(os.open(part, flags, 0o600 if private else 0o666), "wb") as file:
            write(file)
            file.flush()
            _fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            discard(part)
        raise
    return part


def put_in_place(part: Path, path: Path) -> None:
    """Rename a draft (`part`) to its final path; if that fails, delete the draft and raise `OSError`.

    The folder is flushed to the disk afterwards, which may raise `OSError`, too.
    """
    try:
        retry_while_in_use(lambda: part.replace(path))
    except OSError:
        with suppress(OSError):
            discard(part)
        raise
    fsync_path(path.parent)


def _fsync(handle: int) -> None:
    """Flush an open file to the disk; on macOS also out of the drive's cache, which fsync(2) does not do there."""
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - not on Windows

        with suppress(OSError):  # network file systems and some external ones know fsync alone
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            return
    os.fsync(handle)


def fsync_path(path: Path) -> None:
    """Flush a file, or a folder's list of names, to the disk; do nothing on Windows.

    Some network file systems cannot do so for folders, which is ignored. Raises `OSError` otherwise.
    """
    if os.name != "nt":
        handle = os.open(path, os.O_RDONLY)
        try:
            _fsync(handle)
        except OSError as error:
            if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
                raise
        finally:
            os.close(handle)


def sync_file_system(folder: Path) -> None:
    """Flush the whole file system of a folder to the disk, and wait; do nothing on Windows. Raises `OSError`.

    It is the only way for 20,000 files that others have written. syncfs(2) waits for the one file system;
    sync_volume_np(3) with FULLSYNC and WAIT does on macOS, where sync(2) does not wait. Windows has nothing of the kind
    without administrator's rights.
    """
    if os.name == "nt":
        return
    import ctypes  # noqa: PLC0415 - 2 ms that only an installation need pay

    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        failed = library.sync_volume_np(os.fsencode(folder), 1 | 2)  # SYNC_VOLUME_FULLSYNC | SYNC_VOLUME_WAIT
    else:
        handle = os.open(folder, os.O_RDONLY)
        try:
            failed = library.syncfs(handle) if hasattr(library, "syncfs") else -1
        finally:
            os.close(handle)
    if failed:
        os.sync()


def open_regular(path: Path, *, follow: bool = False) -> io.BufferedReader:
    """Return a regular file opened for reading; raise `OSError` for anything else, and for a link unless `follow`."""
    handle = os.open(path, os.O_RDONLY | _NO_WAIT | _BINARY | (0 if follow else _NO_LINK))
    try:
        raise_if_irregular(handle, path)
    except OSError:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def raise_if_irregular(handle: int, path: Path) -> None:
    """Raise `OSError` for an open file that is no regular file, such as a pipe or a folder."""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise OSError(errno.EINVAL, _("it is not a regular file"), str(path))


def read_regular(path: Path, limit: int = STATE_LIMIT, *, follow: bool = False) -> bytes:
    """Return what a regular file holds; raise `OSError` if it is more than `limit` bytes, else as `open_regular`."""
    with open_regular(path, follow=follow) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, _("it is larger than any file that the assistant writes"), str(path))
    return data


def try_to_lock(handle: int) -> bool:
    """Lock an open file without waiting; return True, or False if it is locked, or cannot be for a passing reason.

    The lock is held until the file is closed. On Windows the position in the file moves to `LOCKED_BYTE`. Raises
    `OSError` if the file system has no locks.

    Not by filelock (4.2): on Windows it locks the first byte (`LockFileEx` at offset 0 in filelock/_windows.py), so
    that nobody could read who holds the lock.
    """
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 - on Windows only

            os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415 - not on Windows

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in NO_LOCKS:
            raise
        return False
    return True


def make_private_folder(path: Path) -> Path:
    """Make a folder that only this user can open, or close an existing one to others, and return it.

    Missing parents are made as usual. Raises `OSError` if it cannot be made or belongs to another user. On Windows an
    existing one is left as it is.
    """
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if os.name != "nt":
        status = path.stat()
        if status.st_uid != os.geteuid():
            raise OSError(errno.EPERM, _("it belongs to another user"), str(path))
        if status.st_mode & 0o077:
            path.chmod(0o700)
    return path


def is_writable(folder: Path) -> bool:
    """Return whether this user may make files in a folder; on Windows a file is made and deleted to find out.

    access(2) knows no rights there. https://docs.python.org/3/library/os.html#os.access
    """
    if os.name != "nt":
        return os.access(folder, os.W_OK | os.X_OK)
    with suppress(OSError):
        discard(write_draft(folder / "is_writable", lambda _file: None))
        return True
    return False


def delete_stale_drafts(folder: Path) -> None:
    """Delete the drafts that killed processes left in a folder; ignore what cannot be deleted."""
    for part in folder.glob(".*.part") if folder.is_dir() else ():
        match = re.fullmatch(_PART, part.name)
        if match and not is_running(int(match["pid"])):
            with suppress(OSError):
                discard(part)


def user_data() -> Path:
    """Return the folder for lasting data, such as environments."""
    return _platform_folder("user_data_path")


def user_state() -> Path:
    """Return the folder for work in progress: setups, their logs, journals of installations."""
    return _platform_folder("user_state_path")


def user_cache() -> Path:
    """Return the folder for what can be downloaded or made again: wheels, the labs' torch."""
    return _platform_folder("user_cache_path")


def _platform_folder(kind: str) -> Path:
    """Return one of the assistant's folders; `kind` is a function of platformdirs, such as "user_cache_path"."""
    import platformdirs  # noqa: PLC0415 - 3 ms that `detect` need not pay

    folder: Path = getattr(platformdirs, kind)(NAME, appauthor=False)
    return folder


def shared_environments_folder() -> Path:
    """Return the folder for new environments; for a Python of Microsoft's Store, one that other programs find, too."""
    return (Path.home() / NAME if is_redirected(user_data()) else user_data()) / "envs"


def is_from_store(executable: str, base_prefix: str) -> bool:
    """Return whether the Python with these paths comes from the Microsoft Store."""
    return "\\WindowsApps\\" in executable or "PythonSoftwareFoundation" in base_prefix


def is_redirected(path: Path) -> bool:
    """Return whether Windows redirects what this Python writes to a path, so that no other program finds it."""
    return is_from_store(sys.executable, sys.base_prefix) and _is_below(path, _REDIRECTED)


def is_in_onedrive(path: Path) -> bool:
    """Return whether a path lies in a folder of OneDrive."""
    return _is_below(path, _ONEDRIVE)


def _is_below(path: Path, variables: tuple[str, ...]) -> bool:
    """Return whether a path is in a folder that is the value of one of these environment variables."""
    return any(path.is_relative_to(folder) for folder in filter(None, map(os.environ.get, variables)))


def is_own_environment(prefix: str | Path) -> bool:
    """Return whether an environment, by its path, is one that start.py made for the assistant and will replace."""
    return Path(prefix).parent.name == OWN_ENVIRONMENTS


def current_folder() -> Path:
    """Return the current folder, which for a notebook's kernel is the folder of the notebook."""
    return Path.cwd()


def shorten_path(path: str) -> str:
    """Return a path with "~" in place of the home folder; any other path as it is."""
    home = Path.home()
    return str("~" / Path(path).relative_to(home)) if Path(path).is_relative_to(home) else path


def full_path(text: str, *, relative: bool = True) -> Path:
    """Return a typed path as an absolute one, with "~" expanded and ".." removed.

    Only for a path with ".." links are resolved, and then not one at its end that leads to a file. Raises `BadInput`
    for "~NAME" of an unknown user; without `relative` also for a relative path, and so for one of another system.
    """
    try:
        path = Path(text).expanduser()
        if relative or path.is_absolute():
            path = path.absolute()
            if ".." not in path.parts:
                return path
            is_whole = path.is_dir() or path.name == ".."
            return path.resolve() if is_whole else path.parent.resolve() / path.name  # a Python may be a link itself
    except RuntimeError:
        pass
    raise BadInput(
        _("“{path}” is not the full path of a folder on this system.", path=text[:80]),
        hint=_("Write the full path, such as {example}.", example=Path.home() / "pytorch"),
    )


# What is drawn in place of a sign that an encoding lacks; a letter that it lacks becomes a question mark.
PLAIN = {
    "→": "->",
    "←": "<-",
    "✓": "OK",
    "✗": "x",
    "✅": "OK",
    "⚠": "!",
    "·": "-",
    "•": "-",
    "…": "...",
    "–": "-",
    "—": "--",
    "−": "-",
    "‐": "-",
    "‑": "-",
    "“": '"',
    "”": '"',
    "„": '"',
    "‘": "'",
    "’": "'",
    "«": '"',
    "»": '"',
    "×": "x",
    "≠": "!=",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "±": "+-",
    "²": "2",
    "³": "3",
    "µ": "u",
    "μ": "u",
    "®": "(R)",
    "™": "(TM)",
    "│": "|",
    "┃": "|",
    "─": "-",
    "━": "-",
    "\N{NO-BREAK SPACE}": " ",
    "\N{NARROW NO-BREAK SPACE}": " ",
}


def _plain_characters(error: UnicodeError) -> tuple[str, int]:
    """Return what replaces the characters that an encoding lacks, and the position after them; raise other errors."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


codecs.register_error("plain", _plain_characters)


def configure_streams() -> None:
    """Make the standard streams replace characters that their encodings lack, or cannot decode, instead of raising.

    A stream that is not Python's own, such as a notebook's, stays as it is. If there is no standard input, as under
    some services, an empty one is opened.
    """
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - open as long as the program runs
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")


def flush_output() -> str:
    """Flush standard output; return the system's error text if that fails, "" otherwise and for a closed pipe.

    After a failure what is printed is dropped from then on: Python would fail at its end with a message of its own.
    """
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError as error:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
        return "" if isinstance(error, BrokenPipeError) else error.strerror or str(error)
    return ""


LOG = "SETUP_ASSISTANT_LOG"  # set by the start scripts of a bundle
_DRAWN = r"\x1b\[[0-9;?]*[A-Za-z]|\r"  # colours, and a progress bar's way back over its line


def copy_output_to_log() -> None:
    """Copy all that is printed from now on to the end of the file that `SETUP_ASSISTANT_LOG` gives.

    That is standard output and errors, without colours. A line with the time and our arguments goes before. Do nothing
    without the variable, or if the file cannot be written.
    """
    if name := os.environ.get(LOG):
        log = Path(name)
        with suppress(OSError):
            append_private(log, f"# {datetime.now().astimezone():%Y-%m-%d %H:%M:%S%z} {sys.argv[1:]}\n")
            sys.stdout, sys.stderr = (_Copied(stream, log) for stream in (sys.stdout, sys.stderr))


class _Copied:
    """A stream whose text also goes into a log, without colours."""

    def __init__(self, stream: TextIO, log: Path) -> None:
        self._stream, self._log = stream, log

    def write(self, text: str) -> int:
        """Write to the stream and the log; return the stream's result. A log that cannot be written is ignored."""
        with suppress(OSError):
            append_private(self._log, re.sub(_DRAWN, "", text))
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        """Return an attribute of the stream."""
        return getattr(self._stream, name)


def discard_typed() -> None:
    """Discard what was typed at the terminal and not yet read; called before a question is asked.

    Nothing is discarded unless input is a terminal: what is piped in is meant for the questions to come.
    """
    if not sys.stdin or sys.stdin.closed or not sys.stdin.isatty():
        return
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - exists on Windows only

        while msvcrt.kbhit():
            msvcrt.getwch()
    else:
        import termios  # noqa: PLC0415 - exists on POSIX only

        with suppress(termios.error):  # a job in the background may not touch its terminal
            termios.tcflush(sys.stdin, termios.TCIFLUSH)


def file_name(url: str) -> str:
    """Return the name of the file that a URL leads to; "" if it has none that is safe to use."""
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    return "" if name.startswith(".") or "\\" in name or not name.isprintable() else name


def local_path(url: str) -> Path | None:
    """Return the path in a `file:` URL, or a text without "://" as a path; None for a URL on a server."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        from urllib.request import url2pathname  # noqa: PLC0415 - draws in http and ssl

        return Path(url2pathname(parts.path))
    return None if "://" in url else Path(url)

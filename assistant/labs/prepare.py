"""`assistant labs prepare`: makes the folder that all learners of a machine share."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import quote

from packaging.utils import parse_wheel_filename

from assistant.host.files import read_plain, write_whole
from assistant.i18n import _, verbatim
from assistant.install import interpreter
from assistant.labs.scene import _install_torch, _run
from assistant.labs.shared import CACHE, INDEX, SHORT, STAMP, TORCH, UNPACKED, WHEELS, Shared, short_name
from assistant.model.errors import BadInput, WorkFailed, unwritable

WHEEL_BYTES = 4 << 30
LIMIT_SECONDS = 1800.0  # of one step; chosen: large wheels over a slow line
_CPYTHON = re.compile(r"cp3(\d+)$")


class Wanted(NamedTuple):
    """Packages that a lab installs together; `python` is the version that they are for, "" for this one."""

    requirements: tuple[str, ...]
    python: str = ""
    alone: bool = False


def prepare(folder: Path, wanted: Iterable[Wanted]) -> Shared:
    """Make the shared folder, read-only for all but its owner, and return it.

    Raises `BadInput` for a folder that holds something, `WorkFailed` with the last words of the step that failed.
    """
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(_("{folder} holds something already.", folder=folder), hint=_("Name a new or empty folder."))
    result = Shared(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / WHEELS).mkdir()
        _install_torch(folder, folder / TORCH)
        _download(folder / WHEELS, wanted)
        _write_index(folder)
        _fill_cache(result)
        _name_shortly(folder)
        write_whole(folder / STAMP, _stamp(folder))
        _close(folder)
    except OSError as error:
        raise unwritable(folder, error) from error
    return result


def _download(wheels: Path, wanted: Iterable[Wanted]) -> None:
    """Let pip, as this user has configured it, download what the labs install."""
    with TemporaryDirectory() as place:
        _uv("venv", "--seed", place)
        pip = [str(interpreter(Path(place))), "-m", "pip", "--disable-pip-version-check"]
        for one in wanted:
            version = ["--python-version", one.python] if one.python else []
            alone = ["--no-deps"] if one.alone else []
            command = ["download", "--only-binary", ":all:", "--dest", str(wheels)]
            _do(*pip, *command, *version, *alone, *one.requirements)


def _write_index(folder: Path) -> None:
    """Write pages that make the folder of wheels an index (PEP 503): pip and uv need no server for it."""
    links: dict[str, list[str]] = {}
    for wheel in sorted((folder / WHEELS).glob("*.whl")):
        digest = hashlib.sha256(read_plain(wheel, WHEEL_BYTES)).hexdigest()
        place = f"../../{WHEELS}/{quote(wheel.name)}#sha256={digest}"
        links.setdefault(parse_wheel_filename(wheel.name)[0], []).append(f'<a href="{place}">{wheel.name}</a><br>\n')
    for name, lines in links.items():
        (folder / INDEX / name).mkdir(parents=True)
        write_whole(folder / INDEX / name / "index.html", f"<!DOCTYPE html>\n{''.join(lines)}")


def _fill_cache(made: Shared) -> None:
    """Let uv unpack each wheel into the cache from which it will serve the learners."""
    variables = {"UV_CACHE_DIR": str(made.folder / CACHE), "UV_INDEX": made.index}
    for wheel in sorted((made.folder / WHEELS).glob("*.whl")):
        name, version, _build, tags = parse_wheel_filename(wheel.name)
        python = next((match[1] for tag in tags if (match := _CPYTHON.match(tag.interpreter))), "")
        chosen = ["--python-version", f"3.{python}"] if python else []
        with TemporaryDirectory() as place:
            _uv("pip", "install", "--no-deps", "--target", place, *chosen, f"{name}=={version}", **variables)


def _name_shortly(folder: Path) -> None:
    """Give each folder of the unpacked wheels a second, short name."""
    (folder / SHORT).mkdir()
    cache = folder / CACHE
    for unpacked in cache.glob(f"{UNPACKED}*"):
        for place, _folders, _files in os.walk(unpacked):
            inside = Path(place).relative_to(cache)
            (folder / SHORT / short_name(inside)).symlink_to(Path("..", CACHE, inside))


def _close(folder: Path) -> None:
    """Take the right to write from all files that learners' environments lead to, and from others than the owner.

    uv copies the file RECORD with its rights and then adds to the copy: the owner keeps the right to write it.
    """
    for place, folders, files in os.walk(folder):
        shared_files = Path(place).relative_to(folder).parts[:1] != (CACHE,) or UNPACKED in place
        for name in (*folders, *files):
            path = Path(place, name)
            if not path.is_symlink():
                kept = 0o555 if shared_files and name in files and name != "RECORD" else 0o755
                path.chmod(stat.S_IMODE(path.stat().st_mode) & kept | (0o555 if path.is_dir() else 0o444))
    folder.chmod(0o755)


def _stamp(folder: Path) -> str:
    """Name what the folder holds: another preparation gets another name, and so do learners' caches of it."""
    names = sorted(path.name for path in (folder / CACHE).glob(f"{UNPACKED}*/*"))
    return hashlib.sha256(" ".join([str(folder), *names]).encode()).hexdigest()[:16]


def _uv(*arguments: str, **variables: str) -> None:
    _do(sys.executable, "-m", "uv", *arguments, **variables)


def _do(*argv: str, **variables: str) -> None:
    done = _run(list(argv), variables, LIMIT_SECONDS)
    if done.status:
        raise WorkFailed(verbatim(done.last), hint=_("Fix that, remove what is in the folder, and try again."))

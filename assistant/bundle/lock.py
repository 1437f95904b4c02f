"""The lock of a kind, written for its folder and read on the machine that installs from it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

import tomli_w
from packaging.pylock import Pylock, PylockValidationError

from assistant.bundle.folder import digests
from assistant.bundle.manifest import File, Kind
from assistant.host.download import file_name
from assistant.host.files import read_plain
from assistant.host.process import CancelToken
from assistant.i18n import _
from assistant.install import Package
from assistant.model.errors import WorkFailed, unreadable
from assistant.model.record import Record


class Locked(Record, frozen=True):
    """What a lock holds: the version of each package, and the SHA-256 of each file by its path in the bundle."""

    versions: dict[str, str]
    files: dict[str, str]


def lock_text(python: str, packages: Iterable[Package], files: Mapping[str, File]) -> str:
    """Write a lock (PEP 751) whose files lie in the bundle, two folders above it."""
    rows = []
    for one in packages:
        file = files[file_name(one.url)]
        wheel = {"path": f"../../{file.path}", "size": file.bytes, "hashes": {"sha256": file.sha256}}
        rows.append({"name": one.name, "version": one.version, "wheels": [wheel]})
    head = {"lock-version": "1.0", "created-by": "torch-setup-assistant", "requires-python": f"=={python}.*"}
    return tomli_w.dumps({**head, "packages": rows})


def read_lock(folder: Path, kind: Kind) -> Locked:
    """Read the lock of a kind in a bundle's folder; raise `BadInput` for one that cannot be read."""
    path = folder / kind.lock
    try:
        packages = Pylock.from_dict(tomllib.loads(read_plain(path).decode())).packages
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, PylockValidationError) as error:
        raise _damaged(kind.lock) from error
    files = {
        str(PurePosixPath(*PurePosixPath(wheel.path or "").parts[-2:])): wheel.hashes.get("sha256", "")
        for one in packages
        for wheel in one.wheels or ()
    }
    return Locked(versions={one.name: str(one.version) for one in packages}, files=files)


def check_files(folder: Path, locked: Locked) -> None:
    """Raise `WorkFailed` for the first file of a lock that is not in the folder as the lock says."""
    found = digests(folder, locked.files, CancelToken())
    if wrong := next((path for path, digest in locked.files.items() if found[path] != digest), ""):
        raise _damaged(wrong)


def _damaged(path: str) -> WorkFailed:
    return WorkFailed(
        _("{file} is missing in the bundle, or is not as it was made.", file=path),
        hint=_("Copy the bundle again; `assistant bundle check` names every such file."),
    )

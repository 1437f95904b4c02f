"""What lies in a bundle's folder: the list of its files, the locks, and each file brought once and checked."""

from __future__ import annotations

import hashlib
import shutil
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path, PurePosixPath
from typing import Literal

import tomli_w
from packaging.pylock import Pylock, PylockValidationError

from assistant.api import BadInput, Record, Text, WorkFailed, _, render, replace
from assistant.api.records import Machine, Plan, Progress, Step, from_json, to_json
from assistant.api.steps import Fetch, Package, Patience, Tools, download, file_name, local_path
from assistant.api.system import (
    CancelToken,
    __version__,
    discard,
    open_regular,
    put_in_place,
    read_regular,
    unreadable_error,
    write_atomically,
    write_draft,
)
from assistant.api.texts import Policy, redact

MANIFEST = "bundle.json"
WHEELS, LOCKS, PYTHONS, UVS, OWN = "wheels", "locks", "python", "uv", "assistant"


class File(Record, frozen=True):
    """One file: its path below the bundle's folder, with slashes, its SHA-256 and its size in bytes."""

    path: str
    sha256: str
    bytes: int


class Kind(Record, frozen=True, omit_defaults=False):
    """Machines that get the same: their names, the plan, the path of its lock, and the Python that it needs.

    `machine` holds what the lock was made for: system, architecture, C library, and the release of macOS.
    """

    key: str
    title: str
    machines: tuple[str, ...]
    plan: Plan
    lock: str
    python: str
    machine: Machine
    platform: str


class Without(Record, frozen=True):
    """A machine that gets nothing, and why."""

    machine: str
    why: Text


class Bundle(Record, frozen=True, omit_defaults=False):
    """The content of `bundle.json`; `made` is "" while the bundle is not finished.

    `pythons` are those that it carries, by platform: {"windows-x86_64": ["3.12"]}.
    """

    schema: Literal[1] = 1
    made: str = ""
    assistant: str = __version__
    files: tuple[File, ...] = ()
    kinds: tuple[Kind, ...] = ()
    without: tuple[Without, ...] = ()
    pythons: dict[str, tuple[str, ...]] = {}

    @property
    def size(self) -> int:
        """The size of all files together, in bytes."""
        return sum(file.bytes for file in self.files)


_NAME_A_BUNDLE = _("Name the folder that `assistant bundle make` has written.")


def read_bundle(folder: Path, hint: Text = _NAME_A_BUNDLE) -> Bundle:
    """Read the `bundle.json` of a folder.

    Raises `BadInput` for a folder without one, with `hint` as the next step, and for one that cannot be read or names
    files outside the folder.
    """
    try:
        bundle = from_json(read_regular(folder / MANIFEST), Bundle, MANIFEST)
    except OSError as error:
        raise BadInput(
            _("{folder} is not a bundle: it has no {file}.", folder=folder, file=MANIFEST), hint=hint
        ) from error
    for path in (*(file.path for file in bundle.files), *(kind.lock for kind in bundle.kinds)):
        parts = PurePosixPath(path).parts
        if not parts or parts[0] == "/" or ".." in parts or "\\" in path or ":" in path:
            raise BadInput(
                _("{file} names a file outside the bundle: {path}", file=MANIFEST, path=path),
                hint=_("Do not use this bundle; make a new one."),
            )
    return bundle


def write_bundle(folder: Path, bundle: Bundle) -> None:
    """Write a folder's `bundle.json`, without passwords, in the current language. Raises `OSError`."""
    plain = replace(bundle, without=tuple(replace(one, why=render(one.why)) for one in bundle.without))
    write_atomically(folder / MANIFEST, to_json(redact(plain, Policy.USABLE), indent=1) + "\n")


AT_ONCE = 4  # chosen: files that are read side by side; hashing lets other threads run


class Folder:
    """A bundle's folder while it is filled; `fetched` are the bytes that had to be fetched or copied for it.

    `before` is what its `bundle.json` said until now.
    """

    def __init__(self, path: Path, before: Bundle, tools: Tools) -> None:
        self.path, self.tools = path, tools
        self.fetched = 0
        self._noted = {file.path: file.sha256 for file in before.files}
        self._begun: set[str] = set()

    def bring(
        self, wanted: Sequence[Fetch], *, patience: Patience | None = None, index_urls: tuple[str, ...] = ()
    ) -> list[File]:
        """Copy or download files to their paths below the folder, and return them with their hashes and sizes.

        A file that is there stays if it has the hash that its index states or, without one, that `before` states.
        `index_urls` are indexes whose logins the download may use. Raises `BadInput` for a file of this disk that
        cannot be read, `WorkFailed` if a file cannot be fetched or is not what its index says, `OSError` and
        `Cancelled`; what was fetched stays.
        """
        there = digests(self.path, [one.path for one in wanted], self.tools.cancel)
        missing = [one for one in wanted if there[one.path] != (one.sha256 or self._noted.get(one.path, "-"))]
        for one in missing:
            if local_path(one.url):
                _copy(one, self.path / one.path)
        remote = [replace(one, path=str(self.path / one.path)) for one in missing if not local_path(one.url)]
        sources = self.tools.sources
        if remote and sources.offline:
            raise WorkFailed(
                _("{file} is not on this machine.", file=Path(remote[0].path).name),
                hint=_("Put it into the folder of wheels, or allow downloads."),
            )
        if remote:
            logins = (*index_urls, *sources.settings.index_urls, *sources.uv_indexes)
            with closing(
                download(
                    remote,
                    self.tools.cancel,
                    settings=sources.settings,
                    index_urls=logins,
                    patience=patience,
                )
            ) as headways:
                for headway in headways:
                    self._report(headway.have)
        there |= digests(self.path, [one.path for one in missing], self.tools.cancel)
        files = {one.path: File(path=one.path, sha256=there[one.path], bytes=self._size(one.path)) for one in wanted}
        self.fetched += sum(files[one.path].bytes for one in missing)
        return [*files.values()]

    def write(self, path: str, content: bytes, *, program: bool = False) -> File:
        """Write a file unless it is there with this content, and return its entry in the list. Raises `OSError`.

        A `program`, and any ".sh", is made executable where the disk allows it.
        """
        file = File(path=path, sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
        place = self.path / path
        if digests(self.path, [path], self.tools.cancel)[path] != file.sha256:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(place, content)
        if program or path.endswith(".sh"):
            with suppress(OSError):  # a memory stick knows no such rights
                place.chmod(0o755)
        return file

    def keep_only(self, files: Iterable[File]) -> None:
        """Delete files of the bundle that was here before, except these, and broken-off downloads. Raises `OSError`."""
        kept = {file.path for file in files}
        for path in self._noted.keys() - kept:
            discard(self.path / path)
        for part in self.path.rglob("*.part"):
            discard(part)

    def _size(self, path: str) -> int:
        return (self.path / path).stat().st_size

    def _report(self, paths: Iterable[str]) -> None:
        """Report the download of each file once, when it has begun."""
        for path in paths:
            if path not in self._begun:
                self._begun.add(path)
                self.tools.sink(Progress(step=Step.INSTALL, text=_("Downloading {file}", file=Path(path).name)))


def digests(folder: Path, paths: Iterable[str], cancel: CancelToken) -> dict[str, str]:
    """Return the SHA-256 of files by their paths below a folder, "" for one that cannot be read.

    Raises `Cancelled`.
    """
    paths = list(paths)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(paths, pool.map(lambda path: _digest(folder / path, cancel), paths), strict=True))


def _digest(path: Path, cancel: CancelToken | None = None) -> str:
    """Return the SHA-256 of a file; "" if it cannot be read, or is a link or no file at all."""
    digest = hashlib.sha256()
    try:
        with open_regular(path) as content:
            while piece := content.read(1 << 20):
                digest.update(piece)
                if cancel:
                    cancel.check()
    except OSError:
        return ""
    return digest.hexdigest()


def _copy(file: Fetch, target: Path) -> None:
    """Copy a file of this disk to `target`, whole or not at all.

    Raises `BadInput` if it cannot be read, `WorkFailed` if its hash is not that of its index, and `OSError`.
    """
    source = local_path(file.url)
    assert source  # noqa: S101 - see `bring`
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        content = open_regular(source, follow=True)
    except OSError as error:
        raise unreadable_error(source, error) from error
    with content:
        part = write_draft(target, lambda out: shutil.copyfileobj(content, out, 1 << 20))
    if file.sha256 and _digest(part) != file.sha256:
        discard(part)
        raise WorkFailed(
            _("{file} is not the file that its index describes: its size or hash differs.", file=source),
            hint=_("Get that file again."),
        )
    put_in_place(part, target)


class Checked(Record, frozen=True, omit_defaults=False):
    """What is wrong with a bundle: files that are missing, changed or foreign; `files` counts the right ones."""

    files: int
    bytes: int
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    finished: bool = True

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return self.finished and not (self.missing or self.changed or self.foreign)


def check(folder: Path, bundle: Bundle, cancel: CancelToken) -> Checked:
    """Compare a folder with a bundle's list of files, byte by byte.

    A file that is not in the list is foreign, one that cannot be read is changed. Raises `Cancelled`.
    """
    found = digests(folder, (file.path for file in bundle.files), cancel)
    wrong = [file.path for file in bundle.files if found[file.path] != file.sha256]
    missing = tuple(path for path in wrong if not (folder / path).is_file())
    return Checked(
        files=len(bundle.files) - len(wrong),
        bytes=bundle.size,
        missing=missing,
        changed=tuple(path for path in wrong if path not in missing),
        foreign=tuple(sorted(_there(folder) - {file.path for file in bundle.files})),
        finished=bool(bundle.made),
    )


def _there(folder: Path) -> set[str]:
    """Return the paths of all files and links below a folder, except `bundle.json`."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {path.as_posix() for path in paths} - {MANIFEST}


class Locked(Record, frozen=True):
    """What a lock holds: the version of each package, and the SHA-256 of each file by its path in the bundle."""

    versions: dict[str, str]
    files: dict[str, str]


def lock_text(python: str, packages: Iterable[Package], files: Mapping[str, File]) -> str:
    """Return a lock (PEP 751) for packages whose files lie in the bundle, two folders above it.

    `files` has the file of each package by the name in its URL.
    """
    rows = []
    for package in packages:
        file = files[file_name(package.url)]
        wheel = {"path": f"../../{file.path}", "size": file.bytes, "hashes": {"sha256": file.sha256}}
        rows.append({"name": package.name, "version": package.version, "wheels": [wheel]})
    head = {"lock-version": "1.0", "created-by": "torch-setup-assistant", "requires-python": f"=={python}.*"}
    return tomli_w.dumps({**head, "packages": rows})


def read_lock(folder: Path, kind: Kind) -> Locked:
    """Read the lock of a kind in a bundle's folder.

    Raises `BadInput` if the file cannot be read, and `WorkFailed` if it is no lock.
    """
    path = folder / kind.lock
    try:
        packages = Pylock.from_dict(tomllib.loads(read_regular(path).decode())).packages
    except OSError as error:
        raise unreadable_error(path, error) from error
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

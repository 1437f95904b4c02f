"""The folder of a bundle: each file is brought once, checked, and resumed; what is there already stays."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from assistant.bundle.manifest import Bundle, File
from assistant.host.download import Fetch, Patience, download
from assistant.host.files import discard, draft, open_plain, put_in_place, write_whole
from assistant.host.index import local_path
from assistant.host.process import CancelToken
from assistant.i18n import _
from assistant.install import Tools
from assistant.model.errors import WorkFailed, unreadable
from assistant.model.event import Progress, Step
from assistant.model.record import replace

AT_ONCE = 4  # chosen: files that are read side by side; hashing lets other threads run


class Folder:
    """A bundle's folder while it is filled; `fetched` are the bytes that had to be fetched or copied for it."""

    def __init__(self, path: Path, before: Bundle, tools: Tools) -> None:
        self.path, self.tools = path, tools
        self.fetched = 0
        self._noted = {file.path: file.sha256 for file in before.files}
        self._begun: set[str] = set()

    def bring(
        self, wanted: Sequence[Fetch], *, patience: Patience | None = None, index_urls: tuple[str, ...] = ()
    ) -> list[File]:
        """Let the folder hold some files, by their paths below it, and return what they are.

        A file that is there is not fetched again where it has the hash that its index tells, else the one that an
        earlier run has noted. Raises `WorkFailed`, with what was fetched kept, and `Cancelled`.
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
            network = sources.settings.network
            download(remote, self._hear, self.tools.cancel, network=network, index_urls=logins, patience=patience)
        there |= digests(self.path, [one.path for one in missing], self.tools.cancel)
        files = {one.path: File(path=one.path, sha256=there[one.path], bytes=self._size(one.path)) for one in wanted}
        self.fetched += sum(files[one.path].bytes for one in missing)
        return [*files.values()]

    def write(self, path: str, content: bytes, *, program: bool = False) -> File:
        """Write a file unless it is there already. Raises `OSError`."""
        file = File(path=path, sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
        place = self.path / path
        if digests(self.path, [path], self.tools.cancel)[path] != file.sha256:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, content)
        if program or path.endswith(".sh"):
            with suppress(OSError):  # a memory stick knows no such rights
                place.chmod(0o755)
        return file

    def keep_only(self, files: Iterable[File]) -> None:
        """Remove what an earlier bundle in this folder had beside these files, and what broke off. Raises `OSError`."""
        kept = {file.path for file in files}
        for path in self._noted.keys() - kept:
            discard(self.path / path)
        for part in self.path.rglob("*.part"):
            discard(part)

    def _size(self, path: str) -> int:
        return (self.path / path).stat().st_size

    def _hear(self, file: Fetch, _have: int) -> None:
        """Tell each file once, when it begins."""
        if file.path not in self._begun:
            self._begun.add(file.path)
            self.tools.sink(Progress(step=Step.INSTALL, text=_("Downloading {file}", file=Path(file.path).name)))


def digests(folder: Path, paths: Iterable[str], cancel: CancelToken) -> dict[str, str]:
    """Return the SHA-256 of files by their paths below a folder, "" for one that is not there or cannot be read."""
    paths = list(paths)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(paths, pool.map(lambda path: _digest(folder / path, cancel), paths), strict=True))


def _digest(path: Path, cancel: CancelToken | None = None) -> str:
    digest = hashlib.sha256()
    try:
        with open_plain(path) as content:
            while piece := content.read(1 << 20):
                digest.update(piece)
                if cancel:
                    cancel.check()
    except OSError:
        return ""
    return digest.hexdigest()


def _copy(file: Fetch, target: Path) -> None:
    """Copy a file of this disk, whole or not at all; raise `WorkFailed` for one that is not what its index says."""
    source = local_path(file.url)
    assert source  # noqa: S101 - see `bring`
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        content = open_plain(source, follow=True)
    except OSError as error:
        raise unreadable(source, error) from error
    with content:
        part = draft(target, lambda out: shutil.copyfileobj(content, out, 1 << 20))
    if file.sha256 and _digest(part) != file.sha256:
        discard(part)
        raise WorkFailed(
            _("{file} is not the file that its index describes: its size or hash differs.", file=source),
            hint=_("Get that file again."),
        )
    put_in_place(part, target)

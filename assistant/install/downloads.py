"""Fetches large wheels, resumed where they broke off; small ones are uv's to fetch.

uv begins a file anew after most failures, as often as its bound on retries allows: a wheel of 400 MB whose connection
is cut ten times took 767 MB (uv 0.13.9). A wheel of 3 GB on a bad line would never arrive.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from assistant.host.download import Fetch, download, file_name, local_path
from assistant.host.files import discard_folder, open_regular, retry_while_in_use, user_cache
from assistant.host.lock import Lock
from assistant.host.process import CancelToken
from assistant.i18n import _
from assistant.install.journal import not_removed_error
from assistant.install.resolution import Package
from assistant.install.uv import Uv, not_on_disk_error
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.event import Part

LARGE = 5_000_000  # bytes; chosen: what a line of 10 Mbit/s brings in 4 s, and so small that nearly all is metered
REPORT_SECONDS = 0.1  # between two events of progress


def downloads_folder() -> Path:
    """Return the folder of downloaded wheels; each lies in a folder of its own in it."""
    return user_cache() / "wheels"


def files_on_disk(packages: Iterable[Package]) -> dict[str, Path]:
    """Return the paths of the packages' files that exist on this disk, by package name: local and downloaded wheels."""
    files = {package.name: wheel_path(package) for package in packages}
    return {name: file for name, file in files.items() if file.is_file()}


def list_missing_large(packages: Iterable[Package]) -> list[Package]:
    """Return the packages of at least 5 MB, and those of unknown size, whose file is not on this disk."""
    large = (package for package in packages if package.size is None or package.size >= LARGE)
    return [package for package in large if not wheel_path(package).is_file()]


def wheel_path(package: Package) -> Path:
    """Return a local file's own path, else one in the downloads folder; `BadInput` if the URL has no file name."""
    path, name = local_path(package.url), file_name(package.url)
    if path:
        return path
    if not name:
        raise BadInput(
            _("{url} does not name a file.", url=package.url), hint=_("The index is broken; choose another one.")
        )
    return downloads_folder() / (package.sha256[:20] or f"{package.name}-{package.version}") / name


def fetch_large_wheels(packages: Sequence[Package], uv: Uv, index_url: str | None = None) -> None:
    """Download the wheels that `list_missing_large` gives, checking sizes and hashes; first wait for other downloads.

    `index_url` is torch's own index, whose password its files need too. Raises `WorkFailed` if a file cannot be
    downloaded, when offline, and if one is missing from the user's own folder; `Cancelled` on request.
    """
    lock = Lock(downloads_folder() / "lock")
    waiting = False
    while lock.take():  # one download at a time: two would fetch the same files twice
        if not waiting:
            uv.progress(_("Waiting for another download to finish"), part=Part.DOWNLOAD)
        waiting = True
        uv.cancel.wait(0.5)
        uv.cancel.check()
    try:
        missing = list_missing_large(packages)
        absent = [package for package in missing if uv.offline or package.url.startswith("file:")]
        if absent:
            raise not_on_disk_error(wheel_path(absent[0]).name)
        files = [
            Fetch(url=package.url, path=str(wheel_path(package)), sha256=package.sha256, size=package.size)
            for package in missing
        ]
        for file in files:
            _set_aside(Path(file.path))
        if files:
            download(
                files,
                _Meter(files, uv).update,
                uv.cancel,
                settings=uv.settings,
                index_urls=(*filter(None, [index_url]), *uv.index_urls),
                patience=uv.patience,
            )
    finally:
        lock.release()


def _set_aside(path: Path) -> None:
    """Rename whatever exists at a path to "NAME.….damaged", so that a file can be put there; else do nothing."""
    if os.path.lexists(path):
        retry_while_in_use(partial(path.rename, path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.damaged")))


def set_aside_damaged(packages: Iterable[Package], uv: Uv) -> None:
    """Rename each file on this disk whose size or hash is not that of its package, so that it is downloaded again.

    Raises `WorkFailed` for a file in a folder of wheels, which is the user's, and `Cancelled` on request.
    """
    for package in packages:
        file = wheel_path(package)
        if not file.is_file() or _is_sound(package, file, uv.cancel):
            continue
        if package.url.startswith("file:"):
            raise WorkFailed(
                _("{file} is not the file that its index describes: its size or hash differs.", file=file),
                hint=_("Get that file again."),
            )
        _set_aside(file)
        uv.log(_("The copy of {file} on this disk is damaged; it is downloaded again.", file=file.name))


def _is_sound(package: Package, file: Path, cancel: CancelToken) -> bool:
    """Return whether a file has the size and the hash that its index gives, as far as it gives them."""
    try:
        if package.size is not None and file.stat().st_size != package.size:
            return False
        digest = hashlib.sha256()
        with open_regular(file, follow=True) as content:
            while package.sha256 and (piece := content.read(1 << 20)):
                digest.update(piece)
                cancel.check()
    except OSError:
        return False
    return not package.sha256 or digest.hexdigest() == package.sha256


class _Meter:
    """Adds up the bytes of parallel downloads, and sends a progress event at most ten times a second."""

    def __init__(self, files: Sequence[Fetch], uv: Uv) -> None:
        self._uv = uv
        self._total = sum(file.size or 0 for file in files) if all(file.size for file in files) else None
        self._have: dict[str, int] = {}
        self._lock = threading.Lock()
        self._began, self._reported, self._resumed = time.monotonic(), 0.0, 0

    def update(self, file: Fetch, have: int) -> None:
        """Record that `have` bytes of a file are on disk; send the sum of all files unless one was sent just before."""
        with self._lock:
            if file.path not in self._have:
                self._resumed += have  # of an earlier try, and no part of our speed
            self._have[file.path] = have
            now, done = time.monotonic(), sum(self._have.values())
            if now - self._reported < REPORT_SECONDS and done != self._total:
                return
            self._reported = now
        self._uv.progress(
            _("Downloading {file}", file=Path(file.path).name),
            done=done,
            total=self._total,
            unit="bytes",
            part=Part.DOWNLOAD,
            rate=(done - self._resumed) / max(now - self._began, 1e-3),
        )


def delete_downloads() -> int:
    """Delete the downloaded wheels and return their bytes; raise `WorkFailed` if that fails, or a download runs."""
    folder, lock = downloads_folder(), Lock(downloads_folder() / "lock")
    if lock.take():
        raise WorkFailed(_("A download is running."), hint=_("Wait until it has finished, and start again."))
    try:
        entries = [entry for entry in folder.iterdir() if entry.is_dir()]  # all but the lock
        size = sum(file.lstat().st_size for entry in entries for file in entry.rglob("*") if file.is_file())
        for entry in entries:
            discard_folder(entry)
    except OSError as error:
        raise not_removed_error(folder, error) from error
    finally:
        lock.release()
    return size

"""Brings every file of a resolution to this disk before anything changes; what is in the cache is checked."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from assistant.host.download import Fetch, download, file_name
from assistant.host.files import open_plain, patiently
from assistant.host.folders import user_cache
from assistant.host.index import local_path
from assistant.host.lock import Lock
from assistant.host.process import CancelToken
from assistant.i18n import _
from assistant.install.installer import Installer
from assistant.install.packages import Package
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.event import Part

REPORT_SECONDS = 0.1  # between two events of progress


def cache_folder() -> Path:
    """Return the folder of downloaded wheels; each lies in a folder named after its hash."""
    return user_cache() / "wheels"


def fetch(packages: Sequence[Package], installer: Installer, index_url: str | None = None) -> dict[str, Path]:
    """Download every package that is not on this disk, and return all paths by package name.

    Size and hash are checked as files arrive, and of those that were here already: one that is not what it should be is
    set aside and downloaded again. `index_url` is torch's own index, whose password its files need too. Raises
    `WorkFailed` when one cannot be had.
    """
    wanted = places(packages)
    lock = Lock(cache_folder() / "lock")
    waiting = False
    while lock.take():  # one download at a time: two would fetch the same files twice
        if not waiting:
            installer.progress(_("Waiting for another download to finish"), part=Part.DOWNLOAD)
        waiting = True
        installer.cancel.wait(0.5)
        installer.cancel.check()
    try:
        _set_damaged_aside([one for one in packages if os.path.lexists(wanted[one.name])], wanted, installer)
        _download(to_download(packages), wanted, installer, (index_url,) if index_url else ())
    finally:
        lock.release()
    return wanted


def places(packages: Sequence[Package]) -> dict[str, Path]:
    """Return where the file of each package lies or will lie, by package name."""
    return {package.name: _place(package) for package in packages}


def to_download(packages: Sequence[Package]) -> list[Package]:
    """List the packages whose files are not on this disk yet."""
    return [package for package in packages if not _place(package).is_file()]


def requirement_lines(packages: Sequence[Package], files: dict[str, Path]) -> str:
    """Write the requirements file that uv and pip read alike: exact versions, their hashes, the folders they lie in.

    Where an index gives no hash, that of the file which was downloaded stands for it: nothing else is accepted.
    """
    folders = dict.fromkeys(file.parent.as_uri() for file in files.values())
    lines = ["--no-index", "--require-hashes", *(f"--find-links {folder}" for folder in folders)]
    digests = {package.name: package.sha256 or _digest(files[package.name]) for package in packages}
    lines += [f"{package.name}=={package.version} --hash=sha256:{digests[package.name]}" for package in packages]
    return "\n".join([*lines, ""])


def _set_damaged_aside(packages: Sequence[Package], wanted: dict[str, Path], installer: Installer) -> None:
    """Move cached files out of the way that a power cut, a full disk or anybody else has changed."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        sound = list(pool.map(lambda package: _is_sound(package, wanted[package.name], installer.cancel), packages))
    for package in [package for package, good in zip(packages, sound, strict=True) if not good]:
        file = wanted[package.name]
        if package.url.startswith("file:"):
            raise WorkFailed(
                _("{file} is not the file that its index describes: its size or hash differs.", file=file),
                hint=_("Get that file again."),
            )
        patiently(partial(file.rename, file.with_name(f"{file.name}.{uuid.uuid4().hex[:8]}.damaged")))
        installer.log(_("The copy of {file} on this disk is damaged; it is downloaded again.", file=file.name))


def _is_sound(package: Package, file: Path, cancel: CancelToken) -> bool:
    """Return whether a file has the size and the hash that its index gives, as far as it gives them."""
    try:
        if package.size is not None and file.stat().st_size != package.size:
            return False
        return not package.sha256 or _digest(file, cancel) == package.sha256
    except OSError:
        return False


def _digest(file: Path, cancel: CancelToken | None = None) -> str:
    digest = hashlib.sha256()
    with open_plain(file, follow=True) as content:
        while piece := content.read(1 << 20):
            digest.update(piece)
            if cancel:
                cancel.check()
    return digest.hexdigest()


def _place(package: Package) -> Path:
    """Return where a package's file lies: where it is, for a folder of wheels, else in the cache."""
    path, name = local_path(package.url), file_name(package.url)
    if path:
        return path
    if not name:
        raise BadInput(
            _("{url} does not name a file.", url=package.url), hint=_("The index is broken; choose another one.")
        )
    return cache_folder() / (package.sha256[:20] or f"{package.name}-{package.version}") / name


def _download(
    packages: Sequence[Package], wanted: dict[str, Path], installer: Installer, index_urls: tuple[str, ...]
) -> None:
    absent = [package for package in packages if package.url.startswith("file:")]
    if absent or (packages and installer.offline):
        raise WorkFailed(
            _("{file} is not on this machine.", file=wanted[(absent or packages)[0].name].name),
            hint=_("Put it into the folder of wheels, or allow downloads."),
        )
    files = [
        Fetch(url=package.url, path=str(wanted[package.name]), sha256=package.sha256, size=package.size)
        for package in packages
    ]
    meter = _Meter(files, installer)
    if files:
        download(
            files,
            meter.update,
            installer.cancel,
            network=installer.settings.network,
            index_urls=(*index_urls, *installer.index_urls),
            patience=installer.patience,
        )


class _Meter:
    """Adds up what the workers download, and reports it ten times a second."""

    def __init__(self, files: Sequence[Fetch], installer: Installer) -> None:
        self._installer = installer
        self._total = sum(file.size or 0 for file in files) if all(file.size for file in files) else None
        self._have: dict[str, int] = {}
        self._lock = threading.Lock()
        self._began, self._reported, self._resumed = time.monotonic(), 0.0, 0

    def update(self, file: Fetch, have: int) -> None:
        """Note that `have` bytes of a file are here."""
        with self._lock:
            if file.path not in self._have:
                self._resumed += have  # of an earlier try, and no part of our speed
            self._have[file.path] = have
            now, done = time.monotonic(), sum(self._have.values())
            if now - self._reported < REPORT_SECONDS and done != self._total:
                return
            self._reported = now
        self._installer.progress(
            _("Downloading {file}", file=Path(file.path).name),
            done=done,
            total=self._total,
            unit="bytes",
            part=Part.DOWNLOAD,
            rate=(done - self._resumed) / max(now - self._began, 1e-3),
        )

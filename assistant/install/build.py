"""Builds the wheel of one source archive, after the user agreed to it by name: the only place that runs such code."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from assistant.host.download import Fetch, download, file_name
from assistant.host.files import read_plain, write_whole
from assistant.host.folders import user_cache
from assistant.host.index import Archive, local_path
from assistant.i18n import _
from assistant.install.installer import Installer, last_words
from assistant.install.temporary import scratch
from assistant.model.errors import WorkFailed, unreadable, unwritable

LIMIT = 4 << 30  # bytes; larger than any source archive or wheel that PyPI takes


def build_wheel(name: str, archive: Archive, installer: Installer, index_url: str | None = None) -> Path:
    """Build the wheel of an archive in the user's cache, its hash checked first, and return the folder that holds it.

    Nothing else is built: what the build itself needs comes as wheels. A wheel that was built before is used again.
    Raises `WorkFailed` where the archive cannot be had, differs from its hash, or does not build as `name`.
    """
    with scratch() as (work, lock):
        source = _obtained(archive, installer, work, index_url)
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        if archive.sha256 and digest != archive.sha256:
            raise WorkFailed(
                _("{file} is not the file that its index describes: its hash differs.", file=archive.filename),
                hint=_("None of its code was run. The index or the connection is broken; choose another index."),
            )
        interpreter = hashlib.sha256(installer.python.encode()).hexdigest()[:8]  # a build may fit this one alone
        folder = user_cache() / "built" / f"{name}-{archive.version}-{digest[:20]}-{interpreter}"
        if not any(folder.glob("*.whl")):
            wheel = _built(name, archive, source, dataclasses.replace(installer, lock=lock), work)
            try:
                folder.mkdir(parents=True, exist_ok=True)
                write_whole(folder / wheel.name, read_plain(wheel, LIMIT))
            except OSError as error:
                raise unwritable(folder, error) from error
    return folder


def _obtained(archive: Archive, installer: Installer, work: Path, index_url: str | None) -> Path:
    """Return a copy of the archive that nobody else can change between the check and the build."""
    place = work / (file_name(archive.url) or "archive")
    if path := local_path(archive.url):
        try:
            write_whole(place, read_plain(path, LIMIT, follow=True))
        except OSError as error:
            raise unreadable(path, error) from error
        return place
    installer.progress(_("Downloading {file}", file=place.name))
    download(
        [Fetch(url=archive.url, path=str(place), sha256=archive.sha256)],
        lambda _file, _have: None,
        installer.cancel,
        network=installer.settings.network,
        index_urls=(*filter(None, [index_url]), *installer.index_urls),
        patience=installer.patience,
    )
    return place


def _built(name: str, archive: Archive, source: Path, installer: Installer, work: Path) -> Path:
    out, output = work / "out", list[str]()
    installer.progress(_("Building {file}", file=source.name))
    failed = installer.call(installer.backend.build(installer.python, source, out), output, work)
    wheels = [wheel for wheel in out.glob("*.whl") if _is_wheel_of(wheel.name, name, archive.version)]
    if failed or not wheels:
        raise WorkFailed(
            _("{file} could not be built: {reason}", file=source.name, reason=last_words(output)),
            hint=_("Nothing was installed. Pin a version that has a wheel.", option="--pin"),
        )
    return wheels[0]


def _is_wheel_of(filename: str, name: str, version: str) -> bool:
    """Return whether a wheel is what was agreed to: an archive may build anything else."""
    try:
        found = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return False
    return found[0] == canonicalize_name(name) and found[1].public == Version(version).public

"""The tables that this user refreshed, as an edition of their own in their data folder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from assistant.catalog.editions import MANIFEST, Manifest, digest, editions, look_again, manifest_of, refreshed_folder
from assistant.host.files import discard, read_plain, write_whole
from assistant.host.lock import Lock
from assistant.i18n import _
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import from_json, to_json


def write_tables(tables: Mapping[str, msgspec.Struct]) -> Path:
    """Write refreshed tables by the names of their data files, such as "torch", and return the manifest's path.

    They and what was refreshed before are one edition, which is there whole or not at all: its files have names of
    their own, and the manifest comes last. Raises `WorkFailed` where that cannot be done.
    """
    lock = Lock(refreshed_folder() / "lock")
    if lock.take():
        raise WorkFailed(
            _("Another refresh is writing into {path}.", path=refreshed_folder()),
            hint=_("The tables stay as they are; refresh again when it has finished."),
        )
    try:
        return _write(tables, refreshed_folder())
    except OSError as error:
        raise WorkFailed(
            _("{path} cannot be written: {reason}.", path=error.filename or refreshed_folder(), reason=error.strerror),
            hint=_("The tables stay as they are; make that folder writable and try again."),
        ) from error
    finally:
        lock.release()


def _write(tables: Mapping[str, msgspec.Struct], folder: Path) -> Path:
    manifest = folder / MANIFEST
    look_again()  # another process may have refreshed since this one began
    texts = {name: text for one in editions().whole if one.folder == folder for name, text in one.texts.items()}
    texts |= {name: to_json(table, indent=1).encode() for name, table in tables.items()}
    files = {name: f"{name}-{digest(text)[:16]}.json" for name, text in texts.items()}
    kept = {manifest.name, *files.values(), *_files(manifest)}
    for name, text in texts.items():
        write_whole(folder / files[name], text)
    write_whole(manifest, to_json(manifest_of(texts, files), indent=1))
    for path in folder.glob("*.json"):
        if path.name not in kept:
            with suppress(OSError):
                discard(path)
    look_again()
    return manifest


def _files(manifest: Path) -> set[str]:
    """Name the files of the edition that was there before: a process that began with it may still read them."""
    try:
        return {held.file for held in from_json(read_plain(manifest), Manifest, str(manifest)).files.values()}
    except (OSError, BadInput):
        return set()

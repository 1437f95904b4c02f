"""Writes files all or none, each atomically, and never over somebody else's."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from assistant.export.bundle import MARKER
from assistant.i18n import _
from assistant.model.errors import WorkFailed

__all__ = ["write_all"]

_HEAD_BYTES = 400  # the marker stands in the first line, or after an XML declaration


def write_all(folder: Path, texts: Mapping[str, str], *, overwrite: bool = False) -> tuple[Path, ...]:
    """Write each text under its name in `folder` as UTF-8; answer the paths.

    Raises `WorkFailed` when a file of that name was not written by us, unless `overwrite`, and when the folder
    cannot be written; nothing has changed then.
    """
    for name in texts:
        _refuse_foreign(folder / name, texts[name], overwrite=overwrite)
    with _told(folder), _made(folder):
        drafts = {folder / name: folder / name for name in texts}
        try:
            for name, text in texts.items():
                drafts[folder / name] = _draft(folder / name, text)
            for path, draft in drafts.items():
                draft.replace(path)
        finally:
            for path, draft in drafts.items():
                if draft != path:
                    draft.unlink(missing_ok=True)
    return tuple(drafts)


def _refuse_foreign(path: Path, text: str, *, overwrite: bool) -> None:
    if path.is_dir():
        raise WorkFailed(
            _("{path} is a folder, and a file of that name was to be written.").format(path=path),
            hint=_("Choose another folder with --to."),
        )
    if overwrite or not path.exists():
        return
    with _told(path.parent):
        found = path.read_bytes()
    if MARKER.encode() not in found[:_HEAD_BYTES] and found != text.encode():
        raise WorkFailed(
            _("{path} exists and was not written by the assistant.").format(path=path),
            hint=_("Choose another folder with --to, or move that file away."),
        )


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorkFailed(
            _("The files cannot be written to {folder}: {reason}.").format(
                folder=folder, reason=error.strerror or error
            ),
            hint=_("Choose a folder of your own with --to."),
        ) from error


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make the folder; take it back when it stays empty."""
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for part in missing:
            with suppress(OSError):
                part.rmdir()
        raise


def _draft(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    with draft.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return draft

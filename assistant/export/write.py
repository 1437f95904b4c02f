"""Writes files all or none, each atomically, and never over somebody else's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

from assistant.export.bundle import MARKER
from assistant.host.files import draft, put_in_place, write_whole
from assistant.i18n import _
from assistant.model.errors import WorkFailed

_HEAD_BYTES = 400  # the marker stands in the first line, or after an XML declaration


def write_all(
    folder: Path, files: Mapping[str, str], overwrite: Callable[[tuple[Path, ...]], bool]
) -> tuple[Path, ...]:
    """Write each file under its name in `folder`, texts as UTF-8; answer the paths.

    Files of those names that were not written by us are replaced only where `overwrite`, told their paths, agrees.
    Raises `WorkFailed` where it does not, where a link leads out of the folder, and when the folder cannot be written;
    nothing has changed then.
    """
    contents = {name: text.encode() for name, text in files.items()}
    foreign = tuple(folder / name for name, content in contents.items() if _foreign(folder, folder / name, content))
    if foreign and not overwrite(foreign):
        raise WorkFailed(
            _("{path} exists and was not written by the assistant.", path=foreign[0]),
            hint=_("Choose another folder with --to, move that file away, or replace it with --force."),
        )
    with _told(folder), _made(folder, contents):
        drafts = {folder / name: folder / name for name in contents}
        try:
            for name, content in contents.items():
                drafts[folder / name] = draft(folder / name, partial(_fill, content))
            _step_in(drafts)
        finally:
            for path, part in drafts.items():
                if part != path:
                    part.unlink(missing_ok=True)
    return tuple(drafts)


def _step_in(drafts: Mapping[Path, Path]) -> None:
    """Put every draft in its place; where one cannot go there, those before it are taken back."""
    old = {path: path.read_bytes() if path.is_file() and not path.is_symlink() else None for path in drafts}
    done: list[Path] = []
    try:
        for path, part in drafts.items():
            put_in_place(part, path)
            done.append(path)
    except OSError:
        for path in done:
            content = old[path]
            path.unlink() if content is None else write_whole(path, content)
        raise


def _foreign(folder: Path, path: Path, content: bytes) -> bool:
    """Tell whether a file of somebody else stands there; raise `WorkFailed` for what no file can replace."""
    if path.is_dir():
        raise WorkFailed(
            _("{path} is a folder, and a file of that name was to be written.", path=path),
            hint=_("Choose another folder with --to."),
        )
    with _told(path.parent):
        if not path.parent.resolve().is_relative_to(folder.resolve()):
            raise WorkFailed(
                _(
                    "{path} is a link that leads out of the folder, and nothing is written through it.",
                    path=path.parent,
                ),
                hint=_("Choose another folder with --to, or remove the link."),
            )
        if path.is_symlink():
            return True
        found = path.read_bytes() if path.exists() else content
    return MARKER.encode() not in found[:_HEAD_BYTES] and found != content


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorkFailed(
            _("The files cannot be written to {folder}: {reason}.", folder=folder, reason=error.strerror or error),
            hint=_("Choose a folder of your own with --to."),
        ) from error


@contextmanager
def _made(folder: Path, names: Iterable[str]) -> Iterator[None]:
    """Make the folder and those in it; take back what stays empty."""
    inside = {folder / Path(name).parent for name in names}
    wanted = sorted({part for one in inside for part in (one, *one.parents)}, key=lambda part: -len(part.parts))
    missing = [part for part in wanted if not part.exists()]
    try:
        for one in inside:
            one.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for part in missing:
            with suppress(OSError):
                part.rmdir()
        raise


def _fill(content: bytes, file: IO[bytes]) -> None:
    file.write(content)

"""The files that were exported, with their content, for a front end that cannot reach the disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from assistant.model.record import Record


class Download(Record, frozen=True):
    """A file to take away; `fault` says why it could not be read."""

    name: str
    path: str
    content: bytes = b""
    fault: str = ""


def downloads(paths: Iterable[str]) -> Iterator[Download]:
    """Read each file that was exported; one that is gone is named with the reason."""
    for path in map(Path, paths):
        try:
            yield Download(name=path.name, path=str(path), content=path.read_bytes())
        except OSError as error:
            yield Download(name=path.name, path=str(path), fault=error.strerror or str(error))

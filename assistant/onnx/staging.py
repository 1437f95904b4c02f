"""Keeps what is written aside, and puts it in place when all is well; nothing of onnx is imported here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.host.files import discard, put_in_place, settle
from assistant.model.errors import unwritable


@contextmanager
def kept_aside(output: Path) -> Iterator[Path]:
    """Provide a folder, and move what lies in it beside the output at the end; after an exception nothing is.

    The folder is on the disk of the output; where none can be made there, another will do. Raises `WorkFailed` for
    what cannot be put in place.
    """
    with _beside(output) as folder:
        yield folder
        try:
            _put_in_place(folder, output)
        except OSError as error:
            raise unwritable(output, error) from error


@contextmanager
def _beside(output: Path) -> Iterator[Path]:
    """Provide a temporary folder on the disk of the result; where none can be made there, another will do."""
    try:
        folder = TemporaryDirectory(
            prefix=f".{output.name}.", suffix=".part", dir=output.parent, ignore_cleanup_errors=True
        )
    except OSError:
        folder = TemporaryDirectory(prefix="onnx-", ignore_cleanup_errors=True)
    with folder as name:
        yield Path(name)


def _put_in_place(folder: Path, output: Path) -> None:
    """Move what was written to its name: weights before their model, of which an older one goes first."""
    data = f"{output.name}.data"
    parts = sorted(folder.iterdir(), key=lambda part: (part.name != data, part.name != output.name, part.name))
    for part in parts:
        settle(part)
    if any(part.name == data for part in parts):
        discard(output)
    for part in parts:
        put_in_place(part, output.with_name(part.name))

"""A folder for a while, in the user's private state folder."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assistant.host.files import private_folder
from assistant.host.folders import user_state
from assistant.install.journal import notes_folder

__all__ = ["scratch"]


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder for a while; where the process is killed, the next start takes it away."""
    try:
        private_folder(user_state())
        folder = private_folder(notes_folder()) / f"{uuid.uuid4().hex[:8]}.{os.getpid()}.part"
        folder.mkdir(mode=0o700)
    except OSError:  # no state folder can be written
        folder = Path(tempfile.mkdtemp())
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)

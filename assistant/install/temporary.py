"""Temporary folders in the user's private state folder, with a lock that the programs running in them hold.

`tempfile` would leave both behind where we are killed: folders of many MB, and installers that go on writing into them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from assistant.host.files import discard_folder, private_folder
from assistant.host.folders import user_state
from assistant.host.lock import Lock
from assistant.host.process import alive
from assistant.install.journal import notes_folder
from assistant.model.errors import WorkFailed

LOCK = "lock"
TRIES = 20  # with the pause two seconds: what a killed program still writes may come between two tries
PAUSE_SECONDS = 0.1


@contextmanager
def scratch() -> Iterator[tuple[Path, Lock]]:
    """Yield a temporary folder and its lock; the next start removes the folder if this process is killed."""
    try:
        private_folder(user_state())
        folder = private_folder(notes_folder()) / f"{uuid.uuid4().hex[:8]}.{os.getpid()}.part"
        folder.mkdir(mode=0o700)
    except OSError:  # no state folder can be written
        folder = Path(tempfile.mkdtemp())
    lock = Lock(folder / LOCK)
    try:
        lock.take()
        yield folder, lock
    finally:
        lock.release()
        with suppress(OSError):
            discard_folder(folder)


def sweep_scratch() -> None:
    """Remove the temporary folders of killed processes, once what they left running there is ended.

    Their locks tell, as numbers of processes are used again; only of a folder that has no lock yet, the number does.
    """
    for folder in notes_folder().glob("*.part"):
        writer = folder.suffixes[-2].removeprefix(".") if len(folder.suffixes) > 1 else ""
        if not writer.isdecimal() or folder.is_symlink() or not folder.is_dir():
            continue
        if (folder / LOCK).exists() or not alive(int(writer)):
            _remove(folder)


def _remove(folder: Path) -> None:
    lock = Lock(folder / LOCK)
    try:
        if lock.take():
            return
    except WorkFailed:
        pass  # something else stands where the lock should be
    for _try in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists() or [path.name for path in folder.iterdir()] == [LOCK]:  # Windows keeps what is open
            break
        time.sleep(PAUSE_SECONDS)
    lock.release()
    with suppress(OSError):
        discard_folder(folder)

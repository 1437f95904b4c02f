"""Files, folders, locks, child processes and the extras of this distribution."""

from __future__ import annotations

from pathlib import Path

from assistant import __version__
from assistant.host.extras import NAME, missing_extra_error, require
from assistant.host.files import (
    append_private,
    discard,
    discard_folder,
    draft,
    open_plain,
    put_in_place,
    read_plain,
    sync_to_disk,
    user_cache,
    write_temporary,
    write_whole,
)
from assistant.host.lock import Lock
from assistant.host.process import CancelToken, Isolation, for_child, quiet, replace_process, stream
from assistant.model.errors import unreadable, unwritable

RUNTIME = Path(__file__).parents[1] / "runtime"  # files that users copy into their own code

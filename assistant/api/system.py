"""Files, folders, locks, child processes and the extras of this distribution."""

from __future__ import annotations

from pathlib import Path

from assistant import __version__
from assistant.host.extras import NAME, missing_extra_error, require_extra
from assistant.host.files import (
    append_private,
    discard,
    discard_folder,
    fsync_path,
    open_regular,
    put_in_place,
    read_regular,
    user_cache,
    write_atomically,
    write_draft,
    write_temporary,
)
from assistant.host.lock import Lock
from assistant.host.process import CancelToken, Isolation, child_environment, replace_process, running, telemetry_off
from assistant.model.errors import unreadable_error, unwritable_error

RUNTIME = Path(__file__).parents[1] / "runtime"  # files that users copy into their own code

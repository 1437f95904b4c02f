"""Writes the tables that this user refreshed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from assistant.catalog.tables import refreshed_file, user_tables
from assistant.host.files import write_whole
from assistant.i18n import _
from assistant.model.errors import WorkFailed
from assistant.model.record import to_json


def write_tables(tables: Mapping[str, msgspec.Struct]) -> Path:
    """Write refreshed tables by the names of their data files, such as "torch", and return the path of the file.

    What was refreshed before stays beside them. Raises `WorkFailed` where the file cannot be written.
    """
    user_tables.cache_clear()  # another process may have refreshed since this one began
    path = refreshed_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, to_json({**user_tables().tables, **tables}, indent=1))
    except OSError as error:
        raise WorkFailed(
            _("{path} cannot be written: {reason}.", path=error.filename or path, reason=error.strerror),
            hint=_("The tables stay as they are; make that folder writable and try again."),
        ) from error
    finally:
        user_tables.cache_clear()
    return path

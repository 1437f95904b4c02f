"""The torch tables that this user refreshed: one file in their data folder, used while it is no older than ours."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from assistant.catalog.rows import TorchTables
from assistant.catalog.tables import read_tables
from assistant.host.files import read_plain, write_whole
from assistant.host.folders import user_data
from assistant.i18n import Message, Text, _
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import from_json, to_json


class InForce(NamedTuple):
    """The torch tables to plan with, and one sentence where the user's own had to be passed over ("" else)."""

    tables: TorchTables
    remark: Text = ""


def user_path() -> Path:
    """Name the file of the refreshed tables."""
    return user_data() / "catalog" / "torch.json"


def torch_tables() -> InForce:
    """Read the user's tables where they are whole and no older than the shipped ones, else the shipped ones."""
    shipped, path = read_tables("torch", TorchTables), user_path()
    try:
        own = from_json(read_plain(path), TorchTables, str(path))
    except FileNotFoundError:
        return InForce(shipped)
    except (OSError, BadInput) as error:
        return InForce(shipped, _passed_over(path, error.message if isinstance(error, BadInput) else str(error)))
    if missing := {row.version for row in shipped.releases.rows} - {row.version for row in own.releases.rows}:
        return InForce(shipped, _passed_over(path, _("torch {version} is missing.", version=min(missing))))
    return InForce(own if own.releases.as_of >= shipped.releases.as_of else shipped)


def write_torch_tables(tables: TorchTables) -> Path:
    """Write refreshed tables for this user, whole or not at all; raise `WorkFailed` where that cannot be done."""
    path = user_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, to_json(tables, indent=1))
    except OSError as error:
        raise WorkFailed(
            _("{path} cannot be written: {reason}.", path=path, reason=error.strerror),
            hint=_("The tables stay as they are; make that folder writable and try again."),
        ) from error
    return path


def _passed_over(path: Path, reason: Text) -> Message:
    return _(
        "The refreshed tables in {path} are passed over for the shipped ones, `assistant catalog refresh` makes new "
        "ones: {reason}",
        path=path,
        reason=reason,
    )

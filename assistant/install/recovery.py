"""Finishes or rolls back what killed installations left."""

from __future__ import annotations

import os
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from assistant.host.files import make_private_folder, user_state
from assistant.i18n import Text
from assistant.install.environments import settle_journal
from assistant.install.in_place import restore_packages
from assistant.install.journal import Entry, delete_stale_folders, entry_for, list_entries, locked, temporary_folder
from assistant.install.sources import Tools
from assistant.model.errors import AssistantError
from assistant.model.record import Record


class Outcome(StrEnum):
    """What became of an interrupted installation."""

    TAKEN_BACK = "taken-back"
    REMOVED = "removed"  # the environment was being removed
    FAILED = "failed"  # `error` says why; nothing was removed


class Recovered(Record, frozen=True):
    """The outcome for one target; `beside` is where its environment is now if something else is at its place."""

    target: str
    outcome: Outcome
    beside: str = ""
    error: Text = ""
    hint: Text = ""

    @property
    def is_removed(self) -> bool:
        """Whether the environment is gone, as its interrupted removal intended."""
        return self.outcome is Outcome.REMOVED


def recover(tools: Tools, only: Path | None = None) -> tuple[Recovered, ...]:
    """Finish or roll back what killed installations left, at one target (`only`) or at all; return an outcome for each.

    A failure is an outcome and not raised. Temporary folders of killed processes are deleted, too.
    """
    with suppress(OSError):
        make_private_folder(user_state())
    delete_stale_folders()
    outcomes = []
    for entry in [entry_for(only)] if only else list_entries():
        target = str(only or entry.journal)
        try:
            journal = entry.read()
            target = journal.target if journal else target
            outcomes.append(_settle_entry(entry, tools))
        except AssistantError as error:
            outcomes.append(Recovered(target=target, outcome=Outcome.FAILED, error=error.message, hint=error.hint))
        except OSError as error:
            reason = f"{target}: {error.strerror or error}."
            outcomes.append(Recovered(target=target, outcome=Outcome.FAILED, error=reason))
    return tuple(filter(None, outcomes))


def settle_target(target: Path, tools: Tools) -> None:
    """Finish or roll back what a killed installation or change left in a target; do nothing if none did.

    `target` is a folder, or the Python of an environment. Raises `WorkFailed` or `BadInput` if another process is
    installing there right now, or it cannot be done.
    """
    parents = target.parents[:2] if target.name.startswith("python") else ()
    for place in (target, *parents):
        if os.path.lexists(entry_for(place).journal):
            _settle_entry(entry_for(place), tools)


def _settle_entry(entry: Entry, tools: Tools) -> Recovered | None:
    """Take an entry's lock and finish or roll back what its journal records; return the outcome, None for none.

    Raises `WorkFailed` or `BadInput` if it cannot be done, or another process holds the lock.
    """
    journal = entry.read()
    with locked(Path(journal.target) if journal else entry.journal, entry) as (_entry, lock):
        journal = entry.read()  # whoever held the lock may have settled it
        if journal is None:
            return None
        beside = ""
        if journal.before:
            with temporary_folder() as (folder, _lock):
                uv = tools.uv_of(journal.before.python).in_folder(folder, lock)
                if not restore_packages(entry, journal, tools.host, uv):
                    return None
        else:
            beside = str(settle_journal(entry, journal) or "")
        is_removed = journal.kind == "remove" and not os.path.lexists(journal.target)
        outcome = Outcome.REMOVED if is_removed else Outcome.TAKEN_BACK
        return Recovered(target=journal.target, outcome=outcome, beside=beside)

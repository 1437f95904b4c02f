"""Takes back what killed installations left."""

from __future__ import annotations

import os
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from assistant.host.files import private_folder, user_state
from assistant.i18n import Text
from assistant.install.environments import settle_journal
from assistant.install.in_place import restore_packages
from assistant.install.journal import Entry, entry_of, list_entries, locked, scratch, sweep_scratch
from assistant.install.sources import Tools
from assistant.model.errors import AssistantError
from assistant.model.record import Record


class Outcome(StrEnum):
    """What became of an interrupted installation."""

    TAKEN_BACK = "taken-back"
    REMOVED = "removed"  # the environment was being removed
    FAILED = "failed"  # `error` says why; nothing was removed


class Recovered(Record, frozen=True):
    """The outcome for one target; `beside` is where its environment is now if something else has taken its place."""

    target: str
    outcome: Outcome
    beside: str = ""
    error: Text = ""
    hint: Text = ""

    @property
    def is_removed(self) -> bool:
        """Whether the environment is gone, as was begun."""
        return self.outcome is Outcome.REMOVED


def recover(tools: Tools, only: Path | None = None) -> tuple[Recovered, ...]:
    """Settle what killed installations left, in one target or in all; return the outcomes. Harmless when repeated."""
    with suppress(OSError):
        private_folder(user_state())
    sweep_scratch()
    outcomes = []
    for entry in [entry_of(only)] if only else list_entries():
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
    """Settle what a killed installation left in a target, before it is looked at.

    `target` is a folder, or the Python of an environment. Raises `WorkFailed` or `BadInput` if somebody is
    installing there right now, or it cannot be settled.
    """
    parents = target.parents[:2] if target.name.startswith("python") else ()
    for place in (target, *parents):
        if os.path.lexists(entry_of(place).journal):
            _settle_entry(entry_of(place), tools)


def _settle_entry(entry: Entry, tools: Tools) -> Recovered | None:
    """Settle the target of an entry under its lock, and return the outcome; None if nothing was to be done.

    Raises `WorkFailed` or `BadInput` if it cannot be settled.
    """
    journal = entry.read()
    with locked(Path(journal.target) if journal else entry.journal, entry) as (_entry, lock):
        journal = entry.read()  # whoever held the lock may have settled it
        if journal is None:
            return None
        beside = ""
        if journal.before:
            with scratch() as (folder, _lock):
                uv = tools.uv_of(journal.before.python).in_folder(folder, lock)
                if not restore_packages(entry, journal, tools.host, uv):
                    return None
        else:
            beside = str(settle_journal(entry, journal) or "")
        is_removed = journal.kind == "remove" and not os.path.lexists(journal.target)
        outcome = Outcome.REMOVED if is_removed else Outcome.TAKEN_BACK
        return Recovered(target=journal.target, outcome=outcome, beside=beside)

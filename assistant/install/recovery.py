"""Rolls back what killed installations left, each target by itself, and reports the outcome of each."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from enum import StrEnum
from functools import partial
from pathlib import Path

from assistant.host.files import discard, patiently, private_folder
from assistant.host.folders import user_state
from assistant.host.lock import Lock
from assistant.i18n import Text
from assistant.install.journal import Entry, entries, entry_of
from assistant.install.temporary import sweep_scratch
from assistant.install.transaction import busy, settle_journal
from assistant.install.work_folder import not_removed, refuse_unknown, work_folders
from assistant.model.errors import AssistantError
from assistant.model.record import Record


class Outcome(StrEnum):
    """Outcome for one target."""

    TAKEN_BACK = "taken-back"
    STANDS = "stands"  # it had been committed; only the work folder was left to delete
    REMOVED = "removed"  # the environment was being removed
    FAILED = "failed"  # `error` says why; nothing was removed


class Recovered(Record, frozen=True):
    """One target; `kept` are the folders into which files were moved that the assistant did not make."""

    target: str
    outcome: Outcome
    kept: tuple[str, ...] = ()
    error: Text = ""
    hint: Text = ""


def recover(only: Path | None = None) -> tuple[Recovered, ...]:
    """Roll back what killed installations left, in one target or in all; harmless when repeated."""
    with suppress(OSError):
        private_folder(user_state())
    sweep_scratch()
    found = [entry_of(only)] if only else list(entries())
    return tuple(outcome for entry in found if (outcome := _recovered(entry, only)))


def make_whole(target: Path) -> None:
    """Roll back what a killed installation left in a target, before anything is judged by what stands there.

    `target` is a folder, or the Python of an environment. Raises `WorkFailed` or `BadInput` where somebody is
    installing there right now, or it cannot be rolled back.
    """
    above = target.parents[:2] if target.name.startswith("python") else ()
    for place in (target, *above):
        if os.path.lexists(entry_of(place).journal):
            try:
                _settled(entry_of(place), place)
            except OSError as error:
                raise not_removed(place, error) from error


def _recovered(entry: Entry, only: Path | None) -> Recovered | None:
    """Roll back or finish one target, and say how that ended; None where there was nothing to do."""
    target = str(only or (*entry.places(), entry.journal)[0])
    try:
        return _settled(entry, only)
    except AssistantError as error:
        return Recovered(target=target, outcome=Outcome.FAILED, error=error.message, hint=error.hint)
    except OSError as error:
        return Recovered(target=target, outcome=Outcome.FAILED, error=f"{target}: {error.strerror or error}.")


def _settled(entry: Entry, only: Path | None) -> Recovered | None:
    """Roll back or finish one target under its lock; None where there was nothing to do. Raises where it cannot."""
    lock = Lock(entry.lock)
    try:
        holder = lock.take() if entry.known else None
        if holder:
            raise busy(only or Path(str((*entry.places(), entry.journal)[0])), holder)
        journal = entry.read()
        if journal is None:
            entry.forget()
            if only:
                refuse_unknown(only)
            return None
        stands, kept = settle_journal(entry, journal)
        outcome = Outcome.STANDS if stands else Outcome.TAKEN_BACK
        outcome = Outcome.REMOVED if journal.kind == "removed" else outcome
        return Recovered(target=journal.target, outcome=outcome, kept=tuple(map(str, kept)))
    finally:
        lock.release()


def give_up(only: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Forget what cannot be rolled back; return, by target, the work folders that stay with whatever they hold."""
    left: dict[str, tuple[str, ...]] = {}
    for one in recover(only):
        if one.outcome is not Outcome.FAILED:
            continue
        for entry in [entry_of(only)] if only else list(entries()):
            places = entry.places()
            if one.target in {str(only), *places, str(entry.journal)}:
                _forget(entry)
                stays = [*places[1:], *(map(str, work_folders(Path(one.target))) if places or only else ())]
                left[one.target] = tuple(path for path in dict.fromkeys(stays) if os.path.lexists(path))
    return left


def _forget(entry: Entry) -> None:
    """Delete the files about a target; a folder that stands in place of one is moved aside: it may be anybody's."""
    for path in (entry.journal, entry.manifest, entry.where, entry.lock):
        with suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                patiently(partial(path.rename, path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.set-aside")))
            else:
                discard(path)

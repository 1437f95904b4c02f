"""Runs the tasks of a session without a thread, so that a test sees each state as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable

from assistant.session.session import Session
from assistant.session.state import State


class InlineRunner:
    """Does the work in the caller's thread as it comes."""

    def start(self, work: Callable[[], object]) -> None:
        """Do the work."""
        work()


def watch(session: Session, watcher: Callable[[State, State], None]) -> None:
    """Call `watcher(old, new)` at each change of a session's state, before anything else goes on."""
    seen, tell = [session.state], session._changed.notify_all

    def changed() -> None:
        tell()
        old, seen[0] = seen[0], session.state
        watcher(old, session.state)

    session._changed.notify_all = changed

"""Runs a session's tasks, and shows its wizard, without a thread: a test sees each state as soon as it is there."""

from __future__ import annotations

import time
from collections.abc import Callable

from assistant.host.base import Answer, Host
from assistant.session.actions import Answer as Reply
from assistant.session.session import Session
from assistant.session.state import State
from assistant.wizard.app import SetupWizard


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


def wait_for(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until a condition is met, some seconds at most."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def asked(session: Session, *, yes: bool) -> list[str]:
    """Answer every question of a session, and keep them."""
    heard: list[str] = []

    def answer(old: State, new: State) -> None:
        if new.question and not old.question:
            heard.append(new.question)
            session.dispatch(Reply(yes=yes))

    watch(session, answer)
    return heard


def wizard_on(session: Session) -> SetupWizard:
    """Show a session in a wizard that draws at each change."""
    wizard = SetupWizard(session)
    watch(session, lambda _old, _new: wizard.catch_up())
    return wizard


class NoHost(Host):
    """A machine that answers nothing: whatever is seen comes from a recording."""

    def ask(self, kind: str, *arguments: str) -> Answer:  # noqa: ARG002
        """Answer that it was never asked."""
        return Answer(status="unrecorded")

"""An environment that all users of a machine have: one of them looks after it, for the others it can only be read."""

from __future__ import annotations

from pathlib import Path

from assistant.host.files import may_write
from assistant.host.folders import is_own_environment
from assistant.install import marked_environments
from assistant.model.plan import Planning
from assistant.session.state import Page, State
from assistant.session.store import Store


def is_others(path: str) -> bool:
    """Return whether an environment stands that this user may not change."""
    return Path(path).is_dir() and not may_write(Path(path))


def may_change(path: str) -> bool:
    """Return whether an environment is one to change: not others', nor the assistant's own, which is made anew."""
    return not (is_own_environment(path) or is_others(path))


def beginning() -> State:
    """Return where a guided setup begins: for who has no setup but the one that all users have, at what is wrong.

    Nothing is planned then, until the user asks for an environment of their own. Who may change that environment, and
    whoever has set one up, begins as anybody does.
    """
    if Store().environment():
        return State()
    for folder, marker in marked_environments():
        if marker.environment.kernels and is_others(str(folder)):
            planning = Planning(choice=marker.plan, plans=(marker.plan,))
            return State(page=Page.WRONG, environment=marker.environment, planning=planning)
    return State()

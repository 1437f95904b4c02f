"""What can happen to a guided setup: what the user does, and what its tasks report."""

from __future__ import annotations

from typing import Any

from assistant.i18n import Message
from assistant.model.event import Event, JobFailed
from assistant.model.plan import Request
from assistant.model.record import Record
from assistant.model.report import Level
from assistant.session.state import Page, Pasted, Result, State, Task


class Begin(Record, frozen=True):
    """Start a task."""

    task: Task


class Told(Record, frozen=True):
    """A running task has reported something: its events since the last time."""

    events: tuple[Event, ...]


class Asked(Record, frozen=True):
    """A running task needs an answer of the user before it can go on."""

    question: Message


class Answer(Record, frozen=True):
    """Answer the question of the running task."""

    yes: bool


class Finished(Record, frozen=True):
    """A task ended well with its result."""

    task: Task
    result: Result
    seconds: float = 0.0


class Abandoned(Record, frozen=True):
    """A task that only reads was given up, because an answer that it rests on has changed."""


class Show(Record, frozen=True):
    """Look at a page; nothing is lost by going back."""

    page: Page


class Choose(Record, frozen=True):
    """Take another of the plans, by its place."""

    index: int


class Wish(Record, frozen=True):
    """Set which backend, Python and pins to plan for."""

    request: Request


class Aim(Record, frozen=True):
    """Set where the environment goes ("" for the default folder)."""

    target: str


class SetFact(Record, frozen=True):
    """Set a fact of the machine by hand, such as `nvidia_driver`; "" takes the setting back."""

    fact: str
    value: str


class Fill(Record, frozen=True):
    """Set how thoroughly to verify, and to which folder ("" for the default), which formats or what for to export.

    What is None stays as it is.
    """

    level: Level | None = None
    folder: str | None = None
    formats: tuple[str, ...] | None = None
    purpose: str | None = None


class Paste(Record, frozen=True):
    """Set the log to diagnose."""

    log: Pasted | str


class Edited(Record, frozen=True):
    """The page holds another log now than the one that was set last; it is sent when it is to be diagnosed."""


class Mend(Record, frozen=True):
    """Choose a remedy, by its cause's key and its number as in "oom#1", for `Task.MEND` to apply."""

    way: str


class Add(Record, frozen=True):
    """Name packages, as requirements, for `Task.ADD` to add to the environment."""

    requirements: tuple[str, ...]


class Supply(Record, frozen=True):
    """Give an add-on, by its name, the record that its task works on when `Task.ADDON` is begun."""

    addon: str
    value: Any


class Pick(Record, frozen=True):
    """Choose the environment, by its path, that the tasks about environments are about."""

    path: str


class LookIn(Record, frozen=True):
    """Name a folder in which environments are looked for as well."""

    folder: str


class Simulate(Record, frozen=True):
    """Look at a recorded machine instead of this one; "" goes back to this one, as it was left."""

    machine: str


class Resume(Record, frozen=True):
    """Go on from a state that was saved before the kernel restarted."""

    state: State


class Stop(Record, frozen=True):
    """Ask the running task to stop."""


Wished = Add | Choose | Wish | Aim | Fill | LookIn | Mend | Pick | Resume | SetFact | Simulate | Supply
Action = Abandoned | Begin | Told | Asked | Answer | Edited | Finished | JobFailed | Paste | Show | Stop | Wished

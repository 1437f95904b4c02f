"""Keeps a setup's state on disk: one JSON file, written whole or not at all, and a log for each process."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal

from assistant import __version__
from assistant.host.files import append_private, discard, private_folder, read_plain, sweep, write_whole
from assistant.host.folders import user_state
from assistant.host.identity import known_here
from assistant.host.process import alive
from assistant.i18n import Text
from assistant.model.errors import AssistantError
from assistant.model.record import Record, from_json, replace, to_json
from assistant.model.report import Environment
from assistant.privacy import Lines, redact
from assistant.session.state import Phase, State, StepStatus, Task

_PIDS = 1 << 31  # no system has a greater one; a damaged file may hold anything
LOGS = 10  # logs of earlier setups that are kept


class Saved(Record, frozen=True):
    """A state as it was written: by which version, by which process, and what that was doing.

    `state` is None for a file that this version cannot read; `at` is the local time of writing.
    """

    schema: Literal[2] = 2
    version: str = ""
    process: int = 0
    running: Task | None = None
    state: State | None = None
    at: str = ""

    @property
    def in_use(self) -> bool:
        """Whether another process, still alive, is in the middle of a task."""
        known = 0 < self.process < _PIDS
        return self.running is not None and known and self.process != os.getpid() and alive(self.process)


class Store:
    """Saves and loads the state; a file from another version or cut off counts as none."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or user_state()
        self.path = self.folder / "session.json"

    @cached_property
    def log(self) -> Path:
        """The file for every line of output of this process's setups."""
        now = datetime.now(UTC).astimezone()
        return self.folder / "logs" / f"setup-{now:%Y%m%d-%H%M%S}-{os.getpid()}.log"

    def save(self, state: State) -> Text:
        """Write the state beside the old one, then put it in its place; return why it cannot be saved, "" where it is.

        A recorded machine that is looked at, or a cell that failed, is never written over the real setup.
        """
        if state.machine or state.failed_cell:
            return ""
        kept = replace(state, log=(), running=None, stopping=False, question="", onnx=None, adding=None, edited=False)
        kept = replace(kept, survey=None, picked="", repair=None, errand=StepStatus())  # they are looked for anew
        saved = Saved(version=__version__, process=os.getpid(), running=state.running, state=kept)
        try:
            sweep(private_folder(self.folder))
            write_whole(self.path, to_json(saved), private=True)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def read(self) -> Saved | None:
        """Read what was saved, and when; None when nothing ever was. A pipe or a link is not read."""
        try:
            at = datetime.fromtimestamp(self.path.lstat().st_mtime).astimezone().strftime("%Y-%m-%d %H:%M")
        except OSError:
            return None
        try:
            saved = from_json(read_plain(self.path), Saved, self.path.name)
        except (OSError, AssistantError):
            return Saved(at=at)
        return replace(saved, at=at, state=_at_rest(saved.state) if saved.state else None)

    def load(self) -> State | None:
        """Read the last state; None where there is none, or one that this version cannot read."""
        saved = self.read()
        return saved.state if saved else None

    def environment(self) -> Environment | None:
        """Return the environment of the last setup; None where there is none."""
        state = self.load()
        return state.environment if state else None

    def drop(self) -> None:
        """Delete what was saved."""
        with suppress(OSError):
            discard(self.path)

    def keep_fault(self, text: str) -> Path:
        """Write an unexpected error to a file of its own, without private things; return its path."""
        path = self.folder / "fault.log"
        with suppress(OSError):
            private_folder(self.folder)
            write_whole(path, redact(text, known=known_here()), private=True)
        return path

    @cached_property
    def _cleaned(self) -> Lines:
        return Lines(known=known_here())

    def write_log(self, line: str) -> None:
        """Append a line to the log, without private things; a folder that cannot be written is no failure."""
        with suppress(OSError):
            if not self.log.exists():
                private_folder(self.folder)
                private_folder(self.log.parent)
                logs = sorted(self.log.parent.glob("setup-*.log"))
                for old in logs[: 1 - LOGS]:
                    discard(old)
                for kept in logs[1 - LOGS :]:
                    append_private(kept, "")  # earlier versions let others read them
            append_private(self.log, self._cleaned(line) + "\n")


def _at_rest(state: State) -> State:
    """Return the state with steps that were running when it was saved ready to run again."""
    statuses = {
        step: StepStatus(phase=Phase.READY) if status.phase is Phase.RUNNING else status
        for step, status in state.statuses.items()
    }
    return replace(state, statuses=statuses)

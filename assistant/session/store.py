"""A setup's state on disk: one JSON file, written whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import platformdirs

from assistant.model.errors import AssistantError
from assistant.model.record import from_json, replace, to_json
from assistant.session.state import Phase, State, StepStatus

__all__ = ["Store", "default_folder"]


def default_folder() -> Path:
    """Name the folder for the state and the logs of this user's setups."""
    return platformdirs.user_state_path("pytorch-setup-assistant", appauthor=False)


class Store:
    """Saves and loads the state; a file from another version or cut off counts as none."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()
        self.path = self.folder / "session.json"
        self.log = self.folder / "last.log"

    def save(self, state: State) -> None:
        """Write the state beside the old one, then put it in its place; an unwritable folder is no failure."""
        text = to_json(replace(state, log=(), running=None))
        part = self.path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            part.write_text(text, encoding="utf-8")
            part.replace(self.path)

    def load(self) -> State | None:
        """Read the last state; what was running when it was written counts as ready to run again."""
        try:
            state = from_json(self.path.read_bytes(), State, self.path.name)
        except (OSError, AssistantError):
            return None
        statuses = {
            step: StepStatus(phase=Phase.READY) if status.phase is Phase.RUNNING else status
            for step, status in state.statuses.items()
        }
        return replace(state, statuses=statuses, running=None)

    def saved_at(self) -> str:
        """Tell when the state was saved, in local time; "" when it never was."""
        try:
            return datetime.fromtimestamp(self.path.stat().st_mtime).astimezone().strftime("%Y-%m-%d %H:%M")
        except OSError:
            return ""

    def keep_fault(self, text: str) -> Path:
        """Write what broke to a file of its own; answer its path."""
        path = self.folder / "fault.log"
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return path

    def write_log(self, line: str) -> None:
        """Append a line to the log of the last setup; a folder that cannot be written is no failure."""
        with suppress(OSError), self.log.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

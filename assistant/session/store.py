"""What is kept on disk of a setup: its state, whole or not at all, its logs, pasted ones too; where it goes on from."""

from __future__ import annotations

import os
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Literal

from assistant import __version__
from assistant.host.files import (
    append_private,
    delete_stale_drafts,
    discard,
    make_private_folder,
    read_regular,
    user_state,
    write_atomically,
)
from assistant.host.live import private_names_here
from assistant.host.process import is_running
from assistant.i18n import Message, Text, _, render
from assistant.install import EnvironmentFolder
from assistant.model.errors import AssistantError, BadInput, WorkFailed
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Machine
from assistant.model.plan import Planning
from assistant.model.record import Record, from_json, replace, to_json
from assistant.model.report import Environment, Event, LogLine, Step
from assistant.model.visible import remove_colours
from assistant.parsers import normalize_text, text_pieces
from assistant.privacy import Lines, redact
from assistant.session.state import (
    WHOLE,
    Environments,
    Installed,
    Page,
    Pasted,
    Phase,
    Planned,
    State,
    StepStatus,
    Task,
)

_PIDS = 1 << 31  # no system has a greater one; a damaged file may hold anything
LOGS = 10  # logs of earlier setups that are kept
SHOWN = WHOLE // 5  # characters kept of both ends of a longer one, as `wizard/static/logbox.js` shows them
PASTED_LOGS = 3  # files of long logs that are kept: other windows may still show one
LIMIT = 2**30  # bytes; chosen: twice what the page sends


class Saved(Record, frozen=True):
    """A state as it was written: by which version, by which process, and what that was doing.

    `state` is None for a file that this version cannot read; `at` is the local time of writing.
    """

    schema: Literal[4] = 4
    version: str = ""
    process: int = 0
    running: Task | None = None
    state: State | None = None
    at: str = ""

    @property
    def in_use(self) -> bool:
        """Whether another process, still alive, is in the middle of a task."""
        possible = 0 < self.process < _PIDS
        return self.running is not None and possible and self.process != os.getpid() and is_running(self.process)


class Store:
    """Saves and reads the state in `folder`, by default the user's state folder, and writes the log there.

    A file from another version, or one that was cut off, is not used.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or user_state()
        self.path = self.folder / "session.json"
        self._clean: Lines | None = None  # made with the first line: asking who is here takes a while

    @cached_property
    def log(self) -> Path:
        """The file for every line of output of this process's setups."""
        now = datetime.now(UTC).astimezone()
        return self.folder / "logs" / f"setup-{now:%Y%m%d-%H%M%S}-{os.getpid()}.log"

    def save(self, state: State) -> Finding | None:
        """Save the state in place of the one saved before; return a finding if that fails, else None.

        A recorded machine that is looked at, or a cell that failed, is never written over the real setup.
        """
        if state.machine or state.failed_cell:
            return None
        saved = replace(state, log=(), running=None, stopping=False, question="", extras={}, adding=None, edited=False)
        saved = replace(saved, environments=Environments(), drawn=None)  # they are looked for, and drawn, anew
        written = Saved(version=__version__, process=os.getpid(), running=state.running, state=saved)
        try:
            delete_stale_drafts(make_private_folder(self.folder))
            write_atomically(self.path, to_json(written), private=True)
        except OSError as error:
            text = _("This setup cannot be saved in {folder}: {reason}. It will be gone when you start again.")
            text = text.format(folder=self.folder, reason=error.strerror or error)
            return Finding(key="setup-not-saved", severity=Severity.INFO, text=text)
        return None

    def read(self) -> Saved | None:
        """Return what was saved, and when; None if nothing was. Steps that were running are ready.

        `state` is None if this version cannot read the file.
        """
        try:
            at = datetime.fromtimestamp(self.path.lstat().st_mtime).astimezone().strftime("%Y-%m-%d %H:%M")
        except OSError:
            return None
        try:
            saved = from_json(read_regular(self.path), Saved, self.path.name)
        except (OSError, AssistantError):
            return Saved(at=at)
        state = saved.state
        if state:  # what was running when it was saved can be run again
            running = {step for step, status in state.statuses.items() if status.phase is Phase.RUNNING}
            state = replace(state, statuses=state.statuses | dict.fromkeys(running, StepStatus(phase=Phase.READY)))
        return replace(saved, at=at, state=state)

    def load(self) -> State | None:
        """Return the state that was saved last; None if there is none that this version can read."""
        saved = self.read()
        return saved.state if saved else None

    def environment(self) -> Environment | None:
        """Return the environment of the setup that was saved last; None if there is none."""
        state = self.load()
        return state.environment if state else None

    def drop(self) -> None:
        """Delete what was saved."""
        with suppress(OSError):
            discard(self.path)

    def keep_fault(self, text: str) -> Path:
        """Write an unexpected error to a file of its own, without private things; return its path in any case."""
        path = self.folder / "fault.log"
        with suppress(OSError):
            make_private_folder(self.folder)
            write_atomically(path, redact(text, known=private_names_here()), private=True)
        return path

    def log_event(self, event: Event) -> Event:
        """Write a `LogLine`'s text to the log and return it without colour codes; return other events unchanged."""
        if not isinstance(event, LogLine):
            return event
        text = remove_colours(render(event.text))
        self.write_log(text)
        return replace(event, text=text) if isinstance(event.text, str) else event

    def write_log(self, line: str) -> None:
        """Append a line to the log, without private things; a folder that cannot be written is no failure.

        With the first line, old logs are deleted: the newest 10 stay.
        """
        with suppress(OSError):
            if not self.log.exists():
                make_private_folder(self.folder)
                make_private_folder(self.log.parent)
                logs = sorted(self.log.parent.glob("setup-*.log"))
                for old in logs[: 1 - LOGS]:
                    discard(old)
                for recent in logs[1 - LOGS :]:
                    append_private(recent, "")  # earlier versions let others read them
            self._clean = self._clean or Lines(known=private_names_here())
            append_private(self.log, self._clean(line) + "\n")


def store_log(data: bytes, name: str = "", folder: Path | None = None) -> Pasted:
    """Return a log as a setup keeps it: a short one whole, a long one as its two ends and the path of a file with all.

    `name` is that of the user's file. The file is written to `folder`, by default "pasted" in the user's state folder,
    which is made private, like its parent, and keeps only its newest three `.log` files. Raises `BadInput` for binary
    data, and `WorkFailed` if the file cannot be written.
    """
    text = "".join(text_pieces(data))
    if len(text) <= WHOLE:
        return Pasted(text=text, name=name)
    content = text.encode("utf-8", "replace")
    folder = folder or user_state() / "pasted"
    path = folder / f"{_digest(content)}.log"
    try:
        make_private_folder(folder.parent)
        make_private_folder(folder)
        write_atomically(path, content, private=True)
    except OSError as error:
        raise WorkFailed(
            _("This log could not be kept in {folder}: {reason}.", folder=folder, reason=error.strerror or error),
            hint=_("Free some space on the disk, or give only the end of the log."),
        ) from error
    with suppress(OSError):
        for old in sorted(folder.glob("*.log"), key=lambda file: file.stat().st_mtime)[:-PASTED_LOGS]:
            discard(old)
    lines = text.count("\n") + (not text.endswith("\n"))
    return Pasted(text=text[:SHOWN], tail=text[-SHOWN:], size=len(data), lines=lines, name=name, path=str(path))


def read_whole_log(pasted: Pasted) -> str | bytes:
    """Return all of a log: its text, or the bytes of its file; raise `BadInput` if that is gone or was changed."""
    if not pasted.path:
        return pasted.text
    path = Path(pasted.path)
    with suppress(OSError):
        content = read_regular(path, LIMIT)
        if path.stem == _digest(content):
            return content
    raise BadInput(
        _("The whole log is gone; only its beginning and its end were kept."),
        hint=_("Give it again: paste it, or choose its file."),
    )


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]


def is_worth_continuing(saved: State | None) -> bool:
    """Return whether a saved state is of a real machine, detected, and has a plan, and so is worth continuing."""
    return saved is not None and not saved.machine and saved.plan is not None and saved.detection is not None


def why_not_continuable(saved: Saved, machine: Machine) -> Text:
    """Return a sentence on why a saved setup cannot be continued here; "" if it can.

    Another version or window, another machine, or a missing environment prevent it. A machine is another if its system,
    Python, NVIDIA driver or GPUs differ; free disk space and the like change by the hour.
    """
    state = saved.state
    if state is None:
        return _("It was saved by another version of the assistant, and this one cannot read it.")
    if saved.in_use:
        return _("Another window is still working on it. Wait until it is done, then run the cell again.")
    then = state.detection.machine if state.detection else Machine()
    cards = [tuple(gpu.name or gpu.pci_id for gpu in machine.gpus) for machine in (then, machine)]
    facts: list[tuple[Message, object, object]] = [
        (_("System"), (then.os, then.os_version, then.arch), (machine.os, machine.os_version, machine.arch)),
        (_("Python"), then.python, machine.python),
        (_("NVIDIA driver"), then.nvidia_driver, machine.nvidia_driver),
        (_("Graphics"), *(cards if cards[0] != cards[1] else (then.gpus, machine.gpus))),
    ]
    changed = tuple(
        Message("{name}: {old} → {new}").format(name=name, old=_join_words(old), new=_join_words(new))
        for name, old, new in facts
        if old != new
    )
    if changed:
        return _("It was made for another machine ({differences}).", differences=changed)
    if state.environment and not Path(state.environment.python).exists():
        return _("Its environment {path} is no longer there.", path=state.environment.path)
    return ""


def continuation_remarks(saved: Saved) -> tuple[Message, ...]:
    """Return what to say before a setup is continued: that a task was interrupted, that another version saved it."""
    found = []
    if saved.running:
        found.append(_("The last run was interrupted; its partial changes will be rolled back first."))
    if saved.version and saved.version != __version__:
        found.append(
            _("It was saved by version {old} of the assistant; this is {new}.", old=saved.version, new=__version__)
        )
    return tuple(found)


def first_step_not_done(state: State) -> Step:
    """Return the step to go on with: the first that is not done, or `EXPORT`; nothing waits for the diagnosis."""
    steps = (step for step in Step if step is not Step.DIAGNOSE)
    return next((step for step in steps if state.status(step).phase is not Phase.DONE), Step.EXPORT)


def record_fault(error: BaseException) -> WorkFailed:
    """Write the traceback of an unexpected exception to a file, and return the error that names it."""
    path = Store().keep_fault("".join(traceback.format_exception(error)))
    message = _("The assistant itself failed: {kind}: {reason}.", kind=type(error).__name__, reason=error)
    return WorkFailed(message, hint=_("Please report it with the file {path}.", path=path))


def load_last_setup() -> State:
    """Return the state of the last setup that has an environment; raise `BadInput` if there is none."""
    state = Store().load()
    if state is None or state.environment is None:
        raise BadInput(_("There is no earlier setup to continue."), hint=_("Run `assistant setup` first."))
    return state


def state_for_environment(target: Path) -> State:
    """Return a state with the environment in a folder; if the assistant made it, with its plan.

    If the last setup made that very environment, it is that setup's state. Raises `BadInput` for a folder that is no
    environment.
    """
    target = target.resolve() if target.is_dir() else target  # the marker knows its folder by no other name
    state, last = _with_environment(State(), target), Store().load()
    return last if last and state.plan and last.environment == state.environment else state


def state_for_cell(printed: str, python: str) -> State:
    """Return a state on the page of what is wrong, with what a failed cell printed and its kernel's environment.

    Of a long output the end is kept. `python` is the path of the kernel's Python; if it is no file here, as behind a
    gateway, there is no environment.
    """
    path, pasted = Path(python), Pasted(text=normalize_text(printed)[-WHOLE:])
    begins = State(page=Page.WRONG, pasted=pasted, failed_cell=True)
    if not (path.is_absolute() and path.is_file()):
        return begins
    folder = EnvironmentFolder(path).folder
    if EnvironmentFolder(folder).exists:
        return _with_environment(begins, folder)
    return replace(begins, installed=Installed(environment=Environment(path=str(folder), python=python)))


def _with_environment(state: State, folder: Path) -> State:
    """Return the state with the environment of a folder or a Python; if we made it, with its plan.

    Raises `BadInput` if it has no Python.
    """
    environment = EnvironmentFolder(folder)
    if marker := environment.marker:
        planned = Planned(planning=Planning(choice=marker.plan, plans=(marker.plan,)))
        return replace(state, installed=Installed(environment=marker.environment), planned=planned)
    python = environment.python
    if not python.exists():
        raise environment.not_an_environment_error()
    made = Environment(path=str(environment.folder), python=str(python))
    return replace(state, installed=Installed(environment=made))


def _join_words(value: object) -> Text:
    words = value if isinstance(value, tuple) else (value,)
    return " ".join(str(getattr(word, "name", word)) for word in words if word) or _("none")

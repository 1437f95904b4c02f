"""The tasks of a setup: what each does, and how it ends."""

from __future__ import annotations

import time
from collections.abc import Callable

from assistant import addons
from assistant.install import Tools, Unsolved
from assistant.model.errors import AssistantError
from assistant.session.actions import Failed, Finished
from assistant.session.doctor import still_true
from assistant.session.environments import compared, forgotten, looked, removed, repaired, surveyed, undone
from assistant.session.planning import planned
from assistant.session.remediation import causes_found, mended
from assistant.session.state import Extra, Installed, Result, State, Task, Verified
from assistant.session.steps import added, detected, installed, prepared, verified, write_files


def _addon_ran(state: State, tools: Tools) -> Extra:
    """Have an add-on work on its record: `task(value, tools)` returns the record with what was found."""
    task = addons.load(addons.TASKS, state.addon)
    return Extra(value=task(state.extras[state.addon].value, tools))


TASKS: dict[Task, Callable[[State, Tools], Result]] = {
    Task.DETECT: detected,
    Task.PLAN: planned,
    Task.PREPARE: prepared,
    Task.INSTALL: installed,
    Task.VERIFY: verified,
    Task.DIAGNOSE: causes_found,
    Task.MEND: mended,
    Task.EXPORT: write_files,
    Task.ADDON: _addon_ran,
    Task.ADD: added,
    Task.SURVEY: surveyed,
    Task.CHECK: looked,
    Task.COMPARE: compared,
    Task.REPAIR: repaired,
    Task.UNDO: undone,
    Task.FORGET: forgotten,
    Task.REMOVE: removed,
}
# What writes; any other task is left to itself when it is cancelled.
TAKE_BACK = {Task.INSTALL, Task.EXPORT, Task.MEND, Task.ADD, Task.REPAIR, Task.UNDO, Task.FORGET, Task.REMOVE}


def perform(task: Task, state: State, tools: Tools) -> Finished:
    """Do a task; after one that may have mended something on this machine, look again at what detection had found.

    Raises what the task raises, an `AssistantError` for anything that a user can meet.
    """
    begun = time.monotonic()
    result = TASKS[task](state, tools)
    found = None
    if task in {Task.INSTALL, Task.VERIFY, Task.MEND} and state.detection:
        report = result.report if isinstance(result, Verified) else None
        report = result.proof if isinstance(result, Installed) else report
        found = still_true(state.detection, tools.host, passed=report is not None and report.passed)
    return Finished(task=task, result=result, seconds=time.monotonic() - begun, detected=found)


def failed(task: Task, error: AssistantError) -> Failed:
    """Return how a task ended that raised an error."""
    address = error.address if isinstance(error, Unsolved) else ""
    return Failed(
        step=task.step, message=error.message, hint=error.hint, exit_code=error.exit_code, unreachable=address
    )

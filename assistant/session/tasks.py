"""The tasks of a setup: each takes the state and the tools, and returns its step's result."""

from __future__ import annotations

from collections.abc import Callable

from assistant.install import Tools
from assistant.session.adding import added
from assistant.session.causes import causes_found
from assistant.session.environments import looked, surveyed
from assistant.session.exporting import exported
from assistant.session.installing import installed, prepared, verify
from assistant.session.interpreters import detected
from assistant.session.joint import planned
from assistant.session.mending import compared, forgotten, removed, repaired, undone
from assistant.session.onnx import examined
from assistant.session.remediation import mended
from assistant.session.state import Result, State, Task

TASKS: dict[Task, Callable[[State, Tools], Result]] = {
    Task.DETECT: detected,
    Task.PLAN: planned,
    Task.PREPARE: prepared,
    Task.INSTALL: installed,
    Task.VERIFY: verify,
    Task.DIAGNOSE: causes_found,
    Task.MEND: mended,
    Task.EXPORT: exported,
    Task.ONNX: examined,
    Task.ADD: added,
    Task.SURVEY: surveyed,
    Task.CHECK: looked,
    Task.COMPARE: compared,
    Task.REPAIR: repaired,
    Task.UNDO: undone,
    Task.FORGET: forgotten,
    Task.REMOVE: removed,
}

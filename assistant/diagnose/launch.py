"""The launch arguments of the application that wrote a log, and how they read on another backend."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from assistant.catalog.launchers import Launcher, corrected, launchers, written
from assistant.model.finding import Launch
from assistant.model.plan import Backend

if TYPE_CHECKING:
    from assistant.diagnose.log import Log

KEEPER = "stabilitymatrix"  # which keeps the arguments of the applications that it starts
# What launchers print before they start their program, one sample of each:
#   Launching Web UI with arguments: --skip-torch-cuda-test --precision full     (Stable Diffusion WebUI, its forks)
#   Command line args: ['--use-directml', '--debug']                              (SD.Next)
#   C:\ComfyUI> python_embeded\python.exe -s ComfyUI\main.py --directml           (the prompt itself)
_ARGUMENTS = re.compile(
    r"(?:launching web ui with arguments|command.?line arg(?:ument)?s?) ?[:=] ?(.{1,600})|main\.py (-.{1,600})",
    re.IGNORECASE,
)
_LIST_SIGNS = re.compile(r"[\[\]]|,(?=\s)")  # of a list as Python prints it


def launched(log: Log) -> tuple[Launcher | None, tuple[str, ...]]:
    """Return the application that wrote a log, None for none that is known, and the arguments it was started with."""
    known = {mark: launcher for launcher in launchers() for mark in launcher.marks if mark in log.text}
    # A folder's name says more than a sentence, and a long one more than a short one.
    launcher = known[max(known, key=lambda mark: (" " not in mark, len(mark)))] if known else None
    found = (_ARGUMENTS.search(line) for _number, line in log.lines)
    printed = _LIST_SIGNS.sub("", next((match[1] or match[2] for match in found if match), ""))
    try:
        words = shlex.split(printed, posix=False)  # quoted words stay one, and a backslash is a backslash
    except ValueError:  # a quote that is never closed
        words = printed.split()
    return launcher, tuple(word.strip("'\"") for word in words)


def relaunched(log: Log, backend: Backend, system: str) -> tuple[Launch, ...]:
    """Return corrected launch arguments for the application that a log names, or for every known one."""
    launcher, arguments = launched(log)
    keeper = next((each for each in launchers() if each.key == KEEPER and each.marks[0] in log.text), None)
    changes = (
        _change(each, arguments, backend, system, keeper, log) for each in ([launcher] if launcher else launchers())
    )
    return tuple(change for change in changes if change and (change.drop or change.add or change.line))


def _change(
    launcher: Launcher, arguments: tuple[str, ...], backend: Backend, system: str, keeper: Launcher | None, log: Log
) -> Launch | None:
    new = corrected(launcher, arguments, backend)
    if new is None or system not in launcher.lines:
        return None
    mentioned = tuple(word for word in launcher.choosing if word.startswith("-") and word in log.text)
    kept = keeper or launcher
    return Launch(
        app=launcher.name,
        file=kept.files.get(system, ""),
        drop=tuple(word for word in arguments or mentioned if word in launcher.choosing and word not in new),
        add=tuple(word for word in new if word not in arguments),
        line=(written(kept, new, system) or "") if arguments else "",
    )

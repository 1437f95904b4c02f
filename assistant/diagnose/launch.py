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

KEEPER = "stabilitymatrix"
_ARGUMENTS = re.compile(
    r"(?:launching web ui with arguments|command.?line arg(?:ument)?s?) ?[:=] ?(.{1,600})|main\.py (-.{1,600})",
    re.IGNORECASE,
)
_TRIMMINGS = re.compile(r"[\[\]]|,(?=\s)")


def launched(log: Log) -> tuple[Launcher | None, tuple[str, ...]]:
    """Tell which application wrote a log, None for none that is known, and with which arguments it was started."""
    known = {mark: launcher for launcher in launchers() for mark in launcher.marks if mark in log.text}
    # A folder's name says more than a sentence, and a long one more than a short one.
    launcher = known[max(known, key=lambda mark: (" " not in mark, len(mark)))] if known else None
    found = (_ARGUMENTS.search(line) for _number, line in log.lines)
    told = next((match[1] or match[2] for match in found if match), "")
    return launcher, _words(_TRIMMINGS.sub("", told))


def _words(told: str) -> tuple[str, ...]:
    """Read arguments as they were printed: quoted words stay one, a backslash is a backslash."""
    try:
        words = shlex.split(told, posix=False)
    except ValueError:  # a quote that is never closed
        words = told.split()
    return tuple(word.strip("'\"") for word in words)


def relaunched(log: Log, backend: Backend, system: str) -> tuple[Launch, ...]:
    """Tell what to change in the arguments of the application of a log, of every known one where it names none."""
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
    told = arguments or tuple(word for word in launcher.choosing if word.startswith("-") and word in log.text)
    kept = keeper or launcher  # StabilityMatrix keeps the arguments of what it starts
    return Launch(
        app=launcher.name,
        file=kept.files.get(system, ""),
        drop=tuple(word for word in told if word in launcher.choosing and word not in new),
        add=tuple(word for word in new if word not in arguments),
        line=(written(kept, new, system) or "") if arguments else "",
    )

"""Runs learners' notebooks anew, so that a grade rests on what their cells do, isolated from one another and from us.

Each runs in a child with limits, in a throw-away copy of its folder, without its grader's variables and home; within
bubblewrap unless the grader trusts every learner. What a cell displays is still believed: a learner can forge the
output of a lab's check, as both run in one process.
"""

from __future__ import annotations

import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.host.files import read_plain, write_whole
from assistant.host.sandbox import Bubble, Limits, Outcome, confine, obstacle, places_of, share_of_memory
from assistant.i18n import _, say
from assistant.labs.grade import NOTEBOOK_BYTES, Grade, grades_of, notebooks
from assistant.labs.runner import DONE, Task
from assistant.labs.scene import environment_with_torch
from assistant.model.errors import BadInput
from assistant.model.record import to_json

RUN_SECONDS = 1800.0  # of a whole notebook: all ten labs take a third of it
SHARE, LEAST_MEMORY = 0.5, 4 << 30  # of the machine's memory, and bytes: torch in a kernel and in a lab's program
PROCESSES = 256  # of all that a notebook starts; threads of torch count on some systems
FILE_BYTES = 8 << 30  # of one file: the largest wheel of torch has half of it
COPY_BYTES = 2 << 30  # of a learner's folder
_PLAYS = re.compile(rb"\bLab\(")


def rerun(
    folder: Path,
    *,
    trusted: bool = False,
    network: bool = False,
    seconds: float | None = None,
    memory: int | None = None,
) -> Iterator[Grade]:
    """Run every notebook below a folder in a copy and grade what came of it; `memory` is in bytes.

    Raises `BadInput` for no folder, and where no sandbox works here unless the notebooks are `trusted`.
    """
    if not trusted and (reason := obstacle()):
        raise BadInput(
            _(
                "The learners' notebooks are programs, and nothing here can isolate them: {reason}.",
                reason=reason,
            ),
            hint=_("Install bubblewrap (Debian: apt install bubblewrap), or trust them all.", option="--i-trust-these"),
        )
    most = memory or share_of_memory(SHARE, LEAST_MEMORY)
    bounds = Limits(seconds or RUN_SECONDS, most, processes=PROCESSES, file_bytes=FILE_BYTES)
    found = notebooks(folder)
    torch = environment_with_torch() if any(map(_plays, found)) else ""
    for path in found:
        bubble = None if trusted else Bubble(places_of(torch) if torch else (), network)
        yield from _run(path, str(path.relative_to(folder)), torch, bounds, bubble)


def _run(path: Path, name: str, torch: str, limits: Limits, bubble: Bubble | None) -> list[Grade]:
    """Run a notebook in a copy of its folder, in the sandbox `bubble` if there is one; grade the outcome."""
    task = to_json(Task(notebook=path.name, torch=torch))
    with TemporaryDirectory(prefix="lab-", ignore_cleanup_errors=True) as place:
        folder = Path(place).resolve()
        work = folder / "work"
        try:
            _copy(path, work)
            done = confine("assistant.labs.runner", limits, folder, stdin=task, bubble=bubble, work=work)
            fault = _fault(done, limits)
            return [Grade(notebook=name, fault=fault)] if fault else grades_of(name, _result(folder))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            return [Grade(notebook=name, fault=say("It cannot be run: {reason}.", reason=reason))]


def _result(folder: Path) -> bytes:
    """Read the notebook that a run has left; a learner may have put a pipe or a link in its place."""
    if (folder / "work").is_symlink():
        raise OSError(0, say("it is not a regular file"))
    return read_plain(folder / "work" / DONE, NOTEBOOK_BYTES)


def _fault(done: Outcome, limits: Limits) -> str:
    """Return which limit ended a run, or why it failed; "" where it succeeded."""
    if done.reached == "time":
        return say("It took longer than {limit:g} s.", limit=limits.seconds)
    if done.reached == "memory":
        return say("It needs more than {size:.1f} GB of memory.", size=limits.memory / 2**30)
    if done.reached:
        return say("It started more than {count} processes.", count=limits.processes)
    last = next((line for line in reversed(done.lines) if line.strip()), str(done.code))
    return say("It cannot be run: {reason}.", reason=last.rstrip(".")) if done.code else ""


def _plays(path: Path) -> bool:
    """Return whether a notebook seems to use a lab, for which torch may be needed."""
    try:
        return bool(_PLAYS.search(read_plain(path, NOTEBOOK_BYTES)))
    except OSError:
        return False


def _copy(path: Path, place: Path) -> None:
    """Copy a notebook with its folder, but nothing of others: no other notebook, no folder with one, no link.

    Raises `OSError` for more than `COPY_BYTES`, and for a notebook that is not a regular file.
    """
    place.mkdir()
    write_whole(place / path.name, read_plain(path, NOTEBOOK_BYTES))
    room = COPY_BYTES
    for one, size in _belongings(path.parent):
        room -= size
        if room < 0:
            raise OSError(0, say("its folder is larger than {size:g} GB", size=COPY_BYTES / 2**30))
        target = place / one.relative_to(path.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(one, target, follow_symlinks=False)


def _belongings(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield a folder's plain files with their sizes, also those of folders inside it that hold no notebook."""
    for one in sorted(folder.iterdir()):
        found = one.lstat()
        if stat.S_ISDIR(found.st_mode) and not any(one.rglob("*.ipynb")):
            yield from _belongings(one)
        elif stat.S_ISREG(found.st_mode) and one.suffix != ".ipynb":
            yield one, found.st_size

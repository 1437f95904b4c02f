"""One lab as one learner plays it: started, looked at, its cause named, hints taken, checked; and the points for that.

What the learner did lies in the lab's folder and only grows: starting over adds a line. Points are worked out from it
each time, and each check writes them into one small file beside the folder, which a teacher collects.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from assistant.api import AssistantError, BadInput, Record, _, render, say
from assistant.api.records import from_json, to_json
from assistant.api.steps import LiveHost
from assistant.api.system import append_private, read_regular, write_atomically
from assistant.api.texts import in_language
from assistant_addons.labs.definition import Definition
from assistant_addons.labs.workspace import RECORD, Outcome, Workspace

POINTS, HINT_COST, MISS_COST, GUESS_COST = 10, 2, 1, 1
MOST_MISSES = 5  # that cost points
RECORD_BYTES = 16 << 20
WORK = "labs-work"  # the folder of all labs, in the current one
RESULT = ".lab.json"


class Kind(StrEnum):
    """What was done."""

    START = "start"
    HINT = "hint"
    CAUSE = "cause"
    CHECK = "check"


class Entry(Record, frozen=True):
    """One line: when (Unix time), what, and on what.

    `content` is the learner's name of a start, the cause that was named, and the fault that a check found ("" for
    none).
    """

    time: float
    kind: Kind
    content: str = ""


class Result(Record, frozen=True, omit_defaults=False):
    """What a check writes for a teacher: whose lab it was, and what follows from all that was done."""

    lab: str
    learner: str = ""
    solved: bool = False
    points: int = 0
    hints: int = 0
    misses: int = 0
    guessed: bool = True
    minutes: int = 0
    day: str = ""


class Play:
    """The lab `key` in `folder`, by default in `labs-work` below the current folder; `learner` is whose result it is.

    `report` is told what takes long, `torch` is a Python with torch, if there is one. Raises `BadInput` for an unknown
    key.
    """

    def __init__(
        self,
        key: str,
        folder: Path | None = None,
        *,
        learner: str = "",
        report: Callable[[str], object] = lambda _text: None,
        torch: str = "",
    ) -> None:
        self.space = Workspace(key, folder or Path.cwd() / WORK / key, report=report, torch=torch)
        self.definition: Definition = self.space.definition
        self._learner = learner

    @property
    def started(self) -> bool:
        """Whether the lab's folder is there."""
        return bool(self._entries())

    @property
    def learner(self) -> str:
        """The name that the learner gave at the last start."""
        starts = (entry.content for entry in reversed(self._entries()) if entry.kind is Kind.START)
        return self._learner or next(starts, "")

    @property
    def causes(self) -> dict[str, str]:
        """The causes to choose from, by key, in the learner's order; a learner without a name is this user."""
        return self.definition.in_order_of(self.learner or str(LiveHost().facts("identity")["users"]))

    def start(self) -> None:
        """Make the lab's folder anew with its fault; what was done so far still counts."""
        self.space.make()
        self._add(Kind.START, self._learner)

    def symptom(self) -> Outcome:
        """Run what fails, in the lab's folder."""
        self._need_start()
        return self.space.symptom()

    def name(self, cause: str, evidence: str) -> str:
        """Return what is to be said to a cause, by its key, and to words that may show it; the first cause counts."""
        self._need_start()
        if cause not in self.definition.causes:
            raise BadInput(
                _("“{cause}” is not among this lab's causes.", cause=cause),
                hint=_("Choose one of: {names}.", names=", ".join(self.causes)),
            )
        self._add(Kind.CAUSE, cause)
        right, shown = cause == self.definition.cause, self.definition.is_shown_by(evidence)
        if right and shown:
            return say("That is the cause, and your evidence shows it. Now fix it.")
        if right:
            return say("That may be it, but these words do not show it. What would look different with another cause?")
        if shown:
            return say("Your evidence matters, but it speaks for another cause.")
        return say("Nothing shows that. Look at the output again: which words name what failed?")

    def hint(self) -> str:
        """Return the next hint, which costs two points; the last one is given again for nothing."""
        self._need_start()
        hints = self.definition.hints
        given = self.result.hints
        if given < len(hints):
            self._add(Kind.HINT, str(given + 1))
        number = min(given, len(hints) - 1)
        return say("Hint {number} of {count}: {hint}", number=number + 1, count=len(hints), hint=str(hints[number]))

    def check(self) -> tuple[str, Result]:
        """Return what is still wrong ("" for nothing) with the result so far, and write that for the teacher.

        The first check that fails costs nothing. Each later one that finds something else wrong costs a point, five at
        most.
        """
        self._need_start()
        fault = self.space.judge()
        with in_language("en"):  # as the points depend on whether a check finds what the one before found
            self._add(Kind.CHECK, render(fault))
        write_atomically(self.result_path, f"{to_json(self.result)}\n")
        return render(fault), self.result

    @property
    def result_path(self) -> Path:
        """Where the result lies: beside the lab's folder, under its name and the learner's."""
        name = "-".join(filter(None, [self.space.key, re.sub(r"[^\w.]+", "-", self.learner)]))
        return self.space.folder.with_name(f"{name}{RESULT}")

    @property
    def result(self) -> Result:
        """The result so far."""
        return result_of(self.space.key, self.definition, self.learner, self._entries())

    def _need_start(self) -> None:
        if not self.started:
            raise BadInput(
                _("The lab {name} has not been started in {folder}.", name=self.space.key, folder=self.space.folder),
                hint=_("Start it: `assistant labs start {name}`.", name=self.space.key),
            )

    def _add(self, kind: Kind, content: str) -> None:
        entry = Entry(time=round(time.time(), 3), kind=kind, content=content)
        append_private(self.space.folder / RECORD, f"{to_json(entry)}\n")

    def _entries(self) -> tuple[Entry, ...]:
        """Read what was done; a line that was cut off, as by a full disk, is left out."""
        return tuple(self._read())

    def _read(self) -> Iterator[Entry]:
        path = self.space.folder / RECORD
        with suppress(OSError):
            for line in read_regular(path, RECORD_BYTES).decode(errors="replace").splitlines():
                with suppress(AssistantError):
                    yield from_json(line, Entry, path.name)


def result_of(key: str, definition: Definition, learner: str, entries: Sequence[Entry]) -> Result:
    """Work out the result up to the first check that found nothing wrong.

    Points go from 10 down to 1 for a solved lab, and are 0 for another. Hints, failed checks after the first one and a
    first cause that is wrong or missing cost some; a check that finds what the one before found costs nothing.
    """
    done = next((at for at, entry in enumerate(entries) if entry.kind is Kind.CHECK and not entry.content), None)
    before = entries[:done]
    causes = [entry.content for entry in before if entry.kind is Kind.CAUSE]
    hints = min(sum(entry.kind is Kind.HINT for entry in before), len(definition.hints))
    faults = [entry.content for entry in before if entry.kind is Kind.CHECK]
    changes = [fault for fault, last in zip(faults, ["", *faults], strict=False) if fault != last]
    misses = min(max(0, len(changes) - 1), MOST_MISSES)
    guessed = causes[:1] != [definition.cause]
    lost = HINT_COST * hints + MISS_COST * misses + GUESS_COST * guessed
    end = entries[-1 if done is None else done].time if entries else 0.0
    return Result(
        lab=key,
        learner=learner,
        solved=done is not None,
        points=max(1, POINTS - lost) if done is not None else 0,
        hints=hints,
        misses=misses,
        guessed=guessed,
        minutes=max(0, round((end - entries[0].time) / 60)) if entries else 0,
        day=time.strftime("%Y-%m-%d", time.localtime(end)) if entries else "",
    )


def play_at(key: str, folder: Path | None, **given: object) -> Play:
    """Return a lab by its key, or without one that of the current folder, below which its files may lie.

    Raises `BadInput` where no key is given and the folder is no lab's.
    """
    here = folder or Path.cwd()
    if not key and (here / RECORD).exists():
        return Play(here.name, here, **given)  # type: ignore[arg-type]
    if not key:
        raise BadInput(_("Which lab? This folder is not one."), hint=_("Name it, or change into the lab's folder."))
    if not folder and here.name == key and (here / RECORD).exists():
        folder = here
    return Play(key, folder, **given)  # type: ignore[arg-type]

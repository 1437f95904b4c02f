"""What a learner did in a lab, in order, and the points that follow from it.

The journal lies beside the lab's folder and only grows: starting over adds a line. Points are worked out from it each
time, so nothing keeps a score that could be changed alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from assistant.api import AssistantError, Record, append_private, from_json, read_plain, to_json
from assistant_addons.labs.definition import LabText

MIME = "application/vnd.torch-setup-assistant.lab+json"  # of what a check leaves in a notebook
POINTS, HINT_COST, MISS_COST, AID_COST, GUESS_COST = 10, 2, 1, 1, 1
MOST_MISSES = 5  # that cost points
JOURNAL_BYTES = 16 << 20
ENTRIES = 5000


class Kind(StrEnum):
    """What was done."""

    START = "start"
    RUN = "run"
    WRITE = "write"
    HINT = "hint"
    AID = "aid"
    PREDICT = "predict"
    CHECK = "check"
    RESET = "reset"


DEEDS = {Kind.RUN, Kind.WRITE}
BEGINS = {Kind.START, Kind.RESET}


class Entry(Record, frozen=True):
    """One line: when (Unix time), what, and on what.

    `content` is the learner's name of a start, the line of a run, the file of a write, the cause of a prediction, and
    the fault that a check found ("" for none); `text` is what was written, or the evidence of a prediction.
    """

    time: float
    kind: Kind
    content: str = ""
    text: str = ""


class Submission(Record, frozen=True):
    """What a check leaves in the notebook, for grading: the lab, the learner, and all that was done."""

    lab: str
    learner: str = ""
    journal: tuple[Entry, ...] = ()


class Score(Record, frozen=True):
    """What follows from a journal: `hints`, `misses` and `aids` cost points, as does a first cause that is wrong."""

    solved: bool = False
    hints: int = 0
    misses: int = 0
    aids: int = 0
    guessed: bool = False
    minutes: int = 0

    @property
    def points(self) -> int:
        """From 10 down to 1 for a solved lab, 0 for another."""
        lost = HINT_COST * self.hints + MISS_COST * self.misses + AID_COST * self.aids + GUESS_COST * self.guessed
        return max(1, POINTS - lost) if self.solved else 0


class Journal:
    """The journal of a lab in its file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, kind: Kind, content: str = "", text: str = "") -> None:
        """Append what was just done. Raises `OSError`."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        entry = Entry(time=round(time.time(), 3), kind=kind, content=content, text=text)
        append_private(self.path, f"{to_json(entry)}\n")

    def entries(self) -> tuple[Entry, ...]:
        """Read what was done; a line that was cut off, as by a full disk, is left out."""
        return tuple(self._read())

    def _read(self) -> Iterator[Entry]:
        try:
            lines = read_plain(self.path, JOURNAL_BYTES).decode(errors="replace").splitlines()
        except OSError:
            return
        for line in lines:
            try:
                yield from_json(line, Entry, self.path.name)
            except AssistantError:
                continue


def score_of(text: LabText, entries: Sequence[Entry]) -> Score:
    """Work out the score up to the first check that found nothing wrong.

    The first check that fails costs nothing, nor does one that follows no deed.
    """
    done = next((at for at, entry in enumerate(entries) if _solves(entry)), None)
    before = entries[:done] if done is not None else entries
    kinds = [entry.kind for entry in before]
    misses = sum(failed for failed in _failures(before)) - 1
    first = next((entry for entry in before if entry.kind is Kind.PREDICT), None)
    end = entries[done] if done is not None else (entries[-1] if entries else None)
    return Score(
        solved=done is not None,
        hints=min(kinds.count(Kind.HINT), len(text.hints)),
        misses=min(max(0, misses), MOST_MISSES),
        aids=min(kinds.count(Kind.AID), 1),
        guessed=first is None or not is_right(text, first.content, first.text),
        minutes=max(0, round((end.time - entries[0].time) / 60)) if end else 0,
    )


def is_right(text: LabText, cause: str, evidence: str) -> bool:
    """Return whether a learner's cause is the right one, and the evidence holds a piece that proves it."""
    return cause == text.cause and proves(text, evidence)


def proves(text: LabText, evidence: str) -> bool:
    """Return whether words of the failing program's output prove the right cause."""
    said = " ".join(evidence.lower().split())
    return any(" ".join(piece.lower().split()) in said for piece in text.evidence)


def attempt(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return what was done from the last start on."""
    begun = max((at for at, entry in enumerate(entries) if entry.kind in BEGINS), default=0)
    return entries[begun:]


def _solves(entry: Entry) -> bool:
    return entry.kind is Kind.CHECK and not entry.content


def _failures(entries: Sequence[Entry]) -> Iterator[bool]:
    """Yield for each failing check whether something had been done since the start or the check before."""
    acted = False
    for entry in entries:
        if entry.kind is Kind.CHECK:
            yield acted
            acted = False
        elif entry.kind in DEEDS:
            acted = True
        elif entry.kind in BEGINS:
            acted = False

"""What a learner did in a lab, in order, the points that follow from it, and the journals in learners' notebooks.

The journal lies beside the lab's folder and only grows: starting over adds a line. Points are worked out from it each
time, so nothing keeps a score that could be changed alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.api import AssistantError, BadInput, Record, Text, _, replace, say
from assistant.api.records import from_json, from_plain, to_json
from assistant.api.system import append_private, read_regular
from assistant_addons.labs.definition import LabText, labs

if TYPE_CHECKING:
    from nbformat import NotebookNode

MIME = "application/vnd.torch-setup-assistant.lab+json"  # of what a check leaves in a notebook
POINTS, HINT_COST, MISS_COST, AID_COST, GUESS_COST = 10, 2, 1, 1, 1
MOST_MISSES = 5  # that cost points
JOURNAL_BYTES = 16 << 20
NOTEBOOK_BYTES = 200 << 20  # one with its outputs
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


class Entry(Record, frozen=True):
    """One line: when (Unix time), what, and on what.

    `content` is the learner's name of a start, the line of a run, the file of a write, the cause of a prediction, and
    the fault that a check found ("" for none). `text` is the evidence of a prediction, and of a start or a check a hash
    of the files that the learner may change.
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
            lines = read_regular(self.path, JOURNAL_BYTES).decode(errors="replace").splitlines()
        except OSError:
            return
        for line in lines:
            with suppress(AssistantError):
                yield from_json(line, Entry, self.path.name)


def score_of(text: LabText, entries: Sequence[Entry]) -> Score:
    """Work out the score up to the first check that found nothing wrong.

    The first check that fails costs nothing, nor does one that follows no deed.
    """
    done = next((at for at, entry in enumerate(entries) if entry.kind is Kind.CHECK and not entry.content), None)
    before = entries[:done] if done is not None else entries
    kinds = [entry.kind for entry in before]
    first = next((entry for entry in before if entry.kind is Kind.PREDICT), None)
    end = entries[done] if done is not None else (entries[-1] if entries else None)
    return Score(
        solved=done is not None,
        hints=min(kinds.count(Kind.HINT), len(text.hints)),
        misses=min(max(0, sum(_failures(before)) - 1), MOST_MISSES),
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


def _failures(entries: Sequence[Entry]) -> Iterator[bool]:
    """Yield for each failing check whether something had been done since the start or the check before."""
    acted, files = False, ""
    for entry in entries:
        if entry.kind is Kind.CHECK:
            yield acted or entry.text != files  # which an editor may have changed
        if entry.kind in {Kind.CHECK, Kind.START, Kind.RESET}:
            acted, files = False, entry.text
        acted = acted or entry.kind in {Kind.RUN, Kind.WRITE}


class Grade(Record, frozen=True, omit_defaults=False):
    """One lab of one notebook; `fault` says why it could not be graded."""

    notebook: str
    learner: str = ""
    lab: str = ""
    solved: bool = False
    points: int = 0
    hints: int = 0
    misses: int = 0
    aids: int = 0
    minutes: int = 0
    fault: Text = ""


def grade(folder: Path) -> list[Grade]:
    """Grade every notebook below a folder; raise `BadInput` for no folder.

    A learner is the first folder's name, or the file's where all lie side by side.
    """
    if not folder.is_dir():
        raise BadInput(
            _("{folder} is not a folder.", folder=folder), hint=_("Name the folder that holds the notebooks.")
        )
    found: list[Grade] = []
    for path in sorted(folder.rglob("*.ipynb")):
        inside = path.relative_to(folder)
        if ".ipynb_checkpoints" not in path.parts:
            learner = inside.parts[0] if len(inside.parts) > 1 else inside.stem
            found += _graded(path, Grade(notebook=str(inside), learner=learner))
    return found


def _graded(path: Path, blank: Grade) -> Iterator[Grade]:
    """Grade the last check of each lab in a learner's notebook, or say why there is none; nothing in it runs."""
    import nbformat  # noqa: PLC0415 - a lab that is played needs none of the notebooks' libraries

    try:
        content = read_regular(path, NOTEBOOK_BYTES, follow=True)
        notebook = nbformat.reads(content.decode(), as_version=4)  # type: ignore[no-untyped-call]
    except Exception as error:  # noqa: BLE001 - one bad file must not cost the others' grades
        reason = getattr(error, "strerror", None) or type(error).__name__
        yield replace(blank, fault=say("It is not a notebook: {reason}.", reason=reason))
        return
    last = {one.lab: one for one in _submitted(notebook)}
    for lab, submission in last.items():
        score = score_of(labs()[lab].english, submission.journal)
        counted = {name: getattr(score, name) for name in ("solved", "points", "hints", "misses", "aids", "minutes")}
        yield replace(blank, lab=lab, **counted)
    if not last:
        yield replace(blank, fault=say("It contains no check of a lab."))


def _submitted(notebook: NotebookNode) -> Iterator[Submission]:
    """Yield what each check has left in a notebook, in order; what has another form or names no lab is skipped."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            with suppress(AssistantError):
                found = from_plain(output.get("data", {}).get(MIME), Submission, MIME)
                if found.lab in labs() and len(found.journal) <= ENTRIES:
                    yield found

"""Reads learners' notebooks: which labs each one holds, and what its journals claim or, replayed, prove."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.host.files import read_plain
from assistant.i18n import Message, Text, _, say
from assistant.labs.answer import MIME, Submission
from assistant.labs.definition import labs
from assistant.labs.journal import ENTRIES, Score, doubts, score_of
from assistant.model.errors import AssistantError, BadInput
from assistant.model.record import Record, from_plain

if TYPE_CHECKING:
    from nbformat import NotebookNode

NOTEBOOK_BYTES = 200 << 20  # one with its outputs


class Grade(Record, frozen=True, omit_defaults=False):
    """One lab of one notebook; `fault` says why it could not be graded, `doubts` what speaks against its journal.

    `proved` says whether the deeds were done again, or the notebook was believed.
    """

    notebook: str
    learner: str = ""
    lab: str = ""
    solved: bool = False
    proved: bool = False
    points: int = 0
    hints: int = 0
    misses: int = 0
    aids: int = 0
    minutes: int = 0
    doubts: tuple[Message, ...] = ()
    fault: Text = ""


def grade(folder: Path) -> list[Grade]:
    """Return what every notebook below a folder claims; raise `BadInput` for no folder."""
    return [row for path in notebooks(folder) for row in claims_of(path, folder)]


def notebooks(folder: Path) -> list[Path]:
    """Find every notebook below a folder; raise `BadInput` for no folder."""
    if not folder.is_dir():
        raise BadInput(
            _("{folder} is not a folder.", folder=folder), hint=_("Name the folder that holds the notebooks.")
        )
    return [path for path in sorted(folder.rglob("*.ipynb")) if ".ipynb_checkpoints" not in path.parts]


def learner_of(path: Path, folder: Path) -> str:
    """Return whose notebook it is: the first folder's name, or the file's where all lie side by side."""
    inside = path.relative_to(folder)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def claims_of(path: Path, folder: Path) -> list[Grade]:
    """Return what one notebook claims."""
    name, learner = str(path.relative_to(folder)), learner_of(path, folder)
    found, fault = submissions(path)
    if fault:
        return [Grade(notebook=name, learner=learner, fault=fault)]
    return [claimed(name, learner, one) for one in found]


def claimed(notebook: str, learner: str, submission: Submission) -> Grade:
    """Return the grade that a submission claims."""
    text = labs()[submission.lab].text(submission.learner)
    score = score_of(text, submission.journal)
    return grade_from(notebook, learner, submission, score)


def grade_from(notebook: str, learner: str, submission: Submission, score: Score, *, proved: bool = False) -> Grade:
    """Return the grade of a score."""
    found = list(doubts(submission.journal))
    if submission.learner not in {"", learner}:
        found.append(_("It was played by the name {name}.", name=submission.learner))
    return Grade(
        notebook=notebook,
        learner=learner,
        lab=submission.lab,
        solved=score.solved,
        proved=proved,
        points=score.points,
        hints=score.hints,
        misses=score.misses,
        aids=score.aids,
        minutes=score.minutes,
        doubts=tuple(found),
    )


def submissions(path: Path) -> tuple[Sequence[Submission], Text]:
    """Read the last check of each lab in a notebook; or why there is none."""
    import nbformat  # noqa: PLC0415 - the list of labs needs none of the notebooks' libraries

    try:
        content = read_plain(path, NOTEBOOK_BYTES, follow=True)
        notebook = nbformat.reads(content.decode(), as_version=4)  # type: ignore[no-untyped-call]
    except OSError as error:
        return (), say("It is not a notebook: {reason}.", reason=error.strerror or type(error).__name__)
    except Exception as error:  # noqa: BLE001 - one bad file must not cost the others' grades
        return (), say("It is not a notebook: {reason}.", reason=type(error).__name__)
    last = {one.lab: one for one in _submitted(notebook)}
    return tuple(last.values()), "" if last else say("It contains no check of a lab.")


def _submitted(notebook: NotebookNode) -> Iterator[Submission]:
    """Yield what each check has left in a notebook, in order; what has another form or names no lab is skipped."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            with suppress(AssistantError):
                found = from_plain(output.get("data", {}).get(MIME), Submission, MIME)
                if found.lab in labs() and len(found.journal) <= ENTRIES:
                    yield found

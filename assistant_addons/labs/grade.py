"""Reads learners' notebooks: which labs each one holds, and the points that follow from their journals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.api import AssistantError, BadInput, Record, Text, _, from_plain, read_plain, say
from assistant_addons.labs.definition import labs
from assistant_addons.labs.journal import ENTRIES, MIME, Submission, score_of

if TYPE_CHECKING:
    from nbformat import NotebookNode

NOTEBOOK_BYTES = 200 << 20  # one with its outputs


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
            found += _grade_notebook(path, inside.parts[0] if len(inside.parts) > 1 else inside.stem, str(inside))
    return found


def _grade_notebook(path: Path, learner: str, name: str) -> list[Grade]:
    """Grade the last check of each lab in a learner's notebook; nothing in it runs."""
    found, fault = _submissions(path)
    if fault:
        return [Grade(notebook=name, learner=learner, fault=fault)]
    return [_graded(name, learner, one) for one in found]


def _graded(notebook: str, learner: str, submission: Submission) -> Grade:
    score = score_of(labs()[submission.lab].english, submission.journal)
    return Grade(
        notebook=notebook,
        learner=learner,
        lab=submission.lab,
        solved=score.solved,
        points=score.points,
        hints=score.hints,
        misses=score.misses,
        aids=score.aids,
        minutes=score.minutes,
    )


def _submissions(path: Path) -> tuple[Sequence[Submission], Text]:
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

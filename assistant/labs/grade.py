"""Grades learners' notebooks: which labs each one holds, whether they are solved, and the points."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.host.files import read_plain
from assistant.i18n import _, say
from assistant.labs.lab import MIME, Score, texts
from assistant.model.errors import AssistantError, BadInput
from assistant.model.record import Record, from_plain

if TYPE_CHECKING:
    from nbformat import NotebookNode

NOTEBOOK_BYTES = 200 << 20  # one with its outputs


class Grade(Record, frozen=True):
    """One lab of one notebook; `fault` says why it could not be graded ("" else)."""

    notebook: str
    lab: str = ""
    solved: bool = False
    points: int = 0
    fault: str = ""


def grade(folder: Path) -> list[Grade]:
    """Grade every notebook below a folder, by the last check of each lab; raise `BadInput` for no folder."""
    return [row for path in notebooks(folder) for row in grade_notebook(path, str(path.relative_to(folder)))]


def grade_notebook(path: Path, name: str) -> list[Grade]:
    """Grade one notebook, which the rows call `name`."""
    try:
        return grades_of(name, read_plain(path, NOTEBOOK_BYTES, follow=True))
    except OSError as error:
        return [Grade(notebook=name, fault=say("It is not a notebook: {reason}.", reason=error.strerror))]


def notebooks(folder: Path) -> list[Path]:
    """Find every notebook below a folder; raise `BadInput` for no folder."""
    if not folder.is_dir():
        raise BadInput(
            _("{folder} is not a folder.", folder=folder), hint=_("Name the folder that holds the notebooks.")
        )
    return [path for path in sorted(folder.rglob("*.ipynb")) if ".ipynb_checkpoints" not in path.parts]


def grades_of(name: str, content: bytes) -> list[Grade]:
    """Grade one notebook by its content."""
    import nbformat  # noqa: PLC0415 - the list of labs needs none of the notebooks' libraries

    try:
        notebook = nbformat.reads(content.decode(), as_version=4)  # type: ignore[no-untyped-call]
    except Exception as error:  # noqa: BLE001 - one bad file must not cost the others' grades
        return [Grade(notebook=name, fault=say("It is not a notebook: {reason}.", reason=type(error).__name__))]
    last = {score.lab: score for score in _scores(notebook)}
    if not last:
        return [Grade(notebook=name, fault=say("It contains no check of a lab."))]
    return [Grade(name, score.lab, score.solved, score.points) for score in last.values()]


def _scores(notebook: NotebookNode) -> Iterator[Score]:
    """Yield the score of each check in a notebook, in order; what has another form or names no lab is skipped."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            with suppress(AssistantError):
                score = from_plain(output.get("data", {}).get(MIME), Score, MIME)
                if score.lab in texts():
                    yield score

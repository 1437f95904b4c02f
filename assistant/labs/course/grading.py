"""How nbgrader collects and grades the labs: its settings name these classes, and it imports them.

nbgrader grades a notebook by running its cells with the teacher's rights, and then reads what the locked cell printed.
Here no cell is run: the points follow from the journal that each lab's last check has left in the notebook, by the
function that `assistant labs check` calls, and go where nbgrader looks for them.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.exchange.default import ExchangeCollect
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import ignore_patterns, is_grade

from assistant.i18n import Text, render, say, sentences
from assistant.labs.grade import Grade, grade_notebook
from assistant.labs.notebook import lab_of


class GradeLabs(NbGraderPreprocessor):  # type: ignore[misc]  # the library has no types
    """Put the points of each lab below its locked cell, in place of running the notebook."""

    def preprocess(self, notebook: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:  # noqa: ANN401 - nbconvert's
        """Grade the notebook as it was handed in: nbgrader has cleared the outputs of this copy."""
        handed_in = resources["nbgrader"]
        course = self.parent.parent.coursedir
        folder = course.format_path(course.submitted_directory, handed_in["student"], handed_in["assignment"])
        path = Path(folder, f"{handed_in['notebook']}.ipynb")
        grades = {grade.lab: grade for grade in grade_notebook(path, handed_in["student"])}
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = _shown(grades.get(lab_of(cell))) if is_grade(cell) else []
        return notebook, resources


def _shown(grade: Grade | None) -> list[NotebookNode]:
    """Return the outputs of a locked cell: why, then the points, which nbgrader takes from a cell's result alone."""
    why: list[Text] = [say("It contains no check of this lab.")]
    if grade:
        lost = say("{hints} hints, {misses} failed checks.", hints=grade.hints, misses=grade.misses)
        why = [say("Fixed.") if grade.solved else say("Not fixed."), grade.fault, lost, *grade.doubts]
    points = str(grade.points if grade else 0)
    told = {"output_type": "display_data", "data": {"text/plain": render(sentences(filter(None, why)))}, "metadata": {}}
    result_of_cell = {
        "output_type": "execute_result",
        "data": {"text/plain": points},
        "metadata": {},
        "execution_count": 1,
    }
    return [NotebookNode(told), NotebookNode(result_of_cell)]  # type: ignore[no-untyped-call]


class CollectFiles(ExchangeCollect):  # type: ignore[misc]  # the library has no types
    """Collect what learners handed in without following links, which would lead into the teacher's own files."""

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:  # noqa: ANN401, ARG002 - nbgrader's own form
        """Copy a folder as nbgrader does, and leave out the links in it."""
        left_out = ignore_patterns(
            exclude=self.coursedir.ignore,
            include=self.coursedir.include,
            max_file_size=self.coursedir.max_file_size,
            log=self.log,
        )
        shutil.copytree(src, dest, symlinks=True, ignore=left_out)
        for path in Path(dest).rglob("*"):
            if path.is_symlink():
                self.log.warning(say("{file} is a link; it is not collected.", file=path))
                path.unlink()

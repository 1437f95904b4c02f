"""Writes a course's folder: a notebook for each lab, the settings for nbgrader, the roster, a guide for the teacher."""

from __future__ import annotations

import csv
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from assistant.host.files import read_plain, write_whole
from assistant.host.live import LiveHost
from assistant.host.process import stream
from assistant.i18n import _, verbatim
from assistant.labs.definition import lab_at, labs
from assistant.labs.journal import POINTS
from assistant.labs.notebook import CHECK, notebook_of, text_of
from assistant.model.errors import BadInput, WorkFailed, unreadable, unwritable
from assistant.parsers.decode import text_pieces

HERE = Path(__file__).parent
ROSTER = "roster.csv"
COLUMNS = ("id", "last_name", "first_name", "email")  # as nbgrader's gradebook names them
NAMED = "check-"  # begins the name of a locked cell; the lab's key follows
LOCKED = {"schema_version": 3, "grade": True, "locked": True, "solution": False, "task": False}
_NAME = re.compile(r"[\w.-]+")  # of a course or a learner: a part of paths, of which nbgrader joins some with "+"
_ROSTER_BYTES = 16 << 20
_IMPORT_SECONDS = 300.0


def write_course(
    folder: Path, names: Sequence[str], *, roster: Path | None = None, exchange: Path | None = None
) -> tuple[str, ...]:
    """Write a course of these labs (all if none is named) into a new or empty folder; return the labs' keys.

    The course is named after the folder. Raises `BadInput` for an unknown lab, a folder that holds something, a name
    or a roster that nbgrader cannot take, and `WorkFailed` where the folder cannot be written.
    """
    keys = tuple(dict.fromkeys(lab_at(name).key for name in names)) or tuple(labs())
    learners = read_roster(roster) if roster else ()
    name = folder.absolute().name
    if not _NAME.fullmatch(name):
        raise BadInput(
            _("nbgrader takes no course named {name}.", name=f"“{name}”"),
            hint=_("Name a folder with letters, digits, “.”, “_” and “-” alone."),
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(_("{folder} holds something already.", folder=folder), hint=_("Name a new or empty folder."))
    try:
        for file, text in _files(keys, name, exchange, learners):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            write_whole(folder / file, text)
    except OSError as error:
        raise unwritable(folder, error) from error
    if learners:
        _enrol(folder, name)
    return keys


def lab_of(cell: Any) -> str:  # noqa: ANN401 - nbformat has no types
    """Return the lab that a locked cell checks; "" for any other cell."""
    name: str = cell.metadata.get("nbgrader", {}).get("grade_id", "")
    return name.removeprefix(NAMED) if name.startswith(NAMED) else ""


def source_notebook(key: str) -> str:
    """Return the notebook of a lab for nbgrader's `source`: its check is a locked cell worth the lab's points.

    On JupyterHub the learner is the account, by whose name the notebook is handed in.
    """
    notebook = notebook_of(key)
    for cell in notebook.cells:
        if cell.source == CHECK:
            cell.metadata["nbgrader"] = {**LOCKED, "grade_id": f"{NAMED}{key}", "points": POINTS}
        if cell.cell_type == "code" and 'learner=""' in cell.source:
            cell.source = "import os\n" + cell.source.replace('""', 'os.environ.get("JUPYTERHUB_USER", "")')
    return text_of(notebook)


def read_roster(path: Path) -> tuple[dict[str, str], ...]:
    """Read a table of learners (CSV with a column `id`, maybe the others of `COLUMNS`); raise `BadInput`."""
    try:
        text = "".join(text_pieces(read_plain(path, _ROSTER_BYTES, follow=True)))
    except OSError as error:
        raise unreadable(path, error) from error
    table = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    learners = tuple({name: (row.get(name) or "").strip() for name in COLUMNS} for row in table)
    ids = [learner["id"] for learner in learners]
    if "id" not in (table.fieldnames or ()) or not ids:
        raise BadInput(
            _("{file} names no learners.", file=path),
            hint=_(
                "Its first line names the columns: {columns}; only the first must be there.", columns=", ".join(COLUMNS)
            ),
        )
    odd = next((one for one in ids if not _NAME.fullmatch(one) or ids.count(one) > 1), None)
    if odd is not None:
        raise BadInput(
            _("{file}: “{id}” cannot be a learner's id, or is there twice.", file=path, id=odd),
            hint=_("Take the names of their accounts: letters, digits, “.”, “_” and “-”."),
        )
    for learner in learners:  # nbgrader writes its CSV without quotes: a comma would shift the columns
        learner.update({name: value.replace(",", "，") for name, value in learner.items()})
    return learners


def _files(
    keys: Sequence[str], course: str, exchange: Path | None, learners: Sequence[dict[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each of a course's files."""
    place = (
        f"c.Exchange.root = {str(exchange.absolute())!r}"
        if exchange
        else '# c.Exchange.root = "/srv/nbgrader/exchange"'
    )
    settings = (HERE / "nbgrader_config.py.txt").read_text(encoding="utf-8")
    yield "nbgrader_config.py", settings.replace("{course}", repr(course)).replace("{exchange}", place)
    yield (
        "README.md",
        (HERE / "README.md").read_text(encoding="utf-8").replace("{course}", course).replace("{lab}", keys[0]),
    )
    for key in keys:
        yield f"source/{key}/{key}.ipynb", source_notebook(key)
    if learners:
        table = io.StringIO()
        writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(learners)
        yield ROSTER, table.getvalue()


def _enrol(folder: Path, course: str) -> None:
    """Put the roster into the gradebook by nbgrader's own command."""
    lines: list[str] = []
    places = [f"--CourseDirectory.course_id={course}", f"--CourseDirectory.root={folder.absolute()}"]
    command = [sys.executable, "-m", "nbgrader", "db", "student", "import", str(folder / ROSTER), *places]
    programs = f"{Path(sys.executable).parent}{os.pathsep}{LiveHost().variable('PATH').text}"  # it starts `alembic`
    if stream(command, lines.append, environment={"PATH": programs}, limit=_IMPORT_SECONDS):
        raise WorkFailed(
            _("nbgrader does not take the roster: {reason}.", reason=verbatim(lines[-1].rstrip(".") if lines else "")),
            hint=_(
                "Mend that, then type in {folder}: {command}",
                folder=folder,
                command=f"nbgrader db student import {ROSTER}",
            ),
        )

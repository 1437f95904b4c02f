"""Writes a course's folder: a notebook for each lab, the settings for nbgrader, a guide for the teacher."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from assistant.host.files import write_whole
from assistant.i18n import _
from assistant.labs.definition import lab_at, labs
from assistant.labs.journal import POINTS
from assistant.labs.notebook import CHECK, notebook_of, text_of
from assistant.model.errors import BadInput, unwritable

HERE = Path(__file__).parent
NAMED = "check-"  # begins the name of a locked cell; the lab's key follows
LOCKED = {"schema_version": 3, "grade": True, "locked": True, "solution": False, "task": False}
_NAME = re.compile(r"[\w.-]+")  # of a course: a part of paths, of which nbgrader joins some with "+"


def write_course(folder: Path, names: Sequence[str], *, exchange: Path | None = None) -> tuple[str, ...]:
    """Write a course of these labs (all if none is named) into a new or empty folder; return the labs' keys.

    The course is named after the folder. Raises `BadInput` for an unknown lab, a folder that holds something, or a name
    that nbgrader cannot take, and `WorkFailed` where the folder cannot be written.
    """
    keys = tuple(dict.fromkeys(lab_at(name).key for name in names)) or tuple(labs())
    name = folder.absolute().name
    if not _NAME.fullmatch(name):
        raise BadInput(
            _("nbgrader takes no course named {name}.", name=f"“{name}”"),
            hint=_("Name a folder with letters, digits, “.”, “_” and “-” alone."),
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(_("{folder} holds something already.", folder=folder), hint=_("Name a new or empty folder."))
    try:
        for file, text in _files(keys, name, exchange):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            write_whole(folder / file, text)
    except OSError as error:
        raise unwritable(folder, error) from error
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


def _files(keys: Sequence[str], course: str, exchange: Path | None) -> Iterator[tuple[str, str]]:
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

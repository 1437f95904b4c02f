"""The notebooks of the labs, for learners and as the assignments of a course for nbgrader."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from assistant.host.files import write_whole
from assistant.i18n import LANGUAGES, _, in_language, say
from assistant.labs.definition import Definition, lab_at, labs
from assistant.labs.journal import POINTS
from assistant.model.errors import BadInput, unwritable

CHECK = "lab.check()"
_LEARNERS = """import torch_setup_assistant  # names the file that is in the way, if you have an assistant.py
from assistant.labs import Lab

lab = Lab("{key}", learner="")
lab.start()"""
_YOURS = """# {yours}
# lab.run("…")   lab.read("…")   lab.write("…", "…")   lab.symptom()   lab.hint()   lab.diagnose()"""


def notebook_of(key: str) -> dict[str, Any]:
    """Return the notebook of a lab (nbformat 4.5), not executed; run from top to bottom it costs no point."""
    definition = labs()[key]
    cells = [
        ("markdown", _both(partial(_opening, definition))),
        ("code", _LEARNERS.format(key=key)),
        ("markdown", _both(_prediction)),
        ("code", '# lab.predict("…", "…")'),
        ("markdown", _both(_tools)),
        ("code", _YOURS.format(yours=" ".join(_in_each(lambda: say("Your lines go here."))))),
        ("code", CHECK),
    ]
    return _notebook(cells)


def write_notebooks(folder: Path) -> tuple[Path, ...]:
    """Write the notebooks of all labs into a folder, numbered in teaching order.

    Raises `WorkFailed` where one cannot be written.
    """
    written = {folder / name: notebook_of(key) for name, key in names().items()}
    for path, notebook in written.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text_of(notebook))
        except OSError as error:
            raise unwritable(path, error) from error
    return tuple(written)


def names() -> dict[str, str]:
    """Return the labs by the names of their notebooks."""
    return {f"{number:02}-{key}.ipynb": key for number, key in enumerate(labs(), 1)}


def text_of(notebook: dict[str, Any]) -> str:
    """Return a notebook as the text of its file, as Jupyter writes it."""
    cells = [{**cell, "source": cell["source"].splitlines(keepends=True)} for cell in notebook["cells"]]
    return json.dumps({**notebook, "cells": cells}, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _notebook(cells: list[tuple[str, str]]) -> dict[str, Any]:
    made = []
    for number, (kind, source) in enumerate(cells):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source}
        if kind == "code":
            cell |= {"execution_count": None, "metadata": {"tags": ["nbval-ignore-output"]}, "outputs": []}
        made.append(cell)
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _opening(definition: Definition) -> str:
    text = definition.text()
    goals = "".join(f"\n- {goal}" for goal in text.objectives)
    parts = [
        f"# {text.title}",
        say("About {count} minutes. You learn to:", count=text.minutes) + goals,
        say(
            "`start()` breaks something for real, in a folder of its own; nothing else on your computer is touched. "
            "Your teacher may ask for your name in `learner`."
        ),
    ]
    return "\n\n".join(parts)


def _prediction() -> str:
    return say(
        "Look before you mend. Which of the causes is it, and which words of the output prove it? "
        '`lab.predict("cause", "words of the output")` answers; your first answer counts.'
    )


def _tools() -> str:
    return say(
        'Now fix it. `lab.run("…")` runs a line that begins with `python`, `pip`, `uv` or `assistant`, in the lab\'s '
        "folder; with `> FILE` at its end it keeps the output. `lab.read(name)` returns a file and "
        "`lab.write(name, text)` writes it; `lab.symptom()` runs the failing program again. `lab.hint()` costs two "
        "points, `lab.diagnose()` lets the assistant look and costs one. The first check that fails costs nothing, "
        "each later one a point. `lab.reset()` starts over and forgets nothing."
    )


def _both(write: Callable[[], str]) -> str:
    return "\n\n---\n\n".join(_in_each(write))


def _in_each(write: Callable[[], str]) -> list[str]:
    """Write something in every language of the assistant."""
    found = []
    for code in LANGUAGES:
        with in_language(code):
            found.append(write())
    return found


COURSE = Path(__file__).with_name("course")  # what nbgrader imports, and the texts of a course
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
    for cell in notebook["cells"]:
        source = cell["source"]
        if source == CHECK:
            cell["metadata"]["nbgrader"] = {**LOCKED, "grade_id": f"{NAMED}{key}", "points": POINTS}
        if cell["cell_type"] == "code" and 'learner=""' in source:
            cell["source"] = "import os\n" + source.replace('""', 'os.environ.get("JUPYTERHUB_USER", "")')
    return text_of(notebook)


def _files(keys: Sequence[str], course: str, exchange: Path | None) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each of a course's files."""
    place = (
        f"c.Exchange.root = {str(exchange.absolute())!r}"
        if exchange
        else '# c.Exchange.root = "/srv/nbgrader/exchange"'
    )
    settings = (COURSE / "nbgrader_config.py.txt").read_text(encoding="utf-8")
    yield "nbgrader_config.py", settings.replace("{course}", repr(course)).replace("{exchange}", place)
    yield (
        "README.md",
        (COURSE / "README.md").read_text(encoding="utf-8").replace("{course}", course).replace("{lab}", keys[0]),
    )
    for key in keys:
        yield f"source/{key}/{key}.ipynb", source_notebook(key)

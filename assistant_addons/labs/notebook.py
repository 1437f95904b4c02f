"""The notebooks of the labs, for learners."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from assistant.api import LANGUAGES, in_language, say, unwritable, write_whole
from assistant_addons.labs.definition import Definition, labs

_LEARNERS = """import torch_setup_assistant  # names the file that is in the way, if you have an assistant.py
from assistant_addons.labs import Lab

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
        ("code", "lab.check()"),
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

"""The notebooks of the labs, for learners."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from assistant.api import say
from assistant.api.system import unwritable_error, write_atomically
from assistant.api.texts import LANGUAGES, in_language
from assistant_addons.labs.definition import Definition, labs
from assistant_addons.labs.lab import opening

_LEARNERS = """import torch_setup_assistant  # names the file that is in the way, if you have an assistant.py
from assistant_addons.labs import Lab

lab = Lab("{key}", learner="")
lab.start()"""
_YOURS = """# {yours}
# lab.run("…")   lab.read("…")   lab.write("…", "…")   lab.symptom()   lab.hint()   lab.diagnose()"""
_OUTPUT_VARIES = {"tags": ["nbval-ignore-output"]}
_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def notebook_of(key: str) -> str:
    """Return the notebook of a lab as the text of its file, not executed; run from top to bottom it costs no point."""
    from nbformat import v4, writes  # noqa: PLC0415 - only who writes notebooks needs the extra

    cells = [
        ("markdown", _both(partial(_opening, labs()[key]))),
        ("code", _LEARNERS.format(key=key)),
        ("markdown", _both(_prediction)),
        ("code", '# lab.predict("…", "…")'),
        ("markdown", _both(_tools)),
        ("code", _YOURS.format(yours=" ".join(_in_each(lambda: say("Your lines go here."))))),
        ("code", "lab.check()"),
    ]
    code = partial(v4.new_code_cell, metadata=_OUTPUT_VARIES)
    make: dict[str, Callable[..., object]] = {"markdown": v4.new_markdown_cell, "code": code}
    made = [make[kind](source, id=f"cell-{number}") for number, (kind, source) in enumerate(cells)]
    notebook = v4.new_notebook(cells=made, metadata=_METADATA)  # type: ignore[no-untyped-call]
    return str(writes(notebook)) + "\n"  # type: ignore[no-untyped-call]


def write_notebooks(folder: Path) -> tuple[Path, ...]:
    """Write the notebooks of all labs into a folder, numbered in teaching order.

    Raises `WorkFailed` where one cannot be written.
    """
    written = {folder / name: notebook_of(key) for name, key in names().items()}
    for path, notebook in written.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, notebook)
        except OSError as error:
            raise unwritable_error(path, error) from error
    return tuple(written)


def names() -> dict[str, str]:
    """Return the labs by the names of their notebooks."""
    return {f"{number:02}-{key}.ipynb": key for number, key in enumerate(labs(), 1)}


def _opening(definition: Definition) -> str:
    text = definition.text()
    parts = [
        f"# {text.title}",
        opening(text),
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

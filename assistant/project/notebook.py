"""What the code cells of a notebook import; commands that it runs in a shell or by a magic are no code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from assistant.i18n import _
from assistant.project.code import modules_beside
from assistant.project.gathering import Gathering
from assistant.project.source import Source, refused, rows, table

_PYTHON_CELL = re.compile(r"%%(?:capture|time|timeit|prun)\b")
# !pip install x, %conda install x, and in a cell for a shell: pip install x
_INSTALLS = re.compile(r"(?m)^[ \t]*(?:[!%]|(?:uv|pip3?|conda|mamba)[ \t]).*\binstall\b")


def take_notebook(text: str, source: Source, gathering: Gathering) -> None:
    """Add the imports of a notebook's cells; raise `BadInput` for a broken one."""
    cells, own = list(_code_cells(text, source)), modules_beside(source.folder)
    for number, cell in enumerate(cells, 1):
        gathering.code.add(_python(cell), f"{source.file}[{number}]", own)
    if any(map(_INSTALLS.search, cells)):
        gathering.note(
            _(
                "{file} also installs packages by commands, which are not read; name the packages yourself.",
                file=source.file,
                option="--pin",
            )
        )


# {"cells": [{"cell_type": "code", "source": ["!pip install jiwer\n", "import torch"], …}], "nbformat": 4, …}
def _code_cells(text: str, source: Source) -> Iterator[str]:
    try:
        whole = table(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise refused(source.name, _("it is not a notebook, or it is damaged")) from error
    # Up to version 3 of the format the cells stood in sheets, and a cell's text was its "input".
    sheets = [whole, *map(table, rows(whole.get("worksheets")))]
    cells = [table(cell) for sheet in sheets for cell in rows(sheet.get("cells"))]
    if not cells and "cells" not in whole and "worksheets" not in whole:
        raise refused(source.name, _("it is not a notebook, or it is damaged"))
    for cell in cells:
        if cell.get("cell_type") == "code":
            lines = cell.get("source", cell.get("input", ""))
            yield "".join(map(str, lines)) if isinstance(lines, list) else str(lines)


def _python(text: str) -> str:
    """Return the Python of a cell, each command and magic replaced by `pass`; "" for a cell of another language."""
    first = text.lstrip().partition("\n")[0]
    if first.startswith("%%") and not _PYTHON_CELL.match(first):
        return ""
    lines = text.replace("\\\n", " ").splitlines()
    return "\n".join(_indent(line) + "pass" if _is_magic(line.strip()) else line for line in lines)


def _is_magic(words: str) -> bool:
    """Return whether a line is IPython's own: a command, a magic, or a question such as "torch.nn?"."""
    return words.startswith(("!", "%", "?")) or (words.endswith("?") and not words.startswith("#"))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]

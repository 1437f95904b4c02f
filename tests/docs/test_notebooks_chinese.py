"""Every notebook speaks both languages: no text, and no sentence that a cell prints, is in English only."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
CHINESE = re.compile(r"[\u4e00-\u9fff]")
FOR_BOTH = re.compile(r"^```.*?^```|^> .*?$", re.MULTILINE | re.DOTALL)  # blocks of code, messages that are quoted


def cells(path: Path, kind: str) -> list[str]:
    """List the cells of one kind."""
    notebook = json.loads(path.read_text("utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


def sentences(code: str) -> Iterator[str]:
    """Yield what a cell prints in words of its own: the sentence of each call of `print`, values left out."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
            words = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            said = " ".join(word for word in words if isinstance(word, str))
            if re.search(r"[a-z]{2,} [a-z]{2,}", said):
                yield said


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_every_cell_of_a_notebook_is_in_both_languages(path: Path) -> None:
    """A cell of text, and each sentence that a cell of code prints, stands in Chinese beside the English."""
    for text in cells(path, "markdown"):
        assert CHINESE.search(text), text
    for code in cells(path, "code"):
        for said in sentences(code):
            assert CHINESE.search(said), said


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_what_is_typed_is_named_in_both_languages(path: Path) -> None:
    """What a cell names as code it names twice or four times, once for each language; words to replace may differ."""
    for text in cells(path, "markdown"):
        named = Counter(re.findall(r"`[^`]+`", FOR_BOTH.sub("", text)))
        assert [span for span, times in named.items() if times % 2 and span not in {"`> FILE`", "`> 文件`"}] == [], text

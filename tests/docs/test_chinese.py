"""The documentation in Chinese: every page's sentences are translated, and what is typed is the same in both."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from babel.messages import Catalog
from babel.messages.pofile import read_po

from assistant.i18n import FOLDER

ROOT = Path(__file__).parents[2]
GENERATED = sorted((ROOT / "docs").glob("written_*.py"))
SENTENCES = ROOT / "docs" / "locale" / "zh_CN" / "LC_MESSAGES"
CODE = re.compile(r"`[^`]+`|\]\([^)]+\)")


def read(path: Path) -> Catalog:
    """Read a file of sentences."""
    with path.open("rb") as file:
        return read_po(file)


def test_what_is_typed_is_the_same_in_both_languages() -> None:
    """Code and the places of links are no words: each translation holds them as the English sentence does."""
    for path in SENTENCES.rglob("*.po"):
        for one in read(path):
            if one.id and one.string:
                assert sorted(CODE.findall(one.string)) == sorted(CODE.findall(one.id)), f"{path.stem}: {one.id}"


def test_the_words_of_the_generated_pages_are_translated() -> None:
    """Each sentence that the generated pages say has its Chinese, those inside of an f-string too."""
    known = {one.id for one in read(FOLDER / "zh_CN" / "LC_MESSAGES" / "assistant.po") if one.string}
    nodes = (node for path in GENERATED for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    calls = (node for node in nodes if isinstance(node, ast.Call))
    said = [call.args[0] for call in calls if ast.unparse(call.func) in {"say", "_"}]
    assert len(said) > 40
    assert {one.value for one in said if isinstance(one, ast.Constant)} <= known

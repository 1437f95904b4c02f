"""The documentation in Chinese: every page's sentences are translated, and what is typed is the same in both."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages import Catalog
from babel.messages.pofile import read_po

from assistant.i18n import FOLDER

ROOT = Path(__file__).parents[2]
GENERATED = sorted((ROOT / "docs").glob("written_*.py"))
SENTENCES = ROOT / "docs" / "locale" / "zh_CN" / "LC_MESSAGES"
IN_ENGLISH = {"changelog"}  # its page says in Chinese that the entries, written for those who read the code, stay so
CODE = re.compile(r"`[^`]+`|\]\([^)]+\)")


def sphinx(*arguments: str) -> None:
    """Build the documentation; a warning is a failure."""
    command = [sys.executable, "-W", "ignore", "-m", "sphinx", "-W", "--keep-going", "-q", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Catalog]:
    """Extract the sentences of the hand-written pages, by page."""
    folder = tmp_path_factory.mktemp("sentences")
    sphinx("-b", "gettext", str(ROOT / "docs"), str(folder))
    found = {path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.pot")}
    return {name: read(path) for name, path in found.items() if not name.startswith("reference/written/")}


def read(path: Path) -> Catalog:
    """Read a file of sentences."""
    with path.open("rb") as file:
        return read_po(file)


@pytest.mark.process
def test_every_sentence_of_the_pages_is_translated(pages: dict[str, Catalog]) -> None:
    """What stands in a page stands in its file of sentences, with Chinese beside it, and nothing else does."""
    wanted = pages.keys() - IN_ENGLISH
    assert len(wanted) > 10
    for name in wanted:
        known = read(SENTENCES / f"{name}.po")
        assert {one.id for one in known} == {one.id for one in pages[name]}, name
        assert [one.id for one in known if one.id and (not one.string or one.fuzzy)] == [], name


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

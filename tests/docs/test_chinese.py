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
GENERATED = ROOT / "docs" / "written_reference.py"
SENTENCES = ROOT / "docs" / "locale" / "zh_CN" / "LC_MESSAGES"
# The changelog is written for those who read the code; its page says in Chinese that the entries stay in English.
IN_ENGLISH = {"changelog"}
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


@pytest.mark.process
def test_each_page_leads_to_itself_in_the_other_language(tmp_path: Path) -> None:
    """Both sites build, and the links between their languages lead to pages that are there."""
    sphinx(str(ROOT / "docs"), str(tmp_path / "site"))
    sphinx("-D", "language=zh_CN", str(ROOT / "docs"), str(tmp_path / "site" / "zh_CN"))
    sites = [path for path in (tmp_path / "site").rglob("*.html") if "_static" not in path.parts]
    assert len(sites) > 60
    for page in sites:
        line = re.search(r'<p class="languages">(.*?)</p>', page.read_text("utf-8"), re.DOTALL)
        assert line, page
        links = re.findall(r'href="([^"]+)"', line[1])
        assert links
        assert all((page.parent / link).resolve().is_file() for link in links), page
    assert "操作指南" in (tmp_path / "site" / "zh_CN" / "index.html").read_text("utf-8")
    rules = (tmp_path / "site" / "zh_CN" / "reference" / "written" / "rules.html").read_text("utf-8")
    assert "原生 Linux 上没有 DirectML" in rules
    for page in sites:
        prose = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", page.read_text("utf-8"), flags=re.DOTALL)
        prose = re.sub(r"<[^>]+>", "", prose)
        assert not re.search(r"(?<![\w–])–[a-z]|`", prose), page  # an option with a dash, and code that is none
    left = [
        f"{page.name}: {words}" for page in (tmp_path / "site" / "zh_CN").rglob("*.html") for words in english(page)
    ]
    assert left == []
    assert "保留英文" in (tmp_path / "site" / "zh_CN" / "changelog.html").read_text("utf-8")


def english(page: Path) -> list[str]:
    """List the headings and paragraphs of a Chinese page that are in English; names, code and sources are no words."""
    site = next(folder for folder in page.parents if folder.name == "zh_CN")
    if page.relative_to(site).with_suffix("").as_posix() in IN_ENGLISH:
        return []
    text = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", page.read_text("utf-8"), flags=re.DOTALL)
    blocks = re.findall(r"<(p|li|td|th|h1|h2|h3|title)\b[^>]*>(.*?)</\1>", text, re.DOTALL)
    words = (re.sub(r"<[^>]+>", "", block).strip() for _name, block in blocks)
    said = (one for one in words if not re.search(r"\(\d{4}-\d\d(-\d\d)?\)$", one))  # a source ends with its date
    return [one for one in said if re.search(r"\b[a-z]+( [a-z]+){3}\b", one) and not re.search(r"[\u4e00-\u9fff]", one)]


def test_the_words_of_the_generated_pages_are_translated() -> None:
    """Each sentence that the generated pages say has its Chinese, those inside of an f-string too."""
    known = {one.id for one in read(FOLDER / "zh_CN" / "LC_MESSAGES" / "assistant.po") if one.string}
    calls = (node for node in ast.walk(ast.parse(GENERATED.read_text("utf-8"))) if isinstance(node, ast.Call))
    said = [call.args[0] for call in calls if ast.unparse(call.func) in {"say", "_"}]
    assert len(said) > 40
    assert {one.value for one in said if isinstance(one, ast.Constant)} <= known

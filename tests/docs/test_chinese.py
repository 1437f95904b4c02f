"""The documentation in Chinese: every page's sentences are translated, and what is typed is the same in both."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages import Catalog
from babel.messages.pofile import read_po

ROOT = Path(__file__).parents[2]
SENTENCES = ROOT / "docs" / "locale" / "zh_CN" / "LC_MESSAGES"
# Names, numbers and links are for everybody: the changelog is written for those who read the code, in English.
IN_ENGLISH = {"changelog"}
TO_COME = {  # pages whose Chinese is still to be written; the list may only shrink
    "how-to/cpu", "how-to/cuda", "how-to/directml", "how-to/mps", "how-to/rocm", "how-to/xpu",
}  # fmt: skip
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
    wanted = pages.keys() - IN_ENGLISH - TO_COME
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

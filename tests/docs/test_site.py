"""The site as it is built: a page for each cause and each card, links that lead somewhere, both languages, a map.

All builds are in this file, since each writes the generated pages anew, in its own language.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET

import pytest
from babel.messages import Catalog
from babel.messages.pofile import read_po

from assistant.diagnose import load_rules

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
ADDRESS = "https://example.org/docs/"
SENTENCES = ROOT / "docs" / "locale" / "zh_CN" / "LC_MESSAGES"
WRITTEN = Path("reference", "written")
IN_ENGLISH = {"changelog"}  # its page says in Chinese that the entries, written for those who read the code, stay so
CODE = r"<(pre|code|script|style)\b.*?</\1>"


def sphinx(*arguments: str) -> None:
    """Build the documentation; a warning is a failure."""
    command = [sys.executable, "-W", "ignore", "-m", "sphinx", "-W", "--keep-going", "-q", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def site(large_folder):
    """Build both languages as the contributors' page says."""
    folder = large_folder("site")
    sphinx("-D", f"html_baseurl={ADDRESS}", str(ROOT / "docs"), str(folder))
    sphinx("-D", f"html_baseurl={ADDRESS}", "-D", "language=zh_CN", str(ROOT / "docs"), str(folder / "zh_CN"))
    return folder


def pages_of(site: Path) -> list[Path]:
    """List the pages of both languages."""
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def heading(page: Path) -> str:
    """Return the words of a page's title."""
    found = re.search(r"<h1>(.*?)(?:<a class|</h1>)", page.read_text("utf-8"), re.DOTALL)
    assert found, page
    return unescape(re.sub(r"<[^>]+>", "", found[1]))


def test_each_cause_has_a_page_under_its_own_message(site):
    """The programs' own words come first; no two pages have the same title; commands are there for each system."""
    rules = load_rules().rules
    for folder in (site, site / "zh_CN"):
        titles = {rule.key: heading(folder / WRITTEN / "causes" / f"{rule.key}.html") for rule in rules}
        assert len({*titles.values()}) == len(rules)
        assert sum(title.count(" – ") for title in titles.values()) > 0.75 * len(rules)
        begins = "RuntimeError: CUDA error: no kernel image is available for execution on the device – "
        assert titles["sm-not-in-wheel"].startswith(begins)
        pages = [path.read_text("utf-8") for path in (folder / WRITTEN / "causes").glob("*.html")]
        typed = "".join(unescape(block) for page in pages for block in re.findall(r"<pre>.*?</pre>", page, re.DOTALL))
        assert not re.search("^(?:<[^>]*>)*(?:check|检查)[:：]", typed, re.MULTILINE)
    page = unescape((site / WRITTEN / "causes" / "inference-device-unknown.html").read_text("utf-8"))
    for line in ('set "INFERENCE_DEVICE=auto"', "$env:INFERENCE_DEVICE = 'auto'", "export INFERENCE_DEVICE=auto"):
        assert line in page
    both = (site / WRITTEN / "causes" / "cuda-requested-on-mac.html").read_text("utf-8")
    assert 'href="torch-cpu-build-installed.html"' in both  # the same message
    listed = (site / "zh_CN" / WRITTEN / "rules.html").read_text("utf-8")
    assert "原生 Linux 上没有 DirectML" in listed


def test_a_card_has_a_page_with_its_commands_on_each_system(site):
    """What the planner answers for the card; a card that no build drives is told so."""
    page = site / WRITTEN / "cards" / "radeon-rx-7800.html"
    assert heading(page) == "Radeon RX 7800 XT, RX 7800M on Windows, Linux, WSL: what to install for PyTorch"
    text = unescape(page.read_text("utf-8"))
    windows, linux = text.index("Radeon RX 7800 XT on Windows"), text.index("Radeon RX 7800 XT on Linux")
    assert 'pip install "torch[device-gfx1101]==' in text[windows:linux]
    assert "/whl/rocm" in text[linux:]
    old = (site / WRITTEN / "cards" / "amd-gcn-3-4-gfx803.html").read_text("utf-8")
    assert "No ROCm build holds code for Radeon" in old
    assert 'href="cards/radeon-rx-7800.html"' in (site / WRITTEN / "cards.html").read_text("utf-8")


def test_every_link_within_the_site_leads_somewhere(site):
    """To a file, and to a place in it that is there."""
    pages = pages_of(site)
    assert len(pages) > 1000

    @cache
    def places(path: Path) -> frozenset[str]:
        return frozenset(re.findall(r'\bid="([^"]+)"', path.read_text("utf-8")))

    wrong: list[str] = []
    for page in pages:
        for link in {*re.findall(r'(?:href|src)="([^"]+)"', page.read_text("utf-8"))}:
            parts = urlsplit(unescape(link))
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            place = unquote(parts.fragment)
            if not target.is_file() or (place and target.suffix == ".html" and place not in places(target)):
                wrong.append(f"{page.relative_to(site)}: {link}")
    assert wrong == []


def test_the_map_names_every_page_in_each_language(site):
    """By its address, with the other language beside it."""
    found = ET.parse(site / "sitemap.xml").getroot()  # noqa: S314 - our own
    named = {element.text for element in found.iter() if element.tag.endswith("}loc")}
    own = {"genindex.html", "search.html"}
    assert named == {ADDRESS + page.relative_to(site).as_posix() for page in pages_of(site) if page.name not in own}
    assert all(len(list(url)) == 3 for url in found)
    page = (site / "zh_CN" / WRITTEN / "rules.html").read_text("utf-8")
    assert f'<link rel="canonical" href="{ADDRESS}zh_CN/reference/written/rules.html"' in page


def test_each_page_leads_to_itself_in_the_other_language(site):
    """Both sites build, and the links between their languages lead to pages that are there."""
    for page in pages_of(site):
        line = re.search(r'<p class="languages">(.*?)</p>', page.read_text("utf-8"), re.DOTALL)
        assert line, page
        links = re.findall(r'href="([^"]+)"', line[1])
        assert links
        assert all((page.parent / link).resolve().is_file() for link in links), page
        prose = re.sub(CODE.replace("code|", "code|title|"), "", page.read_text("utf-8"), flags=re.DOTALL)
        prose = re.sub(r"<[^>]+>", "", prose)
        assert not re.search(r"(?<![\w–])–[a-z]|`", prose), page  # an option with a dash, and code that is none


def test_the_chinese_pages_are_in_chinese(site):
    """Each heading and paragraph, those of the generated pages too."""
    chinese = site / "zh_CN"
    assert [f"{page.name}: {words}" for page in chinese.rglob("*.html") for words in english(page)] == []
    assert "操作指南" in (chinese / "index.html").read_text("utf-8")
    assert "保留英文" in (chinese / "changelog.html").read_text("utf-8")


def english(page: Path) -> Iterable[str]:
    """List the headings and paragraphs of a Chinese page that are in English; names, code and sources are no words."""
    if page.stem in IN_ENGLISH:
        return []
    text = re.sub(CODE, "", page.read_text("utf-8"), flags=re.DOTALL)
    blocks = re.findall(r"<(p|li|td|th|h1|h2|h3|title)\b[^>]*>(.*?)</\1>", text, re.DOTALL)
    words = (re.sub(r"<[^>]+>", "", block).strip() for _name, block in blocks)
    said = (one for one in words if not re.search(r"\(\d{4}-\d\d(-\d\d)?\)$", one))  # a source ends with its date
    return [one for one in said if re.search(r"\b[a-z]+( [a-z]+){3}\b", one) and not re.search(r"[\u4e00-\u9fff]", one)]


def test_every_sentence_of_the_pages_is_translated(tmp_path):
    """What stands in a page stands in its file of sentences, with Chinese beside it, and nothing else does."""
    sphinx("-b", "gettext", str(ROOT / "docs"), str(tmp_path))
    found = {path.relative_to(tmp_path).with_suffix("").as_posix(): path for path in tmp_path.rglob("*.pot")}
    wanted = {name for name in found if not name.startswith("reference/written/")} - IN_ENGLISH
    assert len(wanted) > 10
    for name in wanted:
        known = sentences(SENTENCES / f"{name}.po")
        assert {one.id for one in known} == {one.id for one in sentences(found[name])}, name
        assert [one.id for one in known if one.id and (not one.string or one.fuzzy)] == [], name


def sentences(path: Path) -> Catalog:
    """Read a file of sentences."""
    with path.open("rb") as file:
        return read_po(file)

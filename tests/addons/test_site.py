"""The site as it is built: without a warning, complete, and with links that lead somewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from assistant.catalog.identity import CardRow
from assistant.catalog.tables import load_table
from assistant.diagnose import load_rules

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
SPHINX = [sys.executable, "-W", "ignore", "-m", "sphinx", "-q"]


@pytest.fixture(scope="module")
def site(large_folder):
    """Build the site as the contributors' page says; a warning is a failure."""
    folder = large_folder("site")
    command = [*SPHINX, "-W", "--keep-going", str(ROOT / "docs"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@cache
def text_of(page: Path) -> str:
    """Read a page."""
    return page.read_text("utf-8")


def words_of(page: Path) -> str:
    """Return what a page shows."""
    return unescape(re.sub(r"<[^>]+>", "", text_of(page)))


@pytest.mark.process
def test_each_cause_is_found_by_its_key_and_its_message(site: Path) -> None:
    """Each rule has a section on one of the pages of causes, and most have a message that a program prints."""
    pages = [text_of(page) for page in (site / "reference" / "causes").glob("*.html")]
    rules = load_rules().rules
    assert [rule.key for rule in rules if sum(f'id="{rule.key}"' in page for page in pages) != 1] == []
    assert sum(page.count("Programs print, for example:") for page in pages) > 0.75 * len(rules)
    page = words_of(site / "reference" / "causes" / "cuda.html")
    message = page.index("RuntimeError: CUDA error: no kernel image is available for execution on the device")
    assert "This build has no code for the GPU" in page[message:]


@pytest.mark.process
def test_each_card_is_listed(site: Path) -> None:
    """A card is found by its name, beside what it gets."""
    for vendor in ("nvidia", "amd", "intel"):
        page = words_of(site / "reference" / "cards" / f"{vendor}.html")
        rows = load_table(f"gpus_{vendor}.cards", CardRow).rows
        assert [name for row in rows if not row.generic for name in row.names if name not in page] == []


@pytest.mark.process
def test_what_is_printed_is_in_the_language_of_its_page(site: Path) -> None:
    """The same line is answered in English and in Chinese."""
    assert "A container does not see the card" in words_of(site / "labs.html")
    assert "容器看不到显卡" in words_of(site / "zh_CN" / "labs.html")


@pytest.mark.process
def test_every_link_within_the_site_leads_somewhere(site: Path) -> None:
    """To a file, and to a place in it that is there."""
    assert list(broken(site)) == []


def broken(site: Path) -> Iterator[str]:
    """Yield the links whose file or place is missing."""
    for page in (path for path in site.rglob("*.html") if "_static" not in path.parts):
        for link in {*re.findall(r'(?:href|src)="([^"]+)"', text_of(page))}:
            parts = urlsplit(unescape(link))
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            place = unquote(parts.fragment)
            if not target.is_file() or (place and target.suffix == ".html" and f'id="{place}"' not in text_of(target)):
                yield f"{page.relative_to(site)}: {link}"


@pytest.mark.heavy
def test_no_server_says_that_a_page_is_gone(tmp_path: Path) -> None:
    """Every external address of the documentation is asked; where none can be, that is said, and nothing is claimed."""
    command = [*SPHINX, "-b", "linkcheck", str(ROOT / "docs"), str(tmp_path)]
    subprocess.run(command, capture_output=True, check=False)
    asked = [json.loads(line) for line in (tmp_path / "output.json").read_text("utf-8").splitlines()]
    checked = [link for link in asked if link["uri"].startswith("http") and link["status"] != "unchecked"]
    assert len(checked) > 100
    gone = [f"{link['uri']}: {link['info']}" for link in checked if re.match(r"(404|410) ", link["info"])]
    assert not gone, "\n".join(gone)
    answered = [link for link in checked if link["status"] != "broken" or re.match(r"\d{3} ", link["info"])]
    if not answered:
        pytest.xfail(f"There is no network: none of {len(checked)} addresses could be asked.")

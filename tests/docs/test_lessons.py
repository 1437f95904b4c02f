"""The lessons: their labs exist, what Python prints in them it prints, and both languages show the same code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tables import each

from assistant.model.report import Environment

DOCS = Path(__file__).parents[2] / "docs"
LESSONS = sorted((DOCS / "lessons").glob("*.md"))
BOTH = sorted(path for path in (DOCS / "zh_CN").rglob("*.md") if path.stem not in {"index", "glossary"})
BLOCK = re.compile(r"^(`{3,})(\{?[\w-]+\}?.*)\n((?:(?!^\1).*\n)*)^\1$", re.MULTILINE)


@pytest.mark.torch
def test_what_python_prints_in_the_lessons_it_prints(cpu_environment: Environment, tmp_path: Path) -> None:
    """Each line behind `>>>` is run with torch, and answers as the page has it."""
    asked = 0
    pages = [tmp_path / f"{lesson.stem}.txt" for lesson in LESSONS]
    for lesson, page in zip(LESSONS, pages, strict=True):
        blocks = re.findall(r"^```pycon\n(.*?)^```", lesson.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        asked += len(blocks)
        page.write_text("\n".join(blocks), "utf-8")
    command = [cpu_environment.python, "-W", "ignore", "-m", "doctest", *map(str, pages)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert asked > 5


@each("page", BOTH, ids=lambda path: path.stem)
def test_a_page_in_chinese_shows_the_code_of_the_english_one(page: Path) -> None:
    """Whoever changes a lesson changes it in both languages: what is typed and printed is the same."""
    english = DOCS / page.relative_to(DOCS / "zh_CN")
    assert code_of(page) == code_of(english)


def code_of(page: Path) -> list[tuple[str, str]]:
    """List the blocks of code of a page, but for the texts of solutions."""
    text = page.read_text("utf-8").replace("../../lessons/", "")
    found = []
    for _fence, kind, body in BLOCK.findall(text):
        found += [(kind, "")] if kind == "{solution}" else [(kind, body)]
        found += [one[1:] for one in BLOCK.findall(body)] if kind == "{solution}" else []
    return found

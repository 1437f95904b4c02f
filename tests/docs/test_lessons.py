"""The lessons: each has its parts, its labs exist, and what Python prints in them is what Python prints."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from assistant.labs import labs as all_labs
from assistant.model.report import Environment

FOLDER = Path(__file__).parents[2] / "docs" / "lessons"
TABLE = r"^\| \[([^\]]+)\]\((\w+)\.md\) \| (\d+) minutes \| (\d+) minutes \| (.+) \|$"
LESSONS = re.findall(TABLE, (FOLDER / "index.md").read_text("utf-8"), re.MULTILINE)
PARTS = ["Objectives", "You need", "Exercises", "Key points", "Questions that learners ask"]
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson[1])


@each_lesson
def test_a_lesson_has_its_parts(lesson: tuple[str, ...]) -> None:
    """Title and minutes are those of the list; two to four exercises each hold a folded solution."""
    title, name, teaching, exercises, _labs = lesson
    text = (FOLDER / f"{name}.md").read_text("utf-8")
    assert text.startswith(f"# {title}\n\nTeaching: {teaching} minutes. Exercises: {exercises} minutes.\n")
    assert [part for part in re.findall(r"^## (.+)$", text, re.MULTILINE) if part in PARTS] == PARTS
    asked = re.split(r"^### Exercise \d.*$", text.partition("## Exercises")[2], flags=re.MULTILINE)[1:]
    assert 2 <= len(asked) <= 4
    assert all(exercise.count("{solution}") == 1 for exercise in asked)


@each_lesson
def test_a_lesson_names_its_labs(lesson: tuple[str, ...]) -> None:
    """The labs in the list are labs that there are, and the lesson's exercises play them."""
    _title, name, *_minutes, labs = lesson
    named = re.findall(r"`([\w-]+)`", labs)
    text = (FOLDER / f"{name}.md").read_text("utf-8").partition("## Exercises")[2]
    assert named
    assert set(named) <= all_labs().keys()
    assert all(f"lab `{lab}`" in text for lab in named)


def test_all_five_lessons_are_listed() -> None:
    """The list leads to five lessons, and to no file that is missing."""
    assert len(LESSONS) == 5
    assert all((FOLDER / f"{name}.md").is_file() for _title, name, *_rest in LESSONS)


@pytest.mark.torch
def test_what_python_prints_in_the_lessons_it_prints(cpu_environment: Environment, tmp_path: Path) -> None:
    """Each line behind `>>>` is run with torch, and answers as the page has it."""
    asked = 0
    for _title, name, *_rest in LESSONS:
        blocks = re.findall(
            r"^```pycon\n(.*?)^```", (FOLDER / f"{name}.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
        )
        asked += len(blocks)
        page = tmp_path / f"{name}.txt"
        page.write_text("\n".join(blocks), "utf-8")
        command = [cpu_environment.python, "-W", "ignore", "-m", "doctest", str(page)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert asked > 5

"""A lab as a learner plays it, by the command and by the notebook's page, and what it leaves for a teacher."""

from __future__ import annotations

import csv
import json
import os
import shlex
import subprocess
import time

import forked
import pytest
from refused import refused
from terminals import can_be_read_when_narrow

from assistant.i18n import in_language
from assistant.model.errors import BadInput
from assistant_addons.labs import workspace
from assistant_addons.labs.definition import labs
from assistant_addons.labs.page import Labs
from assistant_addons.labs.play import Entry, Kind, Play, result_of
from assistant_addons.labs.table import as_page, read_results

pytestmark = pytest.mark.process
MENDED = '    group_add: ["992"]\n'


@pytest.fixture
def play(tmp_path):
    """Start the lab that is made fastest."""
    play = Play("render-group", tmp_path / "labs-work" / "render-group", learner="ann lee")
    play.start()
    return play


def mend(play):
    """Give the container the host's group."""
    with (play.space.folder / "compose.yaml").open("a") as file:
        file.write(MENDED)


def test_points_follow_from_all_that_was_done(play):
    """Looking is free, as are the first check that fails and one that finds the same; starting over forgets nothing."""
    assert play.name("not-passed-in", "Permission denied") == "Your evidence matters, but it speaks for another cause."
    assert play.name("group-missing", "uid=1000").startswith("That may be it, but")
    assert play.name("group-missing", "the device has group 992").startswith("That is the cause")
    assert [play.hint()[:11] for _ in range(4)] == ["Hint 1 of 3", "Hint 2 of 3", "Hint 3 of 3", "Hint 3 of 3"]
    fault, result = play.check()
    assert "still fails" in fault
    assert (result.solved, result.points, result.misses) == (False, 0, 0)
    with in_language("zh_CN"):
        assert play.check()[1].misses == 0
    (play.space.folder / "compose.yaml").write_text("services: {train: 3}")
    assert play.check()[1].misses == 1
    play.start()
    mend(play)
    fault, result = play.check()
    assert (fault, result.points, result.hints, result.guessed, result.learner) == ("", 2, 3, True, "ann lee")
    assert json.loads(play.result_path.read_text())["points"] == 2
    assert play.result_path.name == "render-group-ann-lee.lab.json"


def test_who_has_the_right_cause_loses_nothing_for_its_evidence():
    """A better proof than ours is at worst not understood; only another cause, or none, costs a point."""
    definition = labs()["cpu-build"]
    for first, points in (("later-install", 10), ("card-too-old", 9), ("", 9)):
        named = [Entry(time=1, kind=Kind.CAUSE, content=first)] if first else []
        entries = [Entry(time=0, kind=Kind.START), *named, Entry(time=120, kind=Kind.CHECK)]
        result = result_of("cpu-build", definition, "", entries)
        assert (result.points, result.minutes, result.solved) == (points, 2, True)


def test_a_slip_is_one_sentence_with_the_next_step(play, tmp_path):
    """No cause of that name, no lab there, a folder of something else, a file that is gone."""
    with pytest.raises(BadInput, match="is not among this lab's causes") as found:
        play.name("bad-luck", "")
    assert ", ".join(play.causes) in str(found.value.hint)
    (tmp_path / "mine.txt").write_text("mine")
    for key, folder, sentence in (
        ("cpu-build", tmp_path / "nowhere", "has not been started"),
        ("render-group", tmp_path, "something other than a lab"),
    ):
        wrong = Play(key, folder)
        with pytest.raises(BadInput, match=sentence):
            wrong.start() if folder.exists() else wrong.check()
    assert (tmp_path / "mine.txt").read_text() == "mine"
    (play.space.folder / "compose.yaml").unlink()
    (play.space.folder / "compose.yaml").symlink_to(tmp_path / "mine.txt")
    assert play.check()[0] == "The file compose.yaml is missing or cannot be read."


def test_a_lab_is_played_in_a_terminal(tmp_path):
    """What the command prints can be typed: it leads into the folder, where all else needs no key."""
    home = forked.at_home(tmp_path)
    begun = time.monotonic()
    told = forked.run("labs", "start", "render-group", "--learner", "ann", cwd=tmp_path, env=home)
    assert time.monotonic() - begun < 30  # 2 to 4 s
    lines = told.stdout.splitlines()
    into = lines[lines.index("In a terminal:") + 1].strip()
    assert into == f"cd {shlex.quote(str(tmp_path / 'labs-work' / 'render-group'))} && . ./activate"
    script = f"""{into}
python container.py; echo $?
assistant labs cause --is group-missing --because 'Permission denied'
printf '{MENDED.replace(chr(10), "")}\\n' >> compose.yaml
assistant labs check
"""
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, **home}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "read-write: Permission denied" in done.stdout
    assert "That is the cause" in done.stdout
    assert "Fixed, 10 points." in done.stdout
    assert f"Your result: {tmp_path / 'labs-work' / 'render-group-ann.lab.json'}" in done.stdout
    refused(forked.run("labs", "check", cwd=tmp_path, env=home), 2, "Which lab?")


def test_a_lab_is_played_by_buttons(tmp_path, monkeypatch):
    """One language at a time; the progress counts, an error is a sentence, and the folder is shown."""
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as opening:
        opening.setattr(workspace, "program_of", None)  # what a lab needs is not loaded by the page
        page = Labs()
    page.chosen.value = "render-group"
    page.check.click()
    assert "has not been started" in page.status.value
    page.start.click()
    assert page.files.path == str(tmp_path / "labs-work" / "render-group")
    assert "Permission denied" in page.shown.value
    page.cause.value = "group-missing"
    page.evidence.value = next(line for line in page.evidence.options if "Permission denied" in line)
    page.answer.click()
    assert "That is the cause" in page.status.value
    page.language.value = "zh_CN"
    try:
        assert (page.chosen.value, page.check.description) == ("render-group", "检查")
        assert "容器看不到显卡" in page.task.value
    finally:
        page.language.value = "en"
    mend(page.play)
    page.check.click()
    assert "Fixed, 10 points." in page.status.value
    assert page.progress.value == "1 of 12 labs fixed, 10 of 120 points"
    page.next.click()
    assert page.play.space.key == page.chosen.value == next(iter(labs()))


def test_learners_find_no_answers():
    """What is listed and shown before a lab is solved holds none."""
    listed = forked.run("labs", "list", "--json").stdout
    for definition in labs().values():
        for words in (*definition.hints, definition.explanation, definition.remember):
            assert json.dumps(words.en)[1:-1] not in listed


@pytest.mark.full
@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_the_list_can_be_read_in_a_narrow_terminal(language, tmp_path):
    """No word of a title is broken."""
    can_be_read_when_narrow(("labs", "list"), language, tmp_path)


def test_a_class_is_one_table_and_one_page(tmp_path):
    """Thirty results within five seconds; a bad file costs nobody else a row, and no name is a formula."""
    for number in range(30):
        name = "=ann" if not number else f"learner {number}"
        entries = [Entry(time=0, kind=Kind.START, content=name), Entry(time=60.0 * number, kind=Kind.CHECK)]
        key = list(labs())[number % 3]
        result = result_of(key, labs()[key], "" if number == 1 else name, entries)
        path = tmp_path / f"from {number}" / f"{key}-{number}.lab.json"
        path.parent.mkdir()
        path.write_text(json.dumps({at: getattr(result, at) for at in result.__struct_fields__}))
    (tmp_path / "bad.lab.json").write_text("{")
    (tmp_path / "moon.lab.json").write_text('{"lab": "moon"}')
    begun = time.monotonic()
    done = forked.run("labs", "table", tmp_path)
    assert time.monotonic() - begun < 5
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "bad.lab.json cannot be read: it is empty or truncated.",
        "moon.lab.json is not the result of a lab.",
    ]
    rows = list(csv.DictReader((tmp_path / "labs.csv").read_text("utf-8").splitlines()))
    assert len(rows) == 32
    assert {"'=ann", "from 1", "learner 29"} <= {row["learner"] for row in rows}
    assert [row["points"] for row in rows if row["remarks"] == ""] == ["9"] * 30
    page = (tmp_path / "labs.html").read_text("utf-8")
    assert page.count("<tr>") == 30 + 1 + 2 + 1
    with in_language("zh_CN"):
        assert "得分" in as_page(read_results(tmp_path))
    refused(forked.run("labs", "table", tmp_path / "from 1" / "nowhere"), 2, "There is no result of a lab")

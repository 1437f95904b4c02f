"""Grades follow from the journals in learners' notebooks, of which nothing runs."""

from __future__ import annotations

import json

import forked
import nbformat
import pytest
from refused import refused
from terminals import can_be_read_when_narrow

from assistant.model.errors import BadInput
from assistant_addons.labs import Lab
from assistant_addons.labs.definition import labs
from assistant_addons.labs.journal import MIME, grade

pytestmark = pytest.mark.process
MENDS = "pip install --no-index --find-links wheels torchvision==0.27.0"
EVIDENCE = ("companion-of-other-release", "torch==2.13.0")


def entry(kind, content="", text="", time=0.0):
    """Make one line of a journal."""
    return {"time": time, "kind": kind, "content": content, "text": text}


def honest(*deeds, learner="ann"):
    """Make a journal of a start, a proved cause, deeds, and a check that found everything right."""
    lines = [entry("start", learner), entry("predict", *EVIDENCE), *deeds, entry("check")]
    return [{**line, "time": 60.0 * number} for number, line in enumerate(lines)]


def notebook(path, *told, cell="lab.check()"):
    """Write a learner's notebook whose checks left these."""
    cells = [
        nbformat.v4.new_code_cell(cell, outputs=[nbformat.v4.new_output("display_data", {MIME: one})]) for one in told
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def submission(journal, lab="companion-pair", learner="ann", **more):
    """Make what a check leaves in a notebook."""
    return {"lab": lab, "learner": learner, "journal": journal, **more}


def rows(found):
    """Give grades by learner."""
    return {row.learner: row for row in found}


def test_points_follow_from_the_journal_within_bounds(tmp_path):
    """The last check of each lab counts, whatever name and clock the learner worked under; no number can be claimed."""
    run = entry("run", MENDS)
    hints = [entry("hint", "-50")] * 9
    notebook(tmp_path / "ann.ipynb", submission(honest(run)[:-1]), submission(honest(run)))
    notebook(tmp_path / "bob.ipynb", submission(honest(*hints, run), learner="bob"))
    notebook(tmp_path / "eve.ipynb", submission(honest(run), hints=-50), submission(honest(run), lab="moon"))
    notebook(tmp_path / "joe.ipynb", submission(honest(), learner="Joe Lee"))  # who mended it in a terminal
    set_back = [{**line, "time": -line["time"]} for line in honest(run)]
    notebook(tmp_path / "kim.ipynb", submission(set_back, learner="kim"))
    (tmp_path / "zoe.ipynb").write_text("{")
    found = rows(grade(tmp_path))
    assert (found["ann"].points, found["ann"].minutes, found["ann"].solved) == (10, 3, True)
    assert (found["bob"].points, found["bob"].hints) == (4, 3)
    assert found["eve"].fault == "It contains no check of a lab."
    assert {(found[name].solved, found[name].points) for name in ("joe", "kim")} == {(True, 10)}
    assert str(found["zoe"].fault).startswith("It is not a notebook")


def test_an_honest_learner_gets_the_points_that_the_notebook_showed(tmp_path):
    """Handed in and graded, whatever the folder was named; a reset is not forgotten, and no cell runs."""
    lab = Lab("companion-pair", tmp_path / "somewhere" / "a lab", learner="ann")
    lab.start()
    lab.predict(*EVIDENCE)
    lab.hint()
    lab.reset()
    lab.run(f"pip install --no-index --find-links '{lab.scene.folder}/wheels' torchvision==0.27.0")
    told = lab.check()
    assert told.text.startswith("**Fixed: 8 of 10 points.**")
    handed_in = tmp_path / "class" / "ann" / "lab.ipynb"
    notebook(handed_in, told._repr_mimebundle_()[MIME], cell=f"open({str(tmp_path / 'ran')!r}, 'w')")
    (row,) = grade(tmp_path / "class")
    assert (row.solved, row.points) == (True, 8)
    assert not (tmp_path / "ran").exists()


def test_what_an_editor_changed_counts_as_a_deed(tmp_path):
    """Looking again costs nothing, but a check that fails after another change of the lab's file does."""
    lab = Lab("render-group", tmp_path / "lab")
    lab.start()
    misses = []
    for text in ("{}", "{}", "[]"):
        (lab.scene.folder / "compose.yaml").write_text(text)
        lab.check()
        misses.append(lab.score.misses)
    assert misses == [0, 0, 1]


def test_the_command_prints_tables(tmp_path):
    """A row for each learner and lab, with all columns; that journals can be changed is said."""
    notebook(tmp_path / "=ann" / "x.ipynb", submission(honest(entry("run", MENDS)), learner="=ann"))
    done = forked.run("labs", "check", tmp_path, "--csv")
    assert (done.returncode, "which their owners can change" in done.stderr) == (0, True)
    assert done.stdout.splitlines()[0] == "learner,lab,points,solved,hints,misses,aids,minutes,remarks,notebook"
    assert done.stdout.splitlines()[1].startswith("'=ann,companion-pair,10,True,0,0,0,3,")
    (row,) = json.loads(forked.run("labs", "check", tmp_path, "--json").stdout)
    assert {"learner", "lab", "points", "solved", "hints", "misses", "minutes", "fault"} <= row.keys()
    refused(forked.run("labs", "check", tmp_path / "nowhere"), 2, "is not a folder")


def test_learners_find_no_answers():
    """Neither the list, nor a lab's methods, nor what is shown before it is solved holds them."""
    listed = forked.run("labs", "list", "--json").stdout
    for definition in labs().values():
        text = definition.english
        assert not any(json.dumps(hint)[1:-1] in listed for hint in text.hints)
        assert json.dumps(text.explanation)[1:-1] not in listed
    assert not hasattr(Lab, "solve")


def test_an_unknown_learner_folder_is_one_sentence(tmp_path):
    """A folder without notebooks holds no grade, and one that is not there is refused."""
    assert grade(tmp_path) == []
    with pytest.raises(BadInput, match="is not a folder"):
        grade(tmp_path / "nowhere")


@pytest.mark.full
@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_the_list_can_be_read_in_a_narrow_terminal(language, tmp_path):
    """No word of a title is broken."""
    can_be_read_when_narrow(("labs", "list"), language, tmp_path)

"""Grades rest on deeds that are done again: nothing that a learner's notebook says is believed, or run."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import forked
import nbformat
import pytest
from refused import refused

from assistant.labs import Lab, Rules, grade, labs, new_lab, prove
from assistant.labs.answer import MIME
from assistant.labs.replay import Confined
from assistant.model.errors import BadInput

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is on Linux only; elsewhere --run is refused"),
    pytest.mark.usefixtures("sandbox"),
]
GENUINE = "pip install --no-cache-dir --index-url upstream/simple lab-demo"
EVIDENCE = ("other-file", "Expected sha256")


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


def submission(journal, lab="wrong-hash", learner="ann", **more):
    """Make what a check leaves in a notebook."""
    return {"lab": lab, "learner": learner, "journal": journal, **more}


def rows(found):
    """Give grades by learner."""
    return {row.learner: row for row in found}


def test_without_replay_points_are_claims_within_bounds(tmp_path):
    """The last check of each lab counts; no number can be claimed; what no honest journal shows is marked."""
    run = entry("run", GENUINE)
    hints = [entry("hint", "-50")] * 9
    notebook(tmp_path / "ann.ipynb", submission(honest(run)[:-1]), submission(honest(run)))
    notebook(tmp_path / "bob.ipynb", submission(honest(*hints, run), learner="bob"))
    notebook(tmp_path / "eve.ipynb", submission(honest(run), hints=-50), submission(honest(run), lab="moon"))
    notebook(tmp_path / "joe.ipynb", submission(honest()))
    notebook(tmp_path / "kim.ipynb", submission([*[*reversed(honest(run))][:-1], entry("check")], learner="kim"))
    (tmp_path / "zoe.ipynb").write_text("{")
    found = rows(grade(tmp_path))
    assert (found["ann"].points, found["ann"].minutes, found["ann"].proved, found["ann"].doubts) == (10, 3, False, ())
    assert (found["bob"].points, found["bob"].hints) == (4, 3)
    assert found["eve"].fault == "It contains no check of a lab."
    assert {str(one) for one in found["joe"].doubts} == {
        "A check found everything right although nothing had been done.",
        "It was played by the name ann.",
    }
    assert "Its times run backwards." in map(str, found["kim"].doubts)
    assert str(found["zoe"].fault).startswith("It is not a notebook")


SITE = "env/lib/python{}.{}/site-packages".format(*sys.version_info[:2])
SECRET = "GRADER_TOKEN"  # noqa: S105 - a name
ATTACKS = {
    "nothing done": (),
    "a value of one's own": (entry("write", f"{SITE}/lab_demo.py", "VALUE = 42\n"),),
    "a value into the installed file": (entry("run", GENUINE), entry("write", f"{SITE}/lab_demo.py", "VALUE = 42 \n")),
    "the mirror's file": (
        entry("run", "pip install mirror/simple/lab-demo/lab_demo-1.0-py3-none-any.whl"),
        entry("write", f"{SITE}/lab_demo.py", "VALUE = 42\n"),
    ),
    "a site hook": (
        entry("write", f"{SITE}/hook.pth", "import sys; sys.modules['lab_demo'] = type('m', (), {'VALUE': 42})\n"),
    ),
    "another score": (entry("write", "score.json", '{"lab": "wrong-hash", "hints": -50}'),),
    "only a start": (entry("run", GENUINE), entry("start", "ann")),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_earns_a_point(name, tmp_path):
    """What was claimed, hard-coded, hooked or written over is done again, and is seen."""
    notebook(tmp_path / "ann.ipynb", submission(honest(*ATTACKS[name])))
    (row,) = prove(tmp_path, Rules())
    assert (row.solved, row.points, row.proved) == (False, 0, True), row.fault


def test_what_is_installed_while_a_lab_is_judged_is_as_its_makers_built_it(tmp_path):
    """What pip compiles is kept elsewhere while a lab is judged; that is no change of the package."""
    way = labs()["mirror-without-files"].ways.right[0]
    name, _marker, text = way.lines[0].partition(" <<< ")
    done = honest(entry("write", name, text))
    notebook(tmp_path / "ann.ipynb", submission(done, lab="mirror-without-files"))
    (row,) = prove(tmp_path, Rules())
    assert (row.solved, row.fault) == (True, "")


def test_an_honest_learner_gets_the_points_that_the_notebook_showed(tmp_path):
    """Played, handed in and graded: both ways agree, whatever the folder was named, and a reset is not forgotten."""
    lab = Lab("wrong-hash", tmp_path / "somewhere" / "a lab", learner="ann")
    lab.start()
    lab.predict(*EVIDENCE)
    lab.hint()
    lab.reset()
    lab.run(f"pip install --no-cache-dir --index-url '{lab.scene.folder}/upstream/simple' lab-demo")
    told = lab.check()
    assert told.text.startswith("**Fixed: 8 of 10 points.**")
    handed_in = tmp_path / "class" / "ann" / "lab.ipynb"
    notebook(handed_in, told._repr_mimebundle_()[MIME], cell=f"open({str(tmp_path / 'ran')!r}, 'w')")
    (claimed,), (proved,) = grade(tmp_path / "class"), prove(tmp_path / "class", Rules())
    assert (claimed.solved, claimed.points, claimed.proved) == (True, 8, False)
    assert (proved.solved, proved.points, proved.proved, proved.doubts) == (True, 8, True, ()), proved.fault
    assert not (tmp_path / "ran").exists()


def test_what_an_editor_changed_is_handed_in_too(tmp_path):
    """A lab's own file that was changed without `write` is taken into the journal by the check."""
    lab = Lab(str(new_lab("ours", tmp_path)), tmp_path / "lab")
    lab.start()
    (lab.scene.folder / "settings.json").write_text("{}")
    journal = lab.check()._repr_mimebundle_()[MIME]["journal"]
    assert [(one["kind"], one.get("content", "")) for one in journal][1:-1] == [("write", "settings.json")]


def test_a_command_sees_no_secret_and_changes_nothing(tmp_path, monkeypatch):
    """The teacher's variables, home, files and network, and other learners, are out of a command's reach."""
    home, other = tmp_path / "home", tmp_path / "class" / "zoe.ipynb"
    home.mkdir()
    notebook(other, submission(honest(entry("run", GENUINE)), learner="zoe"))
    monkeypatch.setenv(SECRET, "SECRET")
    place, cache = (tmp_path / "thrown away").resolve(), (tmp_path / "cache").resolve()
    for folder in (place / "lab", cache):
        folder.mkdir(parents=True)
    runner = Confined(place, cache, Rules(), float("inf"))
    runner.breaking = False
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"""
import os, socket
from pathlib import Path
def refuses(work, *arguments):
    try:
        work(*arguments)
    except OSError:
        return True
told = [
    not any("SECRET" in value for value in os.environ.values()),
    not os.path.exists({str(home)!r}) and not os.path.exists({str(other)!r}),
    not os.path.exists({str(Path.home() / ".bashrc")!r}) and not os.path.exists("/etc/shadow"),
    refuses(socket.create_connection, ("127.0.0.1", {server.getsockname()[1]}), 2),
    all(refuses(Path(one, "x").touch) for one in ("/usr", "/", "/dev", {sys.prefix!r}, {str(cache)!r})),
    refuses(os.kill, {os.getpid()}, 0),
    Path("mine.txt").write_text("x") == 1,
]
print(told)
"""
        done = runner([sys.executable, "-c", code], {}, place / "lab", 60.0)
    assert done.last == str([True] * 7), done.text


def test_links_that_a_learner_leaves_lead_nowhere(tmp_path):
    """A file that is a link out of the folder is neither read nor written by the grader."""
    secret = tmp_path / "answer.json"
    secret.write_text("SECRET")
    link = f"python -c \"import os; os.symlink({str(secret)!r}, 'answer.json')\""
    journal = [entry("start", "ann"), entry("run", link), entry("write", "answer.json", "{}"), entry("check")]
    notebook(tmp_path / "class" / "ann.ipynb", submission(journal, lab="driver-too-old"))
    (row,) = prove(tmp_path / "class", Rules())
    assert not row.solved
    assert "SECRET" not in str(row.fault)
    assert secret.read_text() == "SECRET"


def test_limits_end_a_lab_and_the_next_is_graded(tmp_path):
    """One learner's endless program costs the others nothing."""
    notebook(tmp_path / "ann.ipynb", submission(honest(entry("run", 'python -c "while True: pass"'))))
    notebook(tmp_path / "bob.ipynb", submission(honest(entry("run", GENUINE), learner="bob"), learner="bob"))
    found = rows(prove(tmp_path, Rules(seconds=40.0)))
    assert (found["ann"].solved, found["bob"].solved) == (False, True), found["bob"].fault


def test_the_command_prints_tables(tmp_path):
    """A row for each learner and lab, with all columns; what was not done again is called claimed."""
    notebook(tmp_path / "=ann" / "x.ipynb", submission(honest(entry("run", GENUINE)), learner="=ann"))
    done = forked.run("labs", "check", tmp_path, "--csv")
    assert (done.returncode, "claimed, not proved" in done.stderr) == (0, True)
    assert done.stdout.splitlines()[0] == "learner,lab,points,solved,proved,hints,misses,aids,minutes,remarks,notebook"
    assert done.stdout.splitlines()[1].startswith("'=ann,wrong-hash,10,True,False,0,0,0,3,")
    (row,) = json.loads(forked.run("labs", "check", tmp_path, "--json").stdout)
    assert {"learner", "lab", "points", "solved", "proved", "hints", "misses", "minutes", "fault"} <= row.keys()
    refused(forked.run("labs", "check", tmp_path / "nowhere"), 2, "is not a folder")


def test_without_a_sandbox_it_takes_a_word(tmp_path):
    """Where bubblewrap is not found, nothing is done again unless the learners are trusted."""
    notebook(tmp_path / "ann.ipynb", submission(honest(entry("run", GENUINE))))
    command = [sys.executable, "-m", "assistant", "labs", "check", str(tmp_path), "--run"]
    without = {**os.environ, "PATH": "/nowhere"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=without)
    refused(done, 2, "nothing here can isolate them")
    trusted = subprocess.run([*command, "--i-trust-these"], capture_output=True, text=True, check=False, env=without)
    assert trusted.returncode == 0, trusted.stdout + trusted.stderr


def test_learners_find_no_answers():
    """Neither the list, nor a lab's methods, nor what is shown before it is solved holds them."""
    listed = forked.run("labs", "list", "--json").stdout
    for definition in labs().values():
        text = definition.english
        assert not any(json.dumps(hint)[1:-1] in listed for hint in text.hints)
        assert json.dumps(text.explanation)[1:-1] not in listed
    assert not hasattr(Lab, "solve")


def test_an_unknown_learner_folder_is_one_sentence(tmp_path):
    """A folder without notebooks proves nothing, and one that is not there is refused."""
    assert [*prove(tmp_path, Rules())] == []
    with pytest.raises(BadInput, match="is not a folder"):
        [*prove(tmp_path / "nowhere", Rules())]

"""Each lab is really broken, is seen as broken, takes no wrong fix for a right one, and is mended by its answer."""

from __future__ import annotations

import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import forked
import nbformat
import pytest
from refused import refused

from assistant.install import interpreter
from assistant.labs import Lab, grade, scene, texts
from assistant.labs.exercises import SCENES
from assistant.labs.lab import MIME
from assistant.model.errors import BadInput

PLAN = "assistant plan --replay linux-ubuntu2404-rtx2080ti --json {wish} > answer.json"
GUESS = "def solve(systems, sides):\n    return sides / 24\n"
KERNEL = "kernels/lab/kernel.json"
# What a learner may try first; none of these mends anything.
WRONG = {
    "directml-on-linux": lambda lab: lab.run("pip uninstall torch-directml"),
    "wrong-kernel": lambda lab: lab.write(KERNEL, lab.scene.read(KERNEL).replace('"lab"', '"work"')),
    "two-onnxruntimes": lambda lab: lab.run("pip uninstall onnxruntime"),
    "numpy-abi": lambda lab: lab.run("pip install --upgrade numpy"),
    "cpu-build": lambda lab: lab.run(PLAN.format(wish="--backend cpu")),
    "missing-solve": lambda lab: lab.write("model.py", GUESS),
    "silent-cpu": lambda lab: lab.write("model.py", GUESS),
    "onnx-overflow": lambda lab: shutil.copy(lab.scene.folder / "naive.onnx", lab.scene.folder / "fixed.onnx"),
    "wrong-hash": lambda lab: lab.run(f"pip install --no-deps '{mirrored(lab)}'"),
    "driver-too-old": lambda lab: lab.run(PLAN.format(wish="")),
}


def mirrored(lab):
    """Name the file that the mirror serves."""
    return lab.scene.folder / "mirror" / "simple" / "lab-demo" / "lab_demo-1.0-py3-none-any.whl"


@pytest.fixture
def lab(request, tmp_path, cpu_environment):
    """Give a lab in a folder of its own, beside the tests' torch."""
    return Lab(request.param, tmp_path / "a lab", torch=cpu_environment.python)


@pytest.mark.process
@pytest.mark.parametrize("lab", texts(), indirect=True)
def test_a_lab_is_broken_until_its_answer_mends_it(lab):
    """Broken at the start, still broken after a wrong fix, mended by the documented one, with the points to match."""
    assert lab.text.title in lab.start().text
    assert lab.check().text.startswith("Not fixed yet.")
    WRONG[lab.text.key](lab)
    assert lab.check().text.startswith("Not fixed yet.")
    lab.hint()
    mended = lab.solve()
    assert mended.text.startswith("**Fixed: 6 of 10 points.**"), mended.text
    assert (mended.score.hints, mended.score.misses, mended.score.solved) == (1, 2, True)


def test_every_lab_has_words_deeds_and_a_wrong_fix():
    """The data file, the scenes and these tests know the same labs."""
    assert list(texts()) == list(SCENES) == list(WRONG)
    assert all(len(text.hints) >= 2 for text in texts().values())


@pytest.mark.process
@pytest.mark.parametrize("lab", ["wrong-hash"], indirect=True)
def test_a_reset_forgets_what_was_tried(lab):
    """After a reset the lab is broken again and the score begins anew."""
    lab.start()
    lab.solve()
    lab.reset()
    assert not lab.score.solved
    assert lab.check().text.startswith("Not fixed yet.")


@pytest.mark.process
@pytest.mark.parametrize("lab", ["driver-too-old"], indirect=True)
def test_a_lab_reaches_nothing_but_its_folder(lab, tmp_path):
    """A file outside is refused, as is any program but the labs' own and a folder that holds something else."""
    lab.start()
    with pytest.raises(BadInput, match="not in the lab's folder"):
        lab.write("../elsewhere.txt", "")
    with pytest.raises(BadInput, match="is not a program"):
        lab.run("rm -rf /")
    kept = tmp_path / "mine" / "thesis.txt"
    kept.parent.mkdir()
    kept.write_text("years of work")
    with pytest.raises(BadInput, match="something other than a lab"):
        Lab("driver-too-old", tmp_path / "mine").start()
    assert kept.read_text() == "years of work"


@pytest.mark.process
@pytest.mark.parametrize("lab", ["driver-too-old"], indirect=True)
def test_what_programs_print_is_plain_in_a_notebook(lab, monkeypatch):
    """A kernel tells every program to use colours; what a lab reads and shows holds none."""
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.setenv(name, "1")
    lab.start()
    assert "\x1b" not in lab.scene.uv("help").text


@pytest.mark.process
@pytest.mark.parametrize("lab", ["driver-too-old"], indirect=True)
def test_the_assistant_reads_the_symptom(lab):
    """`diagnose` names the cause of what the lab prints."""
    lab.start()
    assert "driver" in lab.diagnose().text.lower()


def notebook(path, *told):
    """Write a learner's notebook whose checks told these scores."""
    cells = [
        nbformat.v4.new_code_cell("1 + 1", outputs=[nbformat.v4.new_output("display_data", {MIME: score})])
        for score in told
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


def test_notebooks_are_graded_by_their_last_check(tmp_path):
    """The last check of each lab counts; points follow from it and cannot be claimed; what is no notebook is told."""
    solved = {"lab": "numpy-abi", "hints": 1, "misses": 1, "solved": True}
    notebook(tmp_path / "ann.ipynb", {**solved, "solved": False}, solved)
    notebook(tmp_path / "bob.ipynb", {**solved, "points": 10}, {"lab": "no-such-lab", "solved": True})
    (tmp_path / "eve.ipynb").write_text("{")
    found = {row.notebook: row for row in grade(tmp_path)}
    assert (found["ann.ipynb"].solved, found["ann.ipynb"].points) == (True, 7)
    assert found["bob.ipynb"].fault == "It contains no check of a lab."
    assert found["eve.ipynb"].fault.startswith("It is not a notebook")


def assistant(*arguments):
    """Run the command."""
    return forked.run("labs", *arguments)


@pytest.mark.process
@pytest.mark.usefixtures("sandbox")
def test_the_command_grades_and_runs_again(tmp_path):
    """Believed as they lie, forged outputs pass; run again, they do not."""
    notebook(tmp_path / "forged.ipynb", {"lab": "numpy-abi", "solved": True})
    assert assistant("check", tmp_path).returncode == 0
    done = assistant("check", tmp_path, "--run", "--json")
    assert done.returncode == 1
    assert [row["fault"] for row in json.loads(done.stdout)] == ["It contains no check of a lab."]
    refused(assistant("check", tmp_path / "nowhere"), 2, "is not a folder")


@pytest.mark.process
def test_the_command_lists_the_labs():
    """Every lab is named with its title."""
    listed = assistant("list").stdout
    assert all(text.key in listed and text.title in listed for text in texts().values())


def test_two_labs_at_once_make_one_environment(tmp_path, monkeypatch):
    """The second waits for what the first makes, and takes it."""
    made = []

    def install(_own, target):
        made.append(target)
        time.sleep(0.3)
        python = interpreter(target)
        python.parent.mkdir(parents=True)
        python.touch()

    monkeypatch.setattr(scene, "install_torch", install)
    monkeypatch.setattr(scene, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(scene, "user_cache", lambda: tmp_path)
    monkeypatch.setattr(scene.Store, "environment", lambda _self: None)
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(scene.environment_with_torch) for _lab in range(2)]
    assert [one.result() for one in found] == [str(interpreter(tmp_path / "torch-cpu"))] * 2
    assert len(made) == 1

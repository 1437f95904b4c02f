"""The wheel alone, as a user gets it: what it holds, how small its core is, and that commands and notebooks work."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from assistant.host.extras import find_uv

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
MOST_PACKAGES, MOST_BYTES = 30, 30 * 10**6  # of an environment with the core alone
NOTEBOOKS = sorted(path.relative_to(ROOT / "notebooks").as_posix() for path in (ROOT / "notebooks").rglob("*.ipynb"))
QUICK = ("gallery.ipynb", "setup.ipynb")  # need no torch
SHIPPED = (
    "assistant",
    "assistant_addons",
    "labextension",
    "notebooks",
    "pyproject.toml",
    "torch_setup_assistant.py",
    "README.md",
    "LICENSE",
)
RUN = """
import nbclient, nbformat, sys
notebook = nbformat.read(sys.argv[1], as_version=4)
try:
    nbclient.NotebookClient(notebook, timeout=120).execute()
except nbclient.exceptions.CellExecutionError:
    pass
outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
print(*("\\n".join(output.traceback) for output in outputs if output.output_type == "error"))
"""


def without_ours(home: Path, **more: str) -> dict[str, str]:
    """Return the variables of a process that has all its state in a folder and sees nothing of the checkout."""
    names = ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL", "UV"))}
    return {**kept, **dict.fromkeys(names, str(home)), "LANGUAGE": "en", **more}


class Installed(NamedTuple):
    """An environment with the wheel, and a folder in which its commands run."""

    python: Path
    home: Path

    def run(self, *words: object, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, with all its state in the folder and nothing of the checkout in sight."""
        environment = without_ours(self.home, XDG_CACHE_HOME=str(self.home)) | more
        command = [self.python.with_name(str(words[0])), *words[1:]]
        return subprocess.run(
            [str(word) for word in command], cwd=self.home, env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="module")
def wheel(large_folder) -> Path:
    """Build the wheel from a copy that holds what it is made of, and nothing that was made since."""
    copy = large_folder("clean")
    made = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    for name in SHIPPED:
        source = ROOT / name
        shutil.copytree(source, copy / name, ignore=made) if source.is_dir() else shutil.copy(source, copy)
    done = subprocess.run([sys.executable, "-m", "uv", "build", "--wheel", "--quiet", copy], check=False)
    assert done.returncode == 0
    return next((copy / "dist").glob("*.whl"))


def installed(wheel: Path, folder: Path, extra: str = "") -> Installed:
    """Install the wheel alone into a fresh environment."""
    python = folder / "env" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    home = folder / "home"
    home.mkdir()
    for words in (
        ["venv", "--python", sys.executable, folder / "env"],
        ["pip", "install", "--python", python, f"torch-setup-assistant{extra} @ {wheel.as_uri()}"],
    ):
        subprocess.run([sys.executable, "-m", "uv", *map(str, words), "--quiet"], check=True)
    return Installed(python, home)


@pytest.fixture(scope="module")
def core(wheel, large_folder) -> Installed:
    """Install the core."""
    return installed(wheel, large_folder("core"))


@pytest.fixture(scope="module")
def lab(wheel, large_folder) -> Installed:
    """Install what the notebooks need."""
    return installed(wheel, large_folder("lab"), "[lab]")


def test_the_wheel_holds_every_notebook_and_its_types(wheel):
    """All notebooks and labs are inside, as they are in the checkout, and `py.typed` says that there are types."""
    with zipfile.ZipFile(wheel) as files:
        inside = {name.removeprefix("assistant/notebooks/") for name in files.namelist() if name.endswith(".ipynb")}
        assert set(NOTEBOOKS) <= inside
        assert files.read("assistant/notebooks/setup.ipynb") == (ROOT / "notebooks" / "setup.ipynb").read_bytes()
        assert "assistant/py.typed" in files.namelist()


def test_the_wheel_holds_the_add_ons(wheel):
    """All their modules and data are inside."""
    files = [path for path in (ROOT / "assistant_addons").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    with zipfile.ZipFile(wheel) as packed:
        inside = {name for name in packed.namelist() if name.startswith("assistant_addons/")}
    assert inside == {path.relative_to(ROOT).as_posix() for path in files}


def test_the_core_is_small(core):
    """At most thirty packages and 30 MB, without uv, which is larger than all of them."""
    packages = core.python.parents[1].rglob("*.dist-info")
    size = sum(path.lstat().st_size for path in core.python.parents[1].rglob("*") if path.suffix != ".pyc")
    assert len(list(packages)) <= MOST_PACKAGES
    assert size < MOST_BYTES


@pytest.mark.full
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, ("--version",)),
        (0, ("detect", "--json")),
        (0, ("plan", "--replay", "linux-ubuntu2404-rtx4090")),
        (0, ("plan", "--backend", "cpu")),
        (0, ("doctor",)),
        (0, ("diagnose", "failure.log")),
        (0, ("export", "--list")),
        (0, ("labs", "list")),
        (0, ("envs",)),
        (0, ("recover",)),
        (1, ("lab",)),
        (1, ("onnx", "check", "model.onnx")),
        (1, ("labs", "start", "render-group")),
    ],
)
def test_commands_work_on_the_core_or_say_what_they_lack(core, code, words):
    """Each does its work; one that needs an extra says so in a line that names where the assistant came from."""
    (core.home / "failure.log").write_text("AssertionError: Torch not compiled with CUDA enabled\n")
    done = core.run("assistant", *words)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    if code:
        assert len(done.stderr.splitlines()) == 1
        assert "torch-setup-assistant[" in done.stderr
        assert ".whl" in done.stderr
    else:
        assert done.stdout


def test_the_distribution_has_a_script_of_its_name(core):
    """`uvx torch-setup-assistant plan` finds a script of that name."""
    assert core.run("torch-setup-assistant", "--version").stdout == core.run("assistant", "--version").stdout


@pytest.mark.full
def test_what_resolves_packages_needs_a_uv(core):
    """The one that started the assistant will do, as under uvx; where there is none, the extra is named."""
    alone = core.run("assistant", "install", "--backend", "cpu", "--dry-run", PATH="")
    assert (alone.returncode, len(alone.stderr.splitlines())) == (1, 1), alone.stderr
    assert "torch-setup-assistant[uv]" in alone.stderr
    started = core.run(
        "python", "-c", "from assistant.host.extras import find_uv; print(find_uv())", PATH="", UV=find_uv()
    )
    assert started.stdout.strip() == find_uv()


@pytest.fixture(scope="module")
def uvx(wheel: Path, large_folder) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return what runs a line that begins with `uvx`, as a shell does, without anything installed."""
    home = large_folder("uvx")
    (home / "failure.log").write_text("AssertionError: Torch not compiled with CUDA enabled\n")
    path = os.pathsep.join([str(Path(find_uv()).parent), os.environ["PATH"]])
    cache = subprocess.run([find_uv(), "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    environment = without_ours(home, PATH=path, UV_PYTHON=sys.executable, UV_CACHE_DIR=cache)

    def run(line: str) -> subprocess.CompletedProcess[str]:
        words = shlex.split(line.replace("WHEEL", f"'torch-setup-assistant @ {wheel.as_uri()}'"))
        return subprocess.run(words, cwd=home, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.mark.full
def test_under_uvx_the_next_step_can_be_typed_as_it_stands(uvx):
    """Without a command there are first steps; a command that needs an extra says how uvx brings it, and that works."""
    first = uvx("uvx WHEEL")
    assert first.returncode == 0
    commands = dict(re.findall(r"^ *\d  (uvx .*?) +(setup|doctor)\b", first.stdout, re.MULTILINE))
    begin = next(start for start, word in commands.items() if word == "doctor")
    assert uvx(f"{begin} doctor --replay linux-ubuntu2404-rtx4090").returncode == 0
    refused = uvx(f"{begin} lab --folder mine --show-config")
    assert (refused.returncode, refused.stdout) == (1, "")
    opened = uvx(f"uvx{refused.stderr.splitlines()[-1].partition('type: uvx')[2]}")
    assert opened.returncode == 0, opened.stderr
    assert "setup.ipynb" in opened.stdout  # what JupyterLab would open


@pytest.mark.full
def test_lab_serves_copies_of_every_notebook(lab):
    """`assistant lab` puts them into a folder of the user's; what is served lies outside the environment."""
    shown = lab.run("assistant", "lab", "--folder", "mine", "--show-config")
    assert sorted(path.relative_to(lab.home / "mine").as_posix() for path in (lab.home / "mine").rglob("*.ipynb")) == (
        NOTEBOOKS
    )
    assert str(lab.home / "mine") in shown.stdout


@pytest.mark.full
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_what_notebooks_import_is_there(lab, name):
    """With the extra `lab` every import of every notebook resolves."""
    cells = json.loads((ROOT / "notebooks" / name).read_text("utf-8"))["cells"]
    trees = [ast.parse("".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"]
    imports = [
        ast.unparse(node) for tree in trees for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert imports[0] == "import torch_setup_assistant"
    assert lab.run("python", "-c", "\n".join(imports)).stderr == ""


@pytest.mark.full
@pytest.mark.parametrize("name", QUICK)
def test_notebooks_run_on_the_installed_wheel(lab, name):
    """Those that need no torch run to their end in the environment's own kernel."""
    folder = lab.home / "run"
    folder.mkdir(exist_ok=True)
    shutil.copy(ROOT / "notebooks" / name, folder)
    done = lab.run("python", "-c", RUN, folder / name)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


@pytest.mark.full
def test_a_file_of_the_same_name_is_named(lab):
    """A user's `assistant.py` beside a notebook, or in the command's way, is named in one sentence and not run."""
    folder = lab.home / "shadowed"
    folder.mkdir()
    (folder / "assistant.py").write_text("print('run')\n")
    shutil.copy(ROOT / "notebooks" / "setup.ipynb", folder)
    sentence = f"{folder / 'assistant.py'} hides the package `assistant` of the setup assistant: rename that file"
    in_notebook = lab.run("python", "-c", f"import os; os.chdir({str(folder)!r})\n{RUN}", folder / "setup.ipynb")
    assert in_notebook.stdout.startswith(sentence), in_notebook.stderr
    assert len(in_notebook.stdout.strip().splitlines()) == 1
    for words in (("assistant", "--version"), ("python", "-P", "-m", "torch_setup_assistant", "--version")):
        done = lab.run(*words, PYTHONPATH=str(folder))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(sentence)
        assert len(done.stderr.splitlines()) == 1

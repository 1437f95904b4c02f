"""How the project is built: layers, budgets of the rooms, what an import draws in, what is declared."""

from __future__ import annotations

import ast
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from operator import gt
from pathlib import Path

import pytest
import yaml
from sources import ADDON_MODULES, ADDONS, MODULES, ROOT, imported_by, modules_of, text_of

pytestmark = pytest.mark.process

MODULE_LINES = 800
FACE_NAMES = 15
# Lines and statements of Python by room: promises about the number of ideas. A room that shrank lowers its own, and a
# change that raises one says in its commit what could go instead.
BUDGETS = {
    "ansible": (405, 90),
    "assistant": (38305, 17540),
    "assistant_addons/agents": (525, 255),
    "assistant_addons/classroom": (1290, 580),
    "assistant/catalog": (1890, 830),
    "assistant/cli": (2635, 1185),
    "assistant/detect": (1400, 695),
    "assistant/diagnose": (4555, 2275),
    "assistant/export": (1240, 445),
    "assistant/host": (3055, 1355),
    "assistant/install": (5215, 2335),
    "assistant_addons/labs": (2625, 1280),
    "assistant/machines": (40, 15),
    "assistant/model": (1275, 570),
    "assistant_addons/onnx": (4110, 2140),
    "assistant/parsers": (1600, 680),
    "assistant/plan": (2530, 1225),
    "assistant/privacy": (720, 150),
    "assistant_addons/projects": (4735, 2395),
    "assistant/runtime": (685, 380),
    "assistant/session": (4765, 2280),
    "assistant/verify": (2005, 1015),
    "assistant/wizard": (3610, 1730),
    "docs": (600, 285),
    "tests": (40820, 19670),
}


def test_layers():
    """Arrows point down only, from add-ons, too, where some are there."""
    tool = shutil.which("lint-imports", path=sysconfig.get_path("scripts"))
    assert tool, "import-linter is not installed beside this Python"
    rules = ["pyproject.toml", *map(str, ROOT.glob("tests/addons/importlinter.toml"))]
    done = subprocess.run([tool, *rules], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rooms_keep_to_their_budgets():
    """A room that outgrows its budget holds an idea too many; one that shrank lowers it."""
    found = {room: size_of(ROOT / room) for room in BUDGETS}
    over = {room: (size, BUDGETS[room]) for room, size in found.items() if any(map(gt, size, BUDGETS[room]))}
    assert over == {}, "(lines, statements) and their budget"


def size_of(room: Path) -> tuple[int, int]:
    """Count the lines of a folder's Python, and its statements without docstrings and imports."""
    texts = [text_of(path) for path in room.rglob("*.py")]
    nodes = (node for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt))
    return sum(text.count("\n") for text in texts), sum(map(counts, nodes))


def counts(node: ast.stmt) -> bool:
    """Tell whether a statement does something: docstrings and imports do not count."""
    docstring = (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )
    return not docstring and not isinstance(node, ast.Import | ast.ImportFrom)


def test_modules_are_of_a_size_that_can_be_read():
    """A module is one idea."""
    long = {str(path.relative_to(ROOT)): text_of(path).count("\n") for path in MODULES}
    assert {name: lines for name, lines in long.items() if lines > MODULE_LINES} == {}


def test_a_room_hands_on_few_names():
    """What a face shows is what others may use; few names are a room that can be changed."""
    faces = {path.parent.name: text_of(path) for path in (ROOT / "assistant").glob("*/__init__.py")}
    shown = {room: sum(map(names_of, ast.parse(text).body)) for room, text in faces.items()}
    assert {room: names for room, names in shown.items() if names > FACE_NAMES} == {}


def names_of(node: ast.stmt) -> int:
    """Count the names that an import brings."""
    return len(node.names) if isinstance(node, ast.ImportFrom) else 0


def test_import_is_light():
    """`import assistant` draws in nothing but the standard library's smallest part."""
    code = "import sys; before = set(sys.modules); import assistant; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["assistant"]


def test_start_needs_the_standard_library_only():
    """What start.py runs before anything is installed imports no package."""
    code = "import sys; sys.path.insert(0, '.'); import assistant.start"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=ROOT, check=True)


def test_readme_and_ci_run_the_same_command():
    """The test command of the README is the one that CI runs."""
    command = "python3 start.py test"
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"exec {command}\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_conda_and_binder_agree_with_the_project():
    """Both environment files name the same Python; Binder's is what its script writes from pyproject.toml."""
    for_conda = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    for_binder = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text(encoding="utf-8"))
    assert for_conda["channels"] == for_binder["channels"]
    assert for_conda["dependencies"][:-1] == for_binder["dependencies"][:-1] == ["python=3.12", "pip"]
    assert for_conda["dependencies"][-1] == {"pip": ["-e .[lab]"]}
    written = runpy.run_path(str(ROOT / "binder" / "renew.py"))["environment"]()
    assert (ROOT / "binder" / "environment.yml").read_text(encoding="utf-8") == written, "run: python3 binder/renew.py"


# What a person or an environment other than the assistant's own brings, and is imported only where it is found.
ELSEWHERE = {"torch", "torch_directml", "onnxruntime", "babel"}
# Programs for other environments, files that users copy, and what the translations are made with.
NOT_OURS = ("labs/library/", "labs/programs/", "runtime/", "locale/")
# Rooms whose modules only run where an extra is installed; a module of any other room may import the core alone.
EXTRA_OF_ROOM = {"wizard/": "lab", **{f"{name}/": name for name in ADDONS}}
# Where the core asks first whether the package is there, and does without it otherwise.
ASKED_FIRST = {
    "diagnose/log.py": {"ahocorasick_rs"},
    "host/extras.py": {"uv"},
    "runtime/fallback.py": {"matplotlib"},
}


def test_every_import_is_declared():
    """What a module imports from elsewhere is a package that its room may use: the core's, or its extra's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    core = modules_of(project["dependencies"])
    allowed = {extra: core | modules_of(extras[extra]) for extra in EXTRA_OF_ROOM.values()}
    allowed["lab"] |= modules_of(extras["onnx"])  # which it brings
    undeclared = []
    for path in (*MODULES, *ADDON_MODULES):
        place = path.relative_to(ROOT).as_posix().partition("/")[2]
        room = next((extra for room, extra in EXTRA_OF_ROOM.items() if place.startswith(room)), "")
        known = allowed.get(room, core) | ASKED_FIRST.get(place, set()) | ELSEWHERE | {"assistant", "assistant_addons"}
        known |= allowed["lab"] if path.name == "page.py" else set()  # only the wizard opens the pages of add-ons
        if not place.startswith(NOT_OURS):
            undeclared += [f"{place}: {name}" for name in sorted(imported_by(path) - known - sys.stdlib_module_names)]
    assert undeclared == [], "declare it in pyproject.toml with its reason, or do without it in this room"

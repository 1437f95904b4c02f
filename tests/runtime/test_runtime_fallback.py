"""The CPU fallback, in the Python of a real environment, on emulated devices that lack operators."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tables import each

from assistant import start

pytestmark = pytest.mark.full

HERE = Path(__file__).parent / "in_torch"
RUNTIME = Path(start.__file__).parent / "runtime"
FILES = {"fallback_cases.py": "fallback.py", "installed_cases.py": "fallback.py", "device_cases.py": "device.py"}


def cases_of(name):
    """Name a file's cases without importing it, for this Python has no torch."""
    tree = ast.parse((HERE / name).read_text("utf-8"))
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("case_")]


@pytest.fixture(scope="module")
def results(cpu_environment):
    """Run each file's cases in one process."""
    done = {}
    for name, module in FILES.items():
        command = [cpu_environment.python, "-W", "error", str(HERE / name), str(RUNTIME / module)]
        run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE, timeout=300)
        assert run.returncode == 0, run.stderr
        done[name] = json.loads(run.stdout)
    return done


@each(("name", "case"), [(name, case) for name in FILES for case in cases_of(name)])
def test_the_case_holds(results, name, case):
    """Each case of the files under in_torch/ holds; its name says what that is."""
    assert not results[name][case], results[name][case]


@each("path", sorted(RUNTIME.glob("*.py")), ids=lambda path: path.name)
def test_a_file_to_take_along_stands_alone(path):
    """Syntax of Python 3.9; imports of the standard library, torch and, to plot, matplotlib only."""
    tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 9))
    froms = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    roots = {name.split(".")[0] for name in [*froms, *names]}
    assert roots - sys.stdlib_module_names <= {"torch", "matplotlib"}

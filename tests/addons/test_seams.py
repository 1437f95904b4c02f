"""Where this distribution's add-ons join the core: entry points and extras."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import metadata

import forked
import pytest
from refused import refused, without
from sources import ADDONS, OWN_NAME, ROOT

from assistant import addons
from assistant.host.extras import SMALLEST_FIRST

GROUPS = (addons.COMMANDS, addons.PAGES, addons.TASKS, addons.READERS)
HEAVY = {"ipywidgets", "anywidget", "jupyter_client", "nbformat", "numpy", "onnx", "onnxruntime", "torch", "mcp"}


def ours():
    """Give the entry points of this distribution, of all groups."""
    entries = [entry for group in GROUPS for entry in addons.names(group).values()]
    return [entry for entry in entries if entry.dist.name == OWN_NAME]


def test_every_entry_point_is_there_and_its_add_on_has_an_extra():
    """What the distribution promises can be imported, and the extra that a failure would name exists."""
    extras = metadata(OWN_NAME).get_all("Provides-Extra")
    for entry in ours():
        assert entry.load()
        assert entry.module.split(".")[1] in extras
    assert {*ADDONS} <= {*SMALLEST_FIRST}, "put it there where its extra stands by size"


@pytest.mark.process
def test_the_help_of_add_ons_draws_in_no_library_of_theirs():
    """`assistant --help` imports every command, on an installation that has no extra."""
    modules = [entry.module for entry in addons.names(addons.COMMANDS).values()]
    code = f"import sys, {', '.join(modules)}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.process
@pytest.mark.parametrize(
    ("package", "name", "file"), [("ipykernel", "labs", "render-group"), ("onnx", "onnx", "model.onnx")]
)
def test_a_missing_package_of_an_add_on_is_one_sentence_with_its_command(package, name, file, tmp_path):
    """As where a package of the core's own extras is missing; nothing is written."""
    words, env = [sys.executable, "-c", without(package), name, "check", file], forked.at_home(tmp_path)
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    refused(done, 1, f"needs the extra [{name}], of which {package} is not", f"-m pip install -e '{ROOT}[{name}]'\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
def test_no_sentence_of_a_subcommand_is_cut_short(tmp_path):
    """In a terminal of 80 columns."""
    for group in ("onnx", "labs"):
        listed = forked.run(group, "--help", env=forked.at_home(tmp_path, COLUMNS="80")).stdout
        assert "..." not in listed.partition("Commands:")[2]

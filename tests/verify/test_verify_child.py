"""The child's files can run in older targets, and parent and child know the same checks."""

import ast
import sys
from pathlib import Path

import pytest

from assistant.verify import run
from assistant.verify.child import FILES, known_checks

FOLDER = Path(run.__file__).parent


@pytest.mark.parametrize("name", ["child.py", *FILES])
def test_the_file_reads_in_python_3_8_and_needs_nothing_of_ours(name):
    """Syntax of Python 3.8; imports at run time from the standard library only."""
    tree = ast.parse((FOLDER / name).read_text("utf-8"), feature_version=(3, 8))
    imported = [node.names[0].name for node in tree.body if isinstance(node, ast.Import)]
    imported += [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


def test_parent_and_child_know_the_same_checks():
    """Every check of a full verification exists, after the checks that it needs, and has a title."""
    checks = known_checks()
    assert set(run.FULL) == set(checks)
    assert run.FULL[: len(run.QUICK)] == run.QUICK
    for place, key in enumerate(run.FULL):
        assert set(checks[key][1]) <= set(run.FULL[:place])
        assert run.check_title(key) != key


def test_every_backend_names_a_device_that_can_be_verified():
    """`device_for` gives what `verify` takes."""
    assert all(run._DEVICE.fullmatch(run.device_for(backend)) for backend in run.Backend)

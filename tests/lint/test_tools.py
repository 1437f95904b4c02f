"""Ruff and mypy have nothing to say."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.process
@pytest.mark.parametrize("command", ["ruff check .", "ruff format --check .", "mypy"])
def test_tools_are_content(command):
    """The tools of this environment, in the checkout, with the settings of pyproject.toml."""
    name, *arguments = command.split()
    found = shutil.which(name, path=sysconfig.get_path("scripts"))
    assert found, f"{name} is not installed beside this Python"
    done = subprocess.run([found, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"{command}\n{done.stdout}{done.stderr}", pytrace=False)

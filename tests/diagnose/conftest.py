"""Environments in which commands fail for real."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback import LoopbackIndex
from stage import Stage


@pytest.fixture(scope="module")
def env(large_folder: Callable[[str], Path]) -> Path:
    """Make one environment with pip for all of these failures."""
    folder = large_folder("installers") / "env"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder


@pytest.fixture
def stage(tmp_path: Path, env: Path, loopback_index: LoopbackIndex) -> Iterator[Stage]:
    """Give the environment, empty but for pip, beside two indexes."""
    second = tmp_path / "pypi"
    second.mkdir()
    pypi = LoopbackIndex(second)
    made = Stage(tmp_path, env, loopback_index, pypi)
    yield made
    made.env["VIRTUAL_ENV"] = str(env)
    made.does("uv pip uninstall -q torch torchvision numpy transformers bitsandbytes")
    pypi.close()

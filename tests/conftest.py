"""What all tests share."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import LoopbackIndex

from assistant.i18n import use_language
from assistant.model.record import from_plain
from assistant.model.report import Environment


def pytest_configure() -> None:
    """Keep what this user has refreshed or set up out of the tests."""
    folder = tempfile.mkdtemp(prefix="assistant-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes would compile the same modules again
    os.environ.update(XDG_DATA_HOME=folder, XDG_STATE_HOME=folder, LANGUAGE="en")
    use_language("en")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that renews the README's pictures."""
    parser.addoption("--screenshots", action="store_true", help="Renew the pictures in notebooks/images.")


@pytest.fixture
def loopback_index(tmp_path: Path) -> Iterator[LoopbackIndex]:
    """Serve a package index of small wheels on 127.0.0.1."""
    folder = tmp_path / "loopback-index"
    folder.mkdir()
    index = LoopbackIndex(folder)
    yield index
    index.close()


@pytest.fixture(scope="session")
def cpu_setup(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Let the assistant itself set up a CPU environment, once for all tests; give the session that it printed."""
    folder = tmp_path_factory.mktemp("cpu environment")
    command = [sys.executable, "-m", "assistant", "setup", "--yes", "--json", "--backend", "cpu"]
    places = {name: str(folder / name) for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "JUPYTER_DATA_DIR")}
    done = subprocess.run(
        [*command, "--target", str(folder / "env"), "--to", str(folder / "exported")],
        env={**os.environ, **places, "LANGUAGE": "en"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"the CPU environment could not be set up:\n{done.stderr}", pytrace=False)
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def cpu_environment(cpu_setup: dict[str, object]) -> Environment:
    """Give the environment with torch, NumPy, onnx and ONNX Runtime that `cpu_setup` made."""
    return from_plain(cpu_setup["environment"], Environment, "the environment")

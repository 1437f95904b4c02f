"""A real JupyterLab and a real browser for the tests of the wizard; nothing of the user's is read or written."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from guided import jupyter_environment, stop
from served import (
    ROOT,
    Server,
    browser,
    browser_path,
    context,
    free_port,
    open_notebook,
    page,
    pytest_runtest_makereport,
    server_options,
    wait_for,
)

__all__ = [  # fixtures and a hook
    "browser",
    "browser_path",
    "context",
    "open_notebook",
    "page",
    "pytest_runtest_makereport",
]


@pytest.fixture(scope="session")
def jupyter_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve copies of the notebooks as `assistant lab` does, with all state in a temporary folder."""
    with _running("lab", tmp_path_factory.mktemp("jupyter")) as server:
        yield server


@pytest.fixture
def notebook_server(tmp_path: Path) -> Iterator[Server]:
    """Serve a copy of the notebooks from this environment's Jupyter Notebook 7."""
    with _running("notebook", tmp_path / "jupyter") as server:
        yield server


@pytest.fixture(scope="session")
def served_by() -> Callable[[str, Path, Path], AbstractContextManager[Server]]:
    """Give a function that serves from another environment."""
    return _running


@contextmanager
def _running(app: str, state: Path, python: str | Path = sys.executable) -> Iterator[Server]:
    state.mkdir(exist_ok=True)
    server = Server(
        url=f"http://127.0.0.1:{free_port()}",
        token=secrets.token_hex(16),
        root_dir=state / "notebooks",
        state_dir=state,
    )
    if app != "lab":  # the product itself puts copies there
        shutil.copytree(ROOT / "notebooks", server.root_dir)
    log = state / "server.log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            [str(python), "-m", *_command(app, server)],
            env=jupyter_environment(state),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        wait_for(server, child, log)
        yield server
        server.end_sessions()
    finally:
        stop(child)


@pytest.fixture
def notebook(jupyter_server: Server) -> Callable[..., str]:
    """Give a function that writes a notebook of some cells and answers its name."""

    def written(name: str, *sources: str) -> str:
        cell = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
        cells = [{**cell, "id": f"cell-{number}", "source": source} for number, source in enumerate(sources)]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        content = {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": cells}
        (jupyter_server.root_dir / name).write_text(json.dumps(content))
        return name

    return written


def _command(app: str, server: Server) -> list[str]:
    command = {
        "lab": ["assistant", "lab", f"--folder={server.root_dir}"],
        "notebook": ["jupyter", "notebook", f"--notebook-dir={server.root_dir}"],
    }
    return [*command[app], *server_options(server, "JupyterNotebookApp" if app == "notebook" else "LabApp")]

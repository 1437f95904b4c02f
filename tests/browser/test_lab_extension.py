"""JupyterLab's launcher tile and command: from a click to the wizard, without a path to know."""

from __future__ import annotations

import json
import py_compile
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from guided import main_button
from jupyter_client.manager import start_new_kernel
from playwright.sync_api import Page, expect

import assistant

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
NOTEBOOK = "set-up-pytorch.ipynb"


@pytest.fixture
def folder(jupyter_server) -> Iterator[Path]:
    """Give the server's folder without the notebook that the tile makes."""
    notebook = jupyter_server.root_dir / NOTEBOOK
    notebook.unlink(missing_ok=True)
    yield jupyter_server.root_dir
    notebook.unlink(missing_ok=True)


@pytest.fixture
def launcher(page: Page, jupyter_server, folder: Path) -> Page:
    """Show JupyterLab with its launcher, in a workspace of its own."""
    assert not (folder / NOTEBOOK).exists()
    page.goto(f"{jupyter_server.url}/lab/workspaces/tile?reset&token={jupyter_server.token}")
    page.locator(".jp-Launcher").wait_for(timeout=60_000)
    return page


def test_the_installed_extension_is_this_one() -> None:
    """What JupyterLab loads here is the file of this checkout; after it changed, the project must be installed anew."""
    installed = Path(sys.prefix) / "share" / "jupyter" / "labextensions" / "torch-setup-assistant"
    for file in ("package.json", "static/remoteEntry.js", "static/cells.js"):
        assert (installed / file).read_bytes() == (ROOT / "labextension" / file).read_bytes()


def test_the_tile_opens_the_wizard(launcher: Page, folder: Path) -> None:
    """One click on the tile makes the notebook in the folder at hand, runs it and shows the wizard."""
    launcher.locator(".jp-LauncherCard").filter(has_text="Set up PyTorch").click()
    wizard = launcher.locator(".ptsa-wizard")
    wizard.wait_for(timeout=60_000)
    main_button(wizard, "Install")
    cells = json.loads((folder / NOTEBOOK).read_text(encoding="utf-8"))["cells"]
    assert "open_wizard" in "".join(cells[-1]["source"])


def test_the_command_opens_a_notebook_that_is_there_as_it_is(launcher: Page, folder: Path) -> None:
    """The palette's command shows an existing notebook of that name, neither changed nor run."""
    cell = {"cell_type": "markdown", "id": "mine", "metadata": {}, "source": "# My own words"}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    text = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": [cell]})
    (folder / NOTEBOOK).write_text(text)
    launcher.keyboard.press("Control+Shift+C")
    launcher.get_by_role("textbox", name="Command Palette Section").or_(
        launcher.locator(".lm-CommandPalette-input")
    ).first.fill("Set up PyTorch")
    launcher.locator(".lm-CommandPalette-item", has_text="Set up PyTorch").click()
    expect(launcher.get_by_role("heading", name="My own words")).to_be_visible(timeout=30_000)
    assert (folder / NOTEBOOK).read_text() == text


@pytest.mark.process
def test_a_strangers_compiled_module_is_not_run_by_the_page(tmp_path: Path) -> None:
    """No listing of the folder shows it, so the kernel leaves the folder before the page's code is run."""
    (tmp_path / "its.py").write_text("open('stranger', 'w').close()")
    py_compile.compile(str(tmp_path / "its.py"), cfile=str(tmp_path / "torch_setup_assistant.pyc"))
    source = (ROOT / "labextension" / "static" / "remoteEntry.js").read_text(encoding="utf-8")
    leave = re.search(r'LEAVE_FOLDER = "(.+)";', source)[1]
    assert "leave_folder(sessionContext.session.kernel)" in source
    manager, client = start_new_kernel(cwd=str(tmp_path))
    try:
        client.execute_interactive(leave, silent=True, timeout=60)
        client.execute_interactive("import torch_setup_assistant", timeout=60, output_hook=lambda _message: None)
        assert not (tmp_path / "stranger").exists()
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_the_extension_has_all_its_words_in_both_languages() -> None:
    """What one language says the other says too, and the Chinese is Chinese."""
    script = (ROOT / "labextension" / "static" / "remoteEntry.js").read_text(encoding="utf-8")
    said = {code: re.search(rf"    {code}: \{{\n(.*?)\n    \}}", script, re.DOTALL)[1] for code in ("en", "zh")}
    words = {code: dict(re.findall(r"^ {6}(\w+): ([\"'].*[\"']),$", text, re.MULTILINE)) for code, text in said.items()}
    assert words["en"].keys() == words["zh"].keys()
    assert len(words["en"]) == said["en"].count("\n") + 1
    assert "seconds" in words["en"]["starting"]  # how long to wait
    assert "秒" in words["zh"]["starting"]
    shown = words["zh"].keys() - {"file", "call"}
    assert [key for key in shown if not re.search("[\u4e00-\u9fff]", words["zh"][key])] == []


def test_the_extension_bears_the_projects_version() -> None:
    """What JupyterLab lists as installed is the assistant's version, and the wheel brings the files along."""
    described = json.loads((ROOT / "labextension" / "package.json").read_text(encoding="utf-8"))
    assert described["version"] == assistant.__version__
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    places = wheel["wheel"]["shared-data"]
    assert places["labextension"] == f"share/jupyter/labextensions/{described['name']}"
    assert places["notebooks/setup.ipynb"].startswith(f"{places['labextension']}/static/")

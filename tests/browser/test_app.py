"""The guided setup where there is no JupyterLab around it: as a page of its own (Voilà), and in Notebook 7."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from guided import jupyter_environment, run_first_cell, walk_in_simulation
from playwright.sync_api import Browser, Page, expect


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Start `assistant lab --app`; give the address that it prints."""
    command = [sys.executable, "-m", "assistant", "lab", "--app"]
    child = subprocess.Popen(
        command, env=jupyter_environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        printed = []
        for line in child.stdout:
            printed.append(line)
            if found := re.search(r"http://\S+token=\w+", line):
                yield found[0]
                break
        else:
            pytest.fail("no address was printed:\n" + "".join(printed), pytrace=False)
    finally:
        child.terminate()
        child.communicate(timeout=30)  # reads and closes what it printed


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Page]:
    """Give a page that may complain in its console.

    Voilà loads extensions that expect a whole JupyterLab; Notebook 7.6 misses a schema of its own, without us as well.
    """
    with browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US") as context:
        yield context.new_page()


def test_the_app_shows_the_wizard_and_no_code(visitor: Page, address: str) -> None:
    """`assistant lab --app` prints an address; there the wizard walks, without a cell and without its instructions."""
    visitor.goto(address)
    wizard = visitor.locator(".ptsa-wizard")
    wizard.wait_for(timeout=60_000)
    walk_in_simulation(wizard)
    expect(visitor.locator(".jp-InputArea")).to_have_count(0)
    expect(visitor.get_by_text("Run the cell below")).to_have_count(0)


def test_the_app_lets_nobody_in_without_its_token(visitor: Page, address: str) -> None:
    """Without the token of the printed address a visitor is asked for it and sees nothing else."""
    visitor.goto(address.partition("?")[0])
    expect(visitor.locator("input[type=password]").first).to_be_visible()
    expect(visitor.locator(".ptsa-wizard")).to_have_count(0)


@pytest.mark.heavy
def test_notebook_7_shows_the_wizard_and_has_the_command(notebook_server, visitor: Page) -> None:
    """The same notebook runs in Notebook 7, and its command palette offers to open the guided setup."""
    visitor.goto(f"{notebook_server.url}/notebooks/setup.ipynb?token={notebook_server.token}")
    visitor.locator(".jp-Notebook").wait_for(timeout=60_000)
    visitor.locator(".jp-NotebookKernelStatus, .jp-Notebook-ExecutionIndicator").first.wait_for()
    visitor.wait_for_function(
        "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'",
    )
    walk_in_simulation(run_first_cell(visitor))
    assert visitor.evaluate("window.jupyterapp.commands.hasCommand('torch-setup-assistant:open')")
    assert (notebook_server.root_dir / "set-up-pytorch.ipynb").exists() is False
    with visitor.context.expect_page() as opened:
        visitor.evaluate("void window.jupyterapp.commands.execute('torch-setup-assistant:open')")
    opened.value.get_by_role("heading", name="Set up PyTorch").first.wait_for(timeout=30_000)
    assert (notebook_server.root_dir / "set-up-pytorch.ipynb").exists()

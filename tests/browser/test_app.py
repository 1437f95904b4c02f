"""The guided setup where there is no JupyterLab around it: as an app that is all of the window, and in Notebook 7."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from guided import jupyter_environment, main_button, printed_address, stop
from playwright.sync_api import Browser, Locator, Page, expect

pytestmark = pytest.mark.full

AROUND = "#jp-top-panel, #jp-menu-panel, #jp-bottom-panel, .jp-SideBar, .jp-InputArea, .jp-MarkdownOutput"
FIRST = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    "cells": [
        {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": None, "outputs": [], "source": "6 * 7"},
    ],
}
WHOLE_WINDOW = """wizard => {
    const box = wizard.getBoundingClientRect();
    return [box.x, box.y, box.width, box.height].join() === [0, 0, innerWidth, innerHeight].join();
}"""
OPEN = """notebook => document.querySelector(".ptsa-wizard").dispatchEvent(new CustomEvent("ptsa-open-notebook",
    { bubbles: true, cancelable: true, detail: { name: "first.ipynb", notebook, kernel: "python3" } }))"""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Start `assistant lab --app`; give the address that it prints."""
    log = tmp_path / "log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "assistant", "lab", "--app", "--no-browser", "--ServerApp.port=0"]
        child = subprocess.Popen(command, env=jupyter_environment(tmp_path), stdout=output, stderr=output)
    try:
        yield printed_address(child, log)
    finally:
        stop(child)


@pytest.fixture
def visitor(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Give a page that may complain in its console: Notebook 7.6 misses a schema of its own, without us as well."""
    width, height = getattr(request, "param", (1280, 900))
    with browser.new_context(viewport={"width": width, "height": height}, locale="en-US") as context:
        yield context.new_page()


@pytest.mark.parametrize("visitor", [(1280, 800), (390, 844)], indirect=True, ids=["desk", "phone"])
def test_the_app_is_the_wizard_and_nothing_else(visitor: Page, address: str) -> None:
    """At the printed address the wizard is the whole window; a notebook brings the menus, and Back the wizard."""
    visitor.goto(address)
    wizard = visitor.locator(".ptsa-wizard")
    wizard.wait_for(timeout=60_000)
    button = main_button(wizard, "Install")
    expect(visitor.locator(f":is({AROUND}):visible")).to_have_count(0)
    visitor.wait_for_function(WHOLE_WINDOW, arg=wizard.element_handle())  # JupyterLab lays out what is shown later
    box, window = button.bounding_box(), visitor.viewport_size
    assert box["y"] + box["height"] <= window["height"]
    assert visitor.evaluate("document.documentElement.scrollWidth") <= window["width"]
    assert visitor.title() == "Set up PyTorch"

    assert visitor.evaluate(OPEN, FIRST) is False  # it was taken
    expect(visitor.get_by_text("42", exact=True)).to_be_visible(timeout=60_000)
    expect(visitor.get_by_role("menuitem", name="File", exact=True)).to_be_visible()

    visitor.go_back()  # there are no tabs
    expect(visitor.locator(f":is({AROUND}):visible")).to_have_count(0)
    visitor.wait_for_function(WHOLE_WINDOW, arg=wizard.element_handle())


def test_the_app_lets_nobody_in_without_its_token(visitor: Page, address: str) -> None:
    """Without the token of the printed address a visitor is asked for it and sees nothing else."""
    visitor.goto(address.partition("?")[0])
    expect(visitor.locator("input[type=password]").first).to_be_visible()
    expect(visitor.locator(".ptsa-wizard")).to_have_count(0)


@pytest.mark.heavy
def test_notebook_7_shows_the_wizard_and_has_the_command(notebook_server, visitor: Page) -> None:
    """The same notebook runs by itself in Notebook 7; its command opens one in a page of its own, which does, too."""
    visitor.goto(f"{notebook_server.url}/notebooks/setup.ipynb?token={notebook_server.token}")
    main_button(run_by_itself(visitor), "Install")
    assert visitor.evaluate("window.jupyterapp.commands.hasCommand('torch-setup-assistant:open')")
    assert (notebook_server.root_dir / "set-up-pytorch.ipynb").exists() is False
    with visitor.context.expect_page() as opened:
        visitor.evaluate("void window.jupyterapp.commands.execute('torch-setup-assistant:open')")
    main_button(run_by_itself(opened.value), "Install")
    assert (notebook_server.root_dir / "set-up-pytorch.ipynb").exists()


def run_by_itself(page: Page) -> Locator:
    """Wait for a wizard that nobody has to call."""
    wizard = page.locator(".ptsa-wizard")
    wizard.wait_for(timeout=60_000)
    return wizard

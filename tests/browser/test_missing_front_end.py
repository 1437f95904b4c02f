"""A Jupyter whose own environment lacks the wizard's front end: the reason and the command stand there as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.full

COMMAND = "python -m pip install ipywidgets anywidget"


@pytest.fixture
def disabled(jupyter_server, request: pytest.FixtureRequest) -> Iterator[str]:
    """Take an extension away from JupyterLab, as if it had never been installed there."""
    file: Path = jupyter_server.state_dir / "config" / "labconfig" / "page_config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"disabledExtensions": {request.param: True}}))
    yield request.param
    file.unlink()
    jupyter_server.end_sessions()


@pytest.fixture
def lacking(browser: Browser, jupyter_server, disabled: str) -> Iterator[Page]:
    """Open the notebook, which runs by itself, on a page that may complain: something is missing on purpose."""
    assert disabled
    with browser.new_context(viewport={"width": 1280, "height": 1200}, locale="en-US") as context:
        page = context.new_page()
        page.goto(jupyter_server.document("setup.ipynb"))
        yield page


@pytest.mark.parametrize("disabled", ["@jupyter-widgets/jupyterlab-manager"], indirect=True)
def test_without_widgets_the_cell_prints_what_to_do(lacking: Page) -> None:
    """Where the server knows no widgets, the cell's output is text: the cause, the command, and the terminal's way."""
    output = lacking.locator(".jp-OutputArea-output")
    expect(output).to_contain_text(COMMAND, timeout=60_000)
    expect(output).to_contain_text("python -m assistant setup")


@pytest.mark.parametrize("disabled", ["anywidget"], indirect=True)
def test_without_anywidget_the_panel_says_what_is_missing(lacking: Page) -> None:
    """Where only our own widgets cannot be drawn, the rest is there and says why, after some seconds."""
    expect(lacking.get_by_text("lacks anywidget")).to_be_visible(timeout=60_000)
    expect(lacking.locator(".ptsa-late")).to_contain_text(COMMAND)
    expect(lacking.get_by_role("heading", name="for your processor")).to_be_visible(timeout=60_000)

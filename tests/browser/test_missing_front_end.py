"""A Jupyter whose own environment lacks the wizard's front end: the reason and the command stand there as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from guided import main_button, run_first_cell
from playwright.sync_api import Browser, Page, expect

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
    """Run the notebook's cell on a page that may complain: something is missing on purpose."""
    assert disabled
    with browser.new_context(viewport={"width": 1280, "height": 1200}, locale="en-US") as context:
        page = context.new_page()
        page.goto(jupyter_server.document("setup.ipynb"))
        page.locator(".jp-CodeCell .cm-content").first.wait_for(timeout=60_000)
        page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
        )
        page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
        yield page


@pytest.mark.parametrize("disabled", ["@jupyter-widgets/jupyterlab-manager"], indirect=True)
def test_without_widgets_the_cell_prints_what_to_do(lacking: Page) -> None:
    """Where the server knows no widgets, the cell's output is text: the cause, the command, and the terminal's way."""
    output = lacking.locator(".jp-OutputArea-output")
    expect(output).to_contain_text(COMMAND, timeout=30_000)
    expect(output).to_contain_text("python -m assistant setup")


@pytest.mark.parametrize("disabled", ["anywidget"], indirect=True)
def test_without_anywidget_the_panel_says_what_is_missing(lacking: Page) -> None:
    """Where only our own widgets cannot be drawn, the rest is there and says why, after some seconds."""
    expect(lacking.get_by_text("lacks anywidget")).to_be_visible(timeout=30_000)
    expect(lacking.locator(".ptsa-late")).to_contain_text(COMMAND)
    expect(lacking.get_by_role("heading", name="for your processor")).to_be_visible()


def test_a_notebook_that_is_not_trusted_says_what_will_appear(open_notebook) -> None:
    """Opened by somebody who never ran it, the notebook shows words in the wizard's place; run, it shows the wizard."""
    page = open_notebook("setup.ipynb")
    assert not page.evaluate("window.jupyterapp.shell.currentWidget.content.model.cells.get(1).trusted")
    expect(page.locator(".jp-OutputArea-output")).to_contain_text("The guided setup appears here")
    main_button(run_first_cell(page), "Install")
    expect(page.get_by_text("The guided setup appears here")).to_have_count(0)

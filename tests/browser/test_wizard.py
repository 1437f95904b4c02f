"""The guided setup in a real JupyterLab: from opening the notebook to files on disk, with a real installation."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from guided import aim_at, main_button, run_first_cell, unfold
from playwright.sync_api import Locator, Page, expect

from assistant.model.report import Environment

pytestmark = pytest.mark.full

INSTALL_MS = 300_000
OPEN = "from assistant.wizard import open_wizard\nopen_wizard()"


@pytest.fixture
def wizard(open_notebook) -> Locator:
    """Open the guided notebook and wait for the wizard."""
    return run_first_cell(open_notebook("setup.ipynb"))


def test_another_cell_answers_while_something_installs(open_notebook, notebook, page: Page, tmp_path: Path) -> None:
    """The kernel stays free during an installation; cancelling takes everything back and can be tried again."""
    wizard = run_first_cell(
        open_notebook(notebook("free.ipynb", OPEN, "import time; print('answered at', time.time())"))
    )
    aim_at(wizard, tmp_path / "env")
    cell = page.locator(".jp-CodeCell").nth(1)
    main_button(wizard, "Install").click()
    expect(wizard.get_by_role("button", name="Cancel")).to_be_enabled()
    cell.locator(".cm-content").press("Control+Enter")
    cell.get_by_text(re.compile(r"answered at \d+\.\d+")).last.wait_for()
    # A busy kernel would answer after the installation. How soon it answers, benchmarks/wizard.py measures.
    expect(wizard.get_by_role("button", name="Cancel")).to_be_enabled(timeout=1)

    wizard.get_by_role("button", name="Cancel").click()
    expect(wizard.get_by_text("You cancelled the work.")).to_be_visible(timeout=15_000)
    assert not (tmp_path / "env").exists()
    main_button(wizard, "Try again")


def test_a_closed_tab_does_not_stop_an_installation(wizard: Locator, page: Page, tmp_path: Path) -> None:
    """The kernel goes on when the page is closed in the middle, and the environment is finished, not half made."""
    target = tmp_path / "env"
    aim_at(wizard, target)
    main_button(wizard, "Install").click()
    expect(wizard.get_by_role("button", name="Cancel")).to_be_enabled()
    page.goto("about:blank")
    deadline = time.monotonic() + INSTALL_MS / 1000
    while not (target / "assistant-environment.json").exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert (target / "assistant-environment.json").is_file()
    assert not (target / "assistant-building").exists()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1920, 1080), (390, 844)])
def test_the_main_button_is_in_sight_in_every_view(
    wizard: Locator, page: Page, cpu_environment: Environment, width: int, height: int
) -> None:
    """Two presses lead through; in every settled state the primary action stands in the window without a scroll."""
    page.set_viewport_size({"width": width, "height": height})
    main = wizard.locator(".ptsa-main")
    for name in ("My environments", "Something is wrong?", "The setup"):
        wizard.get_by_role("button", name=name, exact=True).click()
        expect(main).to_be_enabled(timeout=60_000)
        expect(main).to_be_in_viewport(ratio=1)
    aim_at(wizard, Path(cpu_environment.path))
    for fold in ("Why this one", "The exact commands", "Change something"):
        unfold(wizard, fold)
        expect(main).to_be_in_viewport(ratio=1)
    main_button(wizard, "Install").click()
    expect(main_button(wizard, "Open a notebook with it")).to_be_in_viewport(ratio=1)
    assert wizard.evaluate("root => root.querySelector('.ptsa-middle').scrollTop") == 0
    wizard.get_by_role("button", name="Save the configuration").click()
    expect(main_button(wizard, "Write the files")).to_be_in_viewport(ratio=1)

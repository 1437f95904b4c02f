"""The guided setup for people who cannot see it, or see it differently: WCAG 2.2 AA by axe, in every theme."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from accessibility import THEMES, complaints, wear
from guided import TASK_MS, aim_at, choose_machine, main_button, run_first_cell, unfold
from playwright.sync_api import Locator, Page, expect

from assistant.model.report import Environment

pytestmark = pytest.mark.full

# What a screen reader is told of the plan of a simulated machine, from top to bottom.
AS_HEARD = """
- heading "Set up PyTorch" [level=1]
- navigation "Set up PyTorch":
  - button "The setup"
  - button "My environments"
  - button "Something is wrong?"
- combobox "Language"
- heading /PyTorch .+ for your Radeon RX 6700 XT/ [level=2]
- button "Why this one, and what else would work"
- button "The exact commands and the folder"
- 'button "Change something: machine, version, Python, folder, nightly builds" [expanded]'
- combobox "PyTorch build"
- combobox "Backend"
- button "Install" [disabled]
- status: "Plan: done"
"""


@pytest.fixture
def wizard(page: Page, open_notebook) -> Iterator[Locator]:
    """Show the wizard in a window that holds all of it; put the theme back, because JupyterLab remembers it."""
    page.set_viewport_size({"width": 1280, "height": 3000})  # axe passes over what is scrolled out of sight
    shown = run_first_cell(open_notebook("setup.ipynb"))
    page.add_style_tag(content="body { height: 100vh }")  # axe takes a body of no height, as JupyterLab's, for hidden
    yield shown
    wear(page, THEMES[0])


@pytest.fixture
def look(wizard: Locator) -> Iterator[Callable[[str], None]]:
    """Give a function that looks at a view, named by its heading, in every theme; whatever was found fails the test."""
    found: list[str] = []

    def looked(heading: str) -> None:
        expect(wizard.get_by_role("heading", name=heading).first).to_be_visible(timeout=TASK_MS)
        expect(wizard.get_by_role("progressbar")).to_be_hidden(timeout=TASK_MS)
        for theme in THEMES:
            wear(wizard.page, theme)
            found.extend(f"{heading}: {theme}: {line}" for line in complaints(wizard))

    yield looked
    assert found == []


FOLDS = ("Why this one", "The exact commands", "Change something")


def test_axe_finds_nothing_in_a_whole_setup(
    wizard: Locator, look: Callable[[str], None], cpu_environment: Environment
) -> None:
    """Every view of a real setup, in Light, Dark and High Contrast, has no WCAG 2.2 AA violation."""
    main_button(wizard, "Install")
    aim_at(wizard, Path(cpu_environment.path))
    for fold in FOLDS:
        unfold(wizard, fold)
    look("for your processor")
    main_button(wizard, "Use it").click()
    expect(wizard.get_by_role("heading", name="PyTorch works")).to_be_visible(timeout=TASK_MS)
    unfold(wizard, "The checks, one by one")
    look("PyTorch works on your processor")
    wizard.get_by_role("button", name="Save the configuration").click()
    main_button(wizard, "Write the files").click()
    unfold(wizard, "The individual files")
    unfold(wizard, "Choose individual files")
    look("Save the configuration")
    wizard.get_by_role("button", name="Something is wrong?").click()
    look("Is anything wrong?")
    wizard.get_by_role("button", name="My environments").click()
    wizard.get_by_label("Look in another folder").fill(cpu_environment.path)
    wizard.get_by_label("Look in another folder").press("Enter")
    expect(wizard.locator(".ptsa-light").first).to_be_visible(timeout=TASK_MS)
    look("On this machine")


def test_axe_finds_nothing_in_warnings_and_causes(wizard: Locator, look: Callable[[str], None]) -> None:
    """A simulated machine with trouble, and a log with its cause and fixes, are as accessible, in Chinese too."""
    choose_machine(wizard, "Arch Linux, Radeon RX 6700 XT, torch-directml installed")
    expect(wizard).to_match_aria_snapshot(AS_HEARD)
    unfold(wizard, "Why this one")
    look("for your Radeon RX 6700 XT")
    wizard.get_by_role("button", name="Something is wrong?").click()
    log = "ImportError: libd3d12.so: cannot open shared object file: No such file"
    wizard.get_by_label("Paste an error message").fill(log)
    main_button(wizard, "Find the cause").click()
    wizard.get_by_text("How sure is this?").click()
    look("which only Windows and WSL have")
    wizard.locator(".ptsa-language select").select_option("简体中文")
    expect(wizard.get_by_role("heading", name="程序要使用 DirectML")).to_be_visible()
    expect(wizard.get_by_role("progressbar")).to_be_hidden()
    assert complaints(wizard) == []

"""Walking through the guided setup in a browser, as the browser tests share it."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

TASK_MS = 120_000


def run_first_cell(page: Page) -> Locator:
    """Run the notebook's first cell; give the wizard that appears."""
    page.locator(".jp-CodeCell").first.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    wizard = page.locator(".ptsa-wizard")
    wizard.wait_for(timeout=60_000)
    return wizard


def main_button(wizard: Locator, name: str) -> Locator:
    """Find the main button once it bears a name and can be pressed."""
    button = wizard.get_by_role("button", name=name, exact=True)
    expect(button).to_be_enabled(timeout=TASK_MS)
    return button


def aim_at(wizard: Locator, target: Path) -> None:
    """Have the environment in a folder of the test's own."""
    main_button(wizard, "Install")
    folder = wizard.get_by_label("Folder")
    folder.fill(str(target))
    folder.press("Enter")


def jupyter_environment(state: Path) -> dict[str, str]:
    """Name the variables that keep all of Jupyter's state, and the assistant's, in a folder."""
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
        "XDG_DATA_HOME": "share",
        "XDG_STATE_HOME": "state",
    }
    own = {name: str(state / folder) for name, folder in folders.items()}
    return {**os.environ, **own, "JUPYTER_PREFER_ENV_PATH": "1", "LANGUAGE": "en"}

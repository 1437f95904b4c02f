"""My environments in a real JupyterLab: a broken one is mended by clicks, and undone by one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from accessibility import STRICT, THEMES, violations, wear
from browser.conftest import Server
from install.broken import BrokenEnvironment
from loopback import LoopbackIndex
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.full

TASK_MS = 90_000


@pytest.fixture
def broken(
    jupyter_server: Server, loopback_index: LoopbackIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> BrokenEnvironment:
    """Give a broken environment beside the notebooks, and a notebook whose kernel knows no index but this one."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    known = {
        "HOME": str(tmp_path),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": loopback_index.url,
        "UV_DEFAULT_INDEX": loopback_index.url,
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    source = f"import os\nos.environ.update({known!r})\nfrom assistant.wizard import open_wizard\nopen_wizard()"
    notebook = json.loads((jupyter_server.root_dir / "setup.ipynb").read_text(encoding="utf-8"))
    cell = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    cell["source"], cell["outputs"] = source, []
    folder = jupyter_server.root_dir / tmp_path.name  # the server is one for all tests
    folder.mkdir()
    (folder / "mine.ipynb").write_text(json.dumps({**notebook, "cells": [cell]}), encoding="utf-8")
    return BrokenEnvironment(loopback_index, folder / "broken")


@pytest.fixture
def wizard(broken: BrokenEnvironment, open_notebook: Callable[[str], Page]) -> Locator:
    """Open that notebook and run its cell."""
    page = open_notebook(f"{broken.target.parent.name}/mine.ipynb")
    page.locator(".jp-CodeCell").first.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    shown = page.locator(".ptsa-wizard")
    shown.wait_for(timeout=60_000)
    return shown


def test_a_broken_environment_is_mended_by_three_clicks_and_undone_by_one(
    wizard: Locator, broken: BrokenEnvironment
) -> None:
    """The head's button, Mend, the agreement; then Undo: each button in sight, and every file as it was."""
    before = broken.picture()
    wizard.get_by_role("button", name="My environments").click()
    row = wizard.get_by_role("row").filter(has_text="broken")
    expect(row.get_by_role("rowheader", name="broken")).to_be_visible(timeout=TASK_MS)
    expect(row).to_contain_text("There are 3 more problems.")
    row.get_by_role("button", name="Mend … broken").click()
    expect(wizard.get_by_role("heading", name="What would change in broken")).to_be_focused(timeout=TASK_MS)
    expect(wizard.get_by_text("numpy 2.1.0 → 1.26.4")).to_be_visible()
    expect(wizard.get_by_text("onnxruntime-gpu 1.20 is removed")).to_be_visible()
    assert broken.picture() == before
    change = wizard.get_by_role("button", name="Change these packages")
    expect(change).to_be_in_viewport(ratio=1)
    assert violations(wizard.page, ".ptsa-middle", STRICT) == []
    change.click()
    expect(row).to_contain_text("No problems found in its packages.", timeout=TASK_MS)
    expect(row.locator(".ptsa-light")).to_have_text("good")
    assert violations(wizard.page, ".ptsa-middle", STRICT) == []
    undo = wizard.locator(".ptsa-foot").get_by_role("button", name="Undo")
    expect(undo).to_be_in_viewport(ratio=1)
    undo.click()
    expect(row).to_contain_text("There are 3 more problems.", timeout=TASK_MS)
    assert broken.picture() == before


def test_the_page_is_for_everybody(wizard: Locator) -> None:
    """In each of JupyterLab's themes nothing is wrong by WCAG; on a phone nothing has to be scrolled sideways."""
    page = wizard.page
    page.add_style_tag(content="body { height: 100vh }")  # axe takes a body of no height, as JupyterLab's, for hidden
    wizard.get_by_role("button", name="My environments").click()
    mend = wizard.get_by_role("button", name="Mend … broken")
    expect(mend).to_be_visible(timeout=TASK_MS)
    for theme in THEMES:
        wear(page, theme)
        assert violations(page, ".ptsa-middle", STRICT) == [], theme
    wear(page, THEMES[0])
    page.set_viewport_size({"width": 560, "height": 844})  # JupyterLab's own bars take some of it
    expect(mend).to_be_visible()
    middle = wizard.locator(".ptsa-middle")
    assert middle.evaluate("box => box.scrollWidth <= box.clientWidth")

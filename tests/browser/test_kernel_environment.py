"""Installing into the environment that the kernel itself runs in, with the restart that this needs."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from guided import make_kernel, notebook_for, unfold
from loopback import make_wheel
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
READY = "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"


@pytest.fixture(scope="module")
def scratch_kernel(jupyter_server, large_folder: Callable[[str], Path]) -> Path:
    """Give the Python of an environment that holds the assistant and an old torch, known to JupyterLab as a kernel."""
    folder = large_folder("kernel")
    old = make_wheel(folder, "torch", "0.1", "py3-none-any")
    return make_kernel(folder / "env", jupyter_server.state_dir / "data", "scratch", old)


def run_cell(page: Page, number: int) -> None:
    """Run a cell of the notebook."""
    page.locator(".jp-CodeCell").nth(number).locator(".cm-content").click()
    page.keyboard.press("Control+Enter")


def press(wizard: Locator, name: str) -> None:
    """Press the main button once it bears a name and can be pressed."""
    button = wizard.get_by_role("button", name=name, exact=True)
    expect(button).to_be_enabled(timeout=120_000)
    button.click()


def test_the_kernels_own_environment_is_changed_and_gone_on_with(
    open_notebook, jupyter_server, scratch_kernel: Path
) -> None:
    """The old torch is replaced, the wizard asks for a restart, and after it goes on to a verified end."""
    notebook = notebook_for("scratch")
    look = {"cell_type": "code", "id": "look", "metadata": {}, "execution_count": None, "outputs": []}
    notebook["cells"].append({**look, "source": "import torch; print('torch', torch.__version__)"})
    (jupyter_server.root_dir / "own.ipynb").write_text(json.dumps(notebook))
    page = open_notebook("own.ipynb")
    run_cell(page, 1)
    page.get_by_text("torch 0.1").wait_for()

    run_cell(page, 0)
    wizard = page.locator(".ptsa-wizard")
    unfold(wizard, "Change something")
    wizard.get_by_label("Where").select_option("The environment of this kernel")
    expect(wizard.get_by_text("The environment in the chosen folder will be changed")).to_be_visible(timeout=120_000)
    press(wizard, "Install")
    expect(wizard.get_by_text("All checks passed on the device cpu.").first).to_be_visible(timeout=300_000)
    expect(wizard.get_by_text("had already imported torch")).to_be_visible()

    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    page.wait_for_function(READY, timeout=60_000)
    run_cell(page, 0)
    expect(wizard.get_by_text(re.compile("The setup of .* is finished"))).to_be_visible(timeout=60_000)
    press(wizard, "Use it")
    expect(wizard.get_by_text("All checks passed on the device cpu.").first).to_be_visible(timeout=120_000)
    run_cell(page, 1)
    page.get_by_text("+cpu").first.wait_for()
    done = subprocess.run(
        [scratch_kernel, "-c", "import torch; print(torch.__version__)"], capture_output=True, check=True
    )
    assert b"+cpu" in done.stdout

"""The guided setup on other kernels than the one beside JupyterLab: older ipykernels run callbacks on other threads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from guided import main_button, make_kernel, notebook_for, run_first_cell, walk_in_simulation
from playwright.sync_api import expect

pytestmark = pytest.mark.heavy  # each makes an environment


@pytest.mark.parametrize("version", ["6.30.1", "7.3.0"])
def test_the_wizard_walks_on_an_older_ipykernel(version: str, open_notebook, jupyter_server, tmp_path: Path) -> None:
    """Detection, a simulation, its plan and a diagnosis work on whichever thread callbacks run."""
    name = f"ipykernel-{version}"
    make_kernel(tmp_path / "env", jupyter_server.state_dir / "data", name, f"ipykernel=={version}")
    notebook = notebook_for(name)
    look = {"cell_type": "code", "id": "look", "metadata": {}, "execution_count": None, "outputs": []}
    notebook["cells"].append({**look, "source": "import ipykernel; print('ipykernel', ipykernel.__version__)"})
    (jupyter_server.root_dir / f"{name}.ipynb").write_text(json.dumps(notebook))
    page = open_notebook(f"{name}.ipynb")
    wizard = run_first_cell(page)
    walk_in_simulation(wizard)
    page.locator(".jp-CodeCell").nth(1).locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    page.get_by_text(f"ipykernel {version}").wait_for()
    wizard.get_by_role("button", name="Something is wrong?").click()
    wizard.get_by_label("A log").fill("ImportError: libd3d12.so: cannot open shared object file: No such file")
    main_button(wizard, "Find the cause").click()
    expect(wizard.get_by_text("Evidence", exact=True).first).to_be_visible()

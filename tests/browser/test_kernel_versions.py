"""The guided setup on other kernels than the one beside JupyterLab, and in the image that Binder makes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from guided import ROOT, main_button, make_kernel, notebook_for, run_first_cell
from playwright.sync_api import Locator, Page, expect

from assistant.host.live import LiveHost
from assistant.install import Sources

pytestmark = pytest.mark.heavy  # each makes an environment
# What repo2docker installs for a project in Python 3.12; of it, what PyPI has under the same name.
LOCK = "buildpacks/conda/environment.py-3.12-linux-64.lock"
LOCKED = re.compile(
    r"/(jupyterlab|jupyter_server|jupyterlab_server|notebook|notebook-shim|ipykernel|ipywidgets|jupyterlab_widgets"
    r"|traitlets|jupyter_client|jupyter_core|nbformat|nbclient|nbconvert|comm|tornado|ipython)-([\d.]+)-[^/]*\.conda"
)


def walk(wizard: Locator) -> None:
    """See the plan, which threads of the kernel have told; go to another page and back, and into another language."""
    main_button(wizard, "Install")
    wizard.get_by_role("button", name="Something is wrong?").click()
    expect(wizard.get_by_role("button", name="Install", exact=True)).to_have_count(0)
    wizard.get_by_role("button", name="The setup").click()
    main_button(wizard, "Install")
    wizard.locator(".ptsa-language select").select_option("简体中文")
    main_button(wizard, "安装")


@pytest.mark.parametrize("version", ["6.30.1", "7.0.1", "7.3.0"])
def test_the_wizard_walks_on_another_ipykernel(version: str, open_notebook, jupyter_server, tmp_path: Path) -> None:
    """Whichever thread callbacks run on, and whatever a thread knows of the message that it answers."""
    name = f"ipykernel-{version}"
    make_kernel(tmp_path / "env", jupyter_server.state_dir / "data", name, f"ipykernel=={version}")
    notebook = notebook_for(name)
    look = {"cell_type": "code", "id": "look", "metadata": {}, "execution_count": None, "outputs": []}
    notebook["cells"].append({**look, "source": "import ipykernel; print('ipykernel', ipykernel.__version__)"})
    (jupyter_server.root_dir / f"{name}.ipynb").write_text(json.dumps(notebook))
    page = open_notebook(f"{name}.ipynb")
    walk(run_first_cell(page))
    page.locator(".jp-CodeCell").nth(1).locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    page.get_by_text(f"ipykernel {version}").wait_for()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Make an environment as Binder does: repo2docker's lock, then binder/environment.yml, then postBuild; give it."""
    repo2docker = pytest.importorskip("repo2docker").__file__
    lock = Path(repo2docker).with_name("buildpacks").parent / LOCK
    pinned = [f"{name}=={version}" for name, version in LOCKED.findall(lock.read_text(encoding="utf-8"))]
    assert any(pin.startswith("jupyterlab==") for pin in pinned)
    wanted = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text("utf-8"))["dependencies"][-1]["pip"]
    folder = tmp_path / "image"
    environment = {**os.environ, **Sources(LiveHost()).environment}
    uv = [sys.executable, "-m", "uv"]
    for words in (
        [*uv, "venv", "--quiet", "--seed", "--python", sys.executable, folder],
        [*uv, "pip", "install", "--quiet", "--python", folder / "bin" / "python", *pinned],
        [*uv, "pip", "install", "--quiet", "--python", folder / "bin" / "python", *wanted],
    ):
        subprocess.run([str(word) for word in words], env=environment, check=True)
    copy = tmp_path / "project"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "failures", "__pycache__"))
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    for word in ("python", "jupyter"):
        assert shutil.which(word, path=path).startswith(str(folder))
    subprocess.run(["bash", copy / "binder" / "postBuild"], cwd=copy, env={**environment, "PATH": path}, check=True)
    held = subprocess.run([*uv, "pip", "freeze", "--python", folder], capture_output=True, text=True, check=True).stdout
    assert {"ipykernel", "ipywidgets", "jupyterlab"} <= {
        line.partition("==")[0] for line in held.split() if line in pinned
    }
    return folder


@pytest.fixture
def binder(image: Path, served_by, tmp_path: Path) -> Iterator[str]:
    """Serve the project's folder with the image's JupyterLab, as Binder does; give the address of the guided setup."""
    with served_by("hub", tmp_path / "jupyter", image / "bin" / "python") as server:
        yield f"{server.url}/lab/tree/notebooks/setup.ipynb?token={server.token}"


def test_the_wizard_walks_in_binders_image(page: Page, binder: str) -> None:
    """In the versions that repo2docker pins the wizard is there without a click, asks for no news, and walks."""
    page.goto(binder)
    wizard = page.locator(".ptsa-wizard")
    wizard.wait_for(timeout=60_000)
    walk(wizard)
    expect(page.get_by_text("Jupyter news")).to_have_count(0)
    page.goto("about:blank")  # its server ends before the page does

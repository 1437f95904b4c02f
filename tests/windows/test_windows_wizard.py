"""The guided setup served by a Windows Python, in the browser of this system."""

from __future__ import annotations

import json
import secrets
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import PureWindowsPath

import pytest
from guided import aim_at, main_button, run_first_cell, unfold
from playwright.sync_api import Page, expect
from served import Server, free_port, open_notebook, server_options, wait_for
from windows.wine import PYTHON, Wine

__all__ = ["open_notebook"]  # a fixture

pytestmark = pytest.mark.timeout(1200)

INSTALL_MS = 400_000
FOLDER = r"C:\笔记 本"
TARGET = r"C:\向导 环境\torch"


@pytest.fixture(scope="module")
def jupyter_server(
    windows: Wine, project: str, private: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Serve the notebooks as `start.py lab` does on a Chinese Windows whose person reads English."""
    private("lab")  # made before, so that the server alone is waited for
    state = tmp_path_factory.mktemp("lab")
    server = Server(f"http://127.0.0.1:{free_port()}", secrets.token_hex(16), windows.path(FOLDER), state)
    words = ["start.py", "lab", f"--folder={FOLDER}", *server_options(server)]
    child = windows.start(PYTHON, *words, folder=project, environment={"LANGUAGE": "en"})
    log = state / "server.log"
    with log.open("wb") as output, subprocess.Popen(["cat"], stdin=child.stdout, stdout=output):  # Wine writes to pipes
        try:
            wait_for(server, child, log)
        except BaseException:
            windows.restart()  # else the log would never end
            raise
        yield server
        server.end_sessions()
        server.ask("shutdown", "POST")
        child.communicate(timeout=60)


def test_the_wizard_from_the_first_look_to_the_files(open_notebook, jupyter_server: Server, page: Page, windows: Wine):
    """One press installs under a Chinese path and verifies, the next ones write the files and open a notebook."""
    wizard = run_first_cell(open_notebook("setup.ipynb"))
    main_button(wizard, "Install")
    aim_at(wizard, PureWindowsPath(TARGET))
    main_button(wizard, "Install").click()
    expect(wizard.get_by_role("heading", name="PyTorch works on your processor")).to_be_visible(timeout=INSTALL_MS)
    expect(wizard.get_by_text("All checks passed on the device cpu.").first).to_be_visible()
    unfold(wizard, "The checks, one by one")
    expect(wizard.locator(".ptsa-matrix").first).to_be_visible()
    kernels = json.loads(json.dumps(jupyter_server.ask("kernelspecs")))["kernelspecs"]
    assert rf"{TARGET}\Scripts\python.exe" in {spec["spec"]["argv"][0] for spec in kernels.values()}

    wizard.get_by_role("button", name="Save the configuration").click()
    main_button(wizard, "Write the files").click()
    with page.expect_download() as download:
        wizard.get_by_role("link", name="Download configuration.zip").click()
    with zipfile.ZipFile(download.value.path()) as pack:
        report = pack.read("report.md").decode()
    assert rf"{TARGET}" in report

    wizard.get_by_role("button", name="My environments", exact=True).click()
    expect(wizard.get_by_text(TARGET).first).to_be_visible(timeout=120_000)
    wizard.get_by_role("button", name="Something is wrong?", exact=True).click()
    expect(main_button(wizard, "Find the cause")).to_be_in_viewport(ratio=1)
    wizard.get_by_role("button", name="The setup", exact=True).click()
    expect(wizard.get_by_role("heading", name="PyTorch works on your processor")).to_be_visible()
    main_button(wizard, "Open a notebook with it").click()
    page.locator(".jp-Notebook:not(.lm-mod-hidden) .jp-OutputArea-output").nth(1).wait_for(timeout=180_000)
    assert windows.path(rf"{TARGET}\assistant-environment.json").is_file()

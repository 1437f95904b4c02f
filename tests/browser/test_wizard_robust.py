"""The wizard under rough hands in a real JupyterLab: reloads, two tabs, a kernel that dies."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import psutil
import pytest
from guided import main_button, run_first_cell
from playwright.sync_api import expect

pytestmark = pytest.mark.full

# A machine that answers only once a file is there: a task that lasts as long as a test wants.
HELD = """
import time
from pathlib import Path
from assistant.host.live import LiveHost
from assistant.wizard.app import show_wizard

class Held(LiveHost):
    def ask(self, kind, *arguments):
        while not Path({gate!r}).exists():
            time.sleep(0.05)
        return super().ask(kind, *arguments)

show_wizard(host=Held())
"""


def test_a_reload_and_a_second_tab_show_the_same_work(open_notebook, notebook, jupyter_server, tmp_path: Path) -> None:
    """Work goes on through a reload, a second tab shows it, and a cancel there is over before the machine answers."""
    gate = tmp_path / "gate"
    page = open_notebook(notebook("tabs.ipynb", HELD.format(gate=str(gate))))
    wizard = run_first_cell(page)
    looking = "Looking at this machine"
    expect(wizard.get_by_role("heading", name=looking)).to_be_visible()
    page.keyboard.press("Control+s")
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")

    page.reload()
    expect(wizard.get_by_role("heading", name=looking)).to_be_visible(timeout=60_000)
    second = page.context.new_page()
    second.goto(jupyter_server.document("tabs.ipynb"))
    other = second.locator(".ptsa-wizard")
    expect(other.get_by_role("heading", name=looking)).to_be_visible(timeout=60_000)
    expect(other.locator(".ptsa-time")).to_have_text(re.compile(r"\d:\d\d so far"), timeout=30_000)

    other.get_by_role("button", name="Cancel", exact=True).click()
    for shown in (wizard, other):
        expect(shown.get_by_text("You cancelled the work.")).to_be_visible()
    assert not gate.exists()
    gate.touch()
    main_button(wizard, "Try again").click()
    expect(wizard.get_by_role("heading", name="for your processor")).to_be_visible()
    expect(other.get_by_role("heading", name="for your processor")).to_be_visible()


def test_a_kernel_that_dies_is_told_and_the_cell_brings_the_wizard_back(
    open_notebook, notebook, jupyter_server, tmp_path: Path
) -> None:
    """What is left of the old wizard is greyed, says why, and cannot be pressed; running the cell again starts anew."""
    gate = tmp_path / "gate"
    page = open_notebook(notebook("dying.ipynb", HELD.format(gate=str(gate))))
    wizard = run_first_cell(page)
    expect(wizard.get_by_role("heading", name="Looking at this machine")).to_be_visible()
    (session,) = jupyter_server.ask("sessions")
    kernel = session["kernel"]["id"]
    (process,) = (
        process
        for process in psutil.process_iter(["cmdline"])
        if any(kernel in word for word in process.info["cmdline"] or ())
    )
    process.kill()
    expect(wizard.get_by_role("alert")).to_be_visible(timeout=60_000)
    expect(wizard.get_by_role("alert")).to_contain_text("run its cell again")
    gate.touch()
    page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'", timeout=60_000
    )
    dialog = page.get_by_role("button", name=re.compile("^(Ok|OK|Dismiss)$"))
    if dialog.is_visible():
        dialog.click()
    run_first_cell(page)
    main_button(wizard, "Install")
    expect(wizard.get_by_role("alert")).to_be_hidden()


def test_a_restart_by_another_client_brings_the_page_back(open_notebook, jupyter_server) -> None:
    """The kernel says that it starts and no more: the page stood there, and no press on it did anything."""
    page = open_notebook("setup.ipynb")
    wizard = page.locator(".ptsa-wizard")
    main_button(wizard, "Install")
    wizard.evaluate("node => (node.dataset.old = 'yes')")
    (session,) = jupyter_server.ask("sessions")
    address = f"{jupyter_server.url}/api/kernels/{session['kernel']['id']}/restart"
    httpx.post(address, headers={"Authorization": f"token {jupyter_server.token}"}, timeout=60).raise_for_status()
    expect(page.locator(".ptsa-wizard[data-old]")).to_have_count(0, timeout=60_000)
    main_button(wizard, "Install")
